//! Tests of counters of another server over RESP: redirects, transactions, and forwarding.

use std::sync::Arc;

use snowmint_coord::sources::{SectionAssignment, Server as Member, hash_slot};
use snowmint_coord::{
    BootTimer, Incarnation, MemoryStore, Node, NodeSettings, Platform, Timer as _,
};
use snowmint_server::Settings;
use tokio::net::TcpListener;

use super::common::{
    Client, Server, request, server_at, server_of, server_on, settings, soon, timer,
};
use super::redis_clients::text;

/// Addresses of a server before it starts.
struct Listeners {
    http: TcpListener,
    resp: TcpListener,
}

impl Listeners {
    async fn bind() -> Self {
        let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { http, resp: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    /// Returns the addresses as the store has them.
    fn announced(&self) -> String {
        let (http, resp) = (self.http.local_addr().unwrap(), self.resp.local_addr().unwrap());
        format!("resp={resp} http={http}")
    }

    async fn start(self, store: &MemoryStore, change: impl Fn(&mut Settings)) -> Server {
        let node = node_at(store, self.announced()).await;
        let mut settings = settings();
        change(&mut settings);
        server_on((self.http, self.resp), None, node, settings, (None, timer()))
    }
}

async fn node_at(store: &MemoryStore, address: String) -> Node {
    let node_settings = NodeSettings { builtin: true, address, ..NodeSettings::default() };
    let store = Arc::new(store.handle("test").unwrap());
    Node::open(store, node_settings, Platform::system()).await.unwrap()
}

/// Returns a counter that the first of two servers owns, and one of the second.
fn counters_of(first: &Listeners, second: &Listeners) -> [String; 2] {
    let members = [first, second].map(Listeners::announced);
    let server = |(number, address): (u128, &String)| Member {
        member: Incarnation::new(number),
        address: address.clone(),
    };
    let servers = (1..).zip(&members).map(server).collect();
    let assignment = SectionAssignment::new(Some(Incarnation::new(1)), servers);
    members.map(|address| {
        let mut names = (0..).map(|number| format!("counters:k{number}"));
        let is_its = |name: &String| {
            assignment.owner(hash_slot(name.as_bytes())).is_some_and(|own| own.address == address)
        };
        names.find(is_its).unwrap()
    })
}

/// Sends a command until its reply begins with this, and returns the reply.
async fn until(client: &mut Client, command: &[&str], begin: &str) -> String {
    let asking = async {
        loop {
            let line = client.ask(command).await;
            if line.starts_with(begin) {
                return line;
            }
            BootTimer.sleep_ms(20).await;
        }
    };
    soon(asking).await
}

/// Two servers of one store, each with a connection, and a counter that it owns.
struct Pair {
    servers: [Server; 2],
    clients: [Client; 2],
    counters: [String; 2],
}

/// Starts both, and waits until each knows its part.
async fn pair(change: impl Fn(&mut Settings)) -> Pair {
    let store = MemoryStore::new("test").unwrap();
    let (first, second) = (Listeners::bind().await, Listeners::bind().await);
    let counters = counters_of(&first, &second);
    let servers = [first.start(&store, &change).await, second.start(&store, &change).await];
    let mut clients = [servers[0].resp().await, servers[1].resp().await];
    for client in &mut clients {
        let known = async {
            loop {
                // The first counter opens the source, and the list of members.
                client.ask(&["INCR", "counters:first"]).await;
                if text(client, &["CLUSTER", "NODES"]).await.lines().count() == 2 {
                    return;
                }
                // A server reads the list of members again when its time has passed.
                servers.iter().for_each(|server| server.timer.advance_ms(100));
                BootTimer.sleep_ms(20).await;
            }
        };
        soon(known).await;
    }
    for (client, counter) in clients.iter_mut().zip(&counters) {
        until(client, &["INCR", counter], ":").await;
    }
    Pair { servers, clients, counters }
}

/// Returns the number of a reply.
fn number(line: &str) -> u64 {
    line.strip_prefix(':')
        .and_then(|digits| digits.parse().ok())
        .unwrap_or_else(|| panic!("{line}"))
}

/// Clients of a cluster follow `MOVED`, and send the whole transaction to the owner.
#[tokio::test]
async fn counter_of_another_server_is_redirected_while_queued() {
    let Pair { servers, clients: [mut client, mut owner], counters: [own, other] } =
        pair(|_| {}).await;
    let before = number(&client.ask(&["INCR", &own]).await);
    let moved = client.ask(&["INCR", &other]).await;
    assert_eq!(
        moved,
        format!("-MOVED {} {}", hash_slot(other.as_bytes()), servers[1].resp),
        "outside of a transaction"
    );
    for command in [
        &["INCR", &other][..],
        &["INCRBY", &other, "2"],
        &["INCRBY", &other, "x"],
        &["MINT", &other, "2"],
        &["GET", &other],
    ] {
        let sent: &[&[&str]] = &[&["MULTI"], &["INCR", &own], command, &["INCR", &own], &["EXEC"]];
        client.send(sent.iter().map(|command| request(command)).collect::<String>()).await;
        client.expect(&format!("+OK\r\n+QUEUED\r\n{moved}\r\n+QUEUED\r\n")).await;
        let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
        client.expect(aborted).await;
    }
    assert_eq!(number(&client.ask(&["INCR", &own]).await), before + 1, "none has run");
    // The owner runs the same transaction.
    let number = number(&owner.ask(&["INCR", &other]).await);
    owner.send(format!("MULTI\r\nINCR {other}\r\nINCRBY {other} 2\r\nEXEC\r\n")).await;
    let numbers = format!(":{}\r\n:{}\r\n", number + 1, number + 3);
    owner.expect(&format!("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n{numbers}")).await;
}

/// A redirect would lead a client from one owner to the other, for ever.
#[tokio::test]
async fn keys_of_two_servers_are_not_redirected() {
    let Pair { servers, clients: [mut client, mut owner], counters: [own, other] } =
        pair(|_| {}).await;
    let cross = "-CROSSSLOT Keys in request don't hash to the same slot, and different servers \
                 have them; send them one by one, or set resp.forward_counters = true\r\n";
    let moved = format!("-MOVED {} {}\r\n", hash_slot(other.as_bytes()), servers[1].resp);
    for name in ["MGET", "EXISTS", "touch"] {
        for keys in [[&own, &other], [&other, &own]] {
            let both = request(&[name, keys[0], keys[1]]);
            for client in [&mut client, &mut owner] {
                client.send(&both).await;
                client.expect(cross).await;
                client.send(request(&["MULTI"]) + &both + &request(&["EXEC"])).await;
                let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
                client.expect(&format!("+OK\r\n{cross}{aborted}")).await;
            }
        }
        // One server has these: a source is everywhere, and nothing is stored of the third.
        let keys = request(&[name, "default", &other, "absent:x", &other]);
        client.send(&keys).await;
        client.expect(&moved).await;
        client.send(request(&["MULTI"]) + &keys + &request(&["DISCARD"])).await;
        client.expect(&format!("+OK\r\n{moved}+OK\r\n")).await;
    }
    owner.send(request(&["EXISTS", "default", &other, "absent:x", &other])).await;
    owner.expect(":3\r\n").await;
    // Neither of two keys is here.
    client.send(request(&["EXISTS", &other, &other])).await;
    client.expect(&moved).await;
}

/// A transaction is redirected for any of a command's keys.
#[tokio::test]
async fn second_key_that_moves_before_exec_redirects_the_transaction() {
    let store = MemoryStore::new("test").unwrap();
    let (first, second) = (Listeners::bind().await, Listeners::bind().await);
    let [own, moving] = counters_of(&first, &second);
    let server = first.start(&store, |_| {}).await;
    let (mut client, mut other) = (server.resp().await, server.resp().await);
    client.send(format!("MULTI\r\nMGET {own} {moving}\r\n")).await;
    client.expect("+OK\r\n+QUEUED\r\n").await;
    let _second = second.start(&store, |_| {}).await;
    let moved = until(&mut other, &["INCR", &moving], "-MOVED ").await;
    assert_eq!(client.ask(&["EXEC"]).await, moved);
}

/// As in Redis, `EXEC` runs none of the commands, and names the new owner.
#[tokio::test]
async fn section_that_moves_before_exec_redirects_the_transaction() {
    let store = MemoryStore::new("test").unwrap();
    let (first, second) = (Listeners::bind().await, Listeners::bind().await);
    let [own, moving] = counters_of(&first, &second);
    let server = first.start(&store, |_| {}).await;
    let (mut client, mut other) = (server.resp().await, server.resp().await);
    let before = number(&client.ask(&["INCR", &own]).await);
    client.send(format!("MULTI\r\nINCR {own}\r\nINCR {moving}\r\nINCR {own}\r\n")).await;
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n").await;
    let second = second.start(&store, |_| {}).await;
    let moved = until(&mut other, &["INCR", &moving], "-MOVED ").await;
    assert!(moved.ends_with(&second.resp.to_string()), "{moved}");
    assert_eq!(client.ask(&["EXEC"]).await, moved);
    assert_eq!(client.ask(&["EXEC"]).await, "-ERR EXEC without MULTI");
    assert_eq!(number(&client.ask(&["INCR", &own]).await), before + 1, "none has run");
}

/// A cluster client drops its connections to all servers that a reply does not name. So a server
/// that has just joined names the others from its first reply on.
#[tokio::test]
async fn first_reply_of_a_new_server_names_all_servers() {
    let store = MemoryStore::new("test").unwrap();
    let mut servers = vec![Listeners::bind().await.start(&store, |_| {}).await];
    for command in ["NODES", "SLOTS", "SHARDS", "INFO", "MYID"] {
        let server = Listeners::bind().await.start(&store, |_| {}).await;
        let mut client = server.resp().await;
        servers.push(server);
        let mut given = Vec::new();
        client.send(request(&["CLUSTER", command]) + &request(&["PING", "end"])).await;
        while given.last().is_none_or(|line| line != "end") {
            given.push(client.line().await);
        }
        let given = given.join("\n");
        match command {
            "INFO" => {
                let known = format!("cluster_known_nodes:{}\n", servers.len());
                assert!(given.contains(&known), "{given}");
            }
            "MYID" => assert!(!given.contains(&"0".repeat(40)), "{given}"),
            _ => {
                let ports = servers.iter().map(|server| server.resp.port().to_string());
                let missing: Vec<_> = ports.filter(|port| !given.contains(port)).collect();
                assert!(missing.is_empty(), "{command} lacks {missing:?}: {given}");
            }
        }
    }
}

/// A cluster client sends it by the slot of the source alone, so any server calls the owner.
#[tokio::test]
async fn field_of_another_server_is_forwarded_and_never_redirected() {
    let Pair { servers: _servers, clients: [mut client, mut owner], counters: [_, other] } =
        pair(|_| {}).await;
    let (source, key) = other.split_once(':').unwrap();
    let mut last = number(&owner.ask(&["INCR", &other]).await);
    for count in ["1", "1", "20"] {
        let wanted = last + count.parse::<u64>().unwrap();
        assert_eq!(client.ask(&["HINCRBY", source, key, count]).await, format!(":{wanted}"));
        client.send(request(&["HGET", source, key])).await;
        assert_eq!(client.string().await, wanted.to_string());
        let queued = request(&["MULTI"]) + &request(&["HINCRBY", source, key, count]);
        client.send(queued + &request(&["HGET", source, key]) + &request(&["EXEC"])).await;
        last = wanted + count.parse::<u64>().unwrap();
        client.expect(&format!("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:{last}\r\n")).await;
        assert_eq!(client.string().await, last.to_string());
    }
    assert_eq!(number(&owner.ask(&["INCR", &other]).await), last + 1);
    // One response between servers has all the numbers.
    let many = client.ask(&["HINCRBY", source, key, "100001"]).await;
    assert_eq!(many, "-ERR count 100001 exceeds limits.batch_max (100000); ask for fewer");
    assert_eq!(
        client.ask(&["HINCRBY", source, key, "100000"]).await,
        format!(":{}", last + 100_001)
    );
    assert!(
        client.ask(&["HINCRBY", source, key, "1000001"]).await.starts_with("-ERR count 1000001 ")
    );
    assert!(client.ask(&["INCR", &other]).await.starts_with("-MOVED "), "INCR is redirected");
}

/// For clients that do not know clusters. Clients that do go to the owners, as without it.
#[tokio::test]
async fn commands_are_forwarded_to_the_owner_if_configured() {
    let forward = |settings: &mut Settings| settings.resp.forward_counters = true;
    let Pair { servers, clients: [mut client, mut owner], counters: [own, other] } =
        pair(forward).await;
    let last = number(&owner.ask(&["INCR", &other]).await);
    for (command, added) in [
        (&["INCR", &other][..], 1),
        (&["INCR", &other], 2),
        (&["INCRBY", &other, "1"], 3),
        (&["INCRBY", &other, "10"], 13),
        (&["MINT", &other], 14),
    ] {
        assert_eq!(client.ask(command).await, format!(":{}", last + added), "{command:?}");
    }
    client.send(request(&["EXISTS", &own, &other])).await;
    client.expect(":2\r\n").await;
    client.send("MULTI\r\nEXISTS ".to_owned() + &own + " " + &other + "\r\nEXEC\r\n").await;
    client.expect("+OK\r\n+QUEUED\r\n*1\r\n:2\r\n").await;
    client.send(request(&["MINT", &other, "2"]) + &request(&["GET", &other])).await;
    client.expect(&format!("*2\r\n:{}\r\n:{}\r\n", last + 15, last + 16)).await;
    assert_eq!(client.string().await, (last + 16).to_string());
    // Counters of both servers, in one transaction.
    let before = number(&client.ask(&["INCR", &own]).await);
    client
        .send(format!("MULTI\r\nINCR {own}\r\nINCR {other}\r\nINCRBY {other} 2\r\nEXEC\r\n"))
        .await;
    let numbers = format!(":{}\r\n:{}\r\n:{}\r\n", before + 1, last + 17, last + 19);
    client.expect(&format!("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n{numbers}")).await;
    assert_eq!(number(&owner.ask(&["INCR", &other]).await), last + 20);
    let many = client.ask(&["INCRBY", &other, "100001"]).await;
    assert_eq!(many, "-ERR count 100001 exceeds limits.batch_max (100000); ask for fewer");
    let nodes = text(&mut client, &["CLUSTER", "NODES"]).await;
    for server in &servers {
        let address = server.resp.to_string();
        assert!(nodes.contains(&address), "{address}: {nodes}");
    }
}

/// Returns a server, and another node that owns `counters:k`, which has returned 5, and announces
/// this.
async fn server_and_owner(announced: String, change: impl Fn(&mut Settings)) -> (Server, Node) {
    let store = MemoryStore::new("test").unwrap();
    let owner = node_at(&store, announced).await;
    owner.source("counters").await.unwrap().count(b"k", 5, 60_000).await.unwrap();
    let mut settings = settings();
    change(&mut settings);
    (server_of(node_at(&store, String::new()).await, settings).await, owner)
}

/// The owner of a section may change after `EXEC` has begun. Its commands then run at the owner.
#[tokio::test]
async fn section_that_moves_during_exec_loses_no_command() {
    let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let announced = format!("http={}", http.local_addr().unwrap());
    let (server, owner) = server_and_owner(announced, |_| {}).await;
    let _owner = server_at(http, None, owner, settings(), (None, timer())).await;
    let mut client = server.resp().await;
    // This server does not know the owner before the first of these commands runs.
    client
        .send("MULTI\r\nINCR counters:k\r\nINCRBY counters:k 3\r\nMINT counters:k 2\r\nGET counters:k\r\nEXEC\r\n")
        .await;
    client.expect(&format!("+OK\r\n{}*4\r\n", "+QUEUED\r\n".repeat(4))).await;
    client.expect(":6\r\n:9\r\n*2\r\n:10\r\n:11\r\n$2\r\n11\r\n").await;
}

/// The owner without HTTP cannot be called by a server.
#[tokio::test]
async fn field_of_an_owner_without_http_gets_an_error_of_its_own() {
    let (server, _owner) = server_and_owner("resp=127.0.0.1:1".to_owned(), |_| {}).await;
    let mut client = server.resp().await;
    let moved = format!("-MOVED {} 127.0.0.1:1", hash_slot(b"counters:k"));
    assert_eq!(client.ask(&["INCR", "counters:k"]).await, moved);
    for command in [&["HINCRBY", "counters", "k", "1"][..], &["HGET", "counters", "k"]] {
        let section = hash_slot(b"counters:k");
        let expected =
            format!("-TRYAGAIN server of section {section} took no request from this one; retry");
        assert_eq!(client.ask(command).await, expected);
    }
}

/// Returns the array or bulk string of `CLUSTER SLOTS`, up to the host and port of the first range.
async fn first_range(client: &mut Client) -> Vec<String> {
    let mut lines = vec![client.ask(&["CLUSTER", "SLOTS"]).await];
    for _ in 0..7 {
        lines.push(client.line().await);
    }
    lines
}

/// A client connects to the host of a range, and takes none without a host. A server that has
/// opened no counter has not listed itself yet; one without an announced address never does.
#[tokio::test]
async fn cluster_names_a_host_before_any_counter_is_opened() {
    let store = MemoryStore::new("test").unwrap();
    let listeners = Listeners::bind().await;
    let port = listeners.resp.local_addr().unwrap().port();
    let announced = listeners.start(&store, |_| ()).await;
    let alone = super::common::server().await;
    for (server, port) in [(&announced, Some(port)), (&alone, None)] {
        let mut client = server.resp().await;
        let lines = first_range(&mut client).await;
        assert_eq!(lines[..4], ["*1", "*3", ":0", ":16383"], "{lines:?}");
        assert_eq!(lines[4..7], ["*4", "$9", "127.0.0.1"], "{lines:?}");
        assert!(port.is_none_or(|port| lines[7] == format!(":{port}")), "{lines:?}");
    }
}

/// Returns how many sections a server holds, by its own count.
async fn sections_of(server: &Server) -> f64 {
    let page = server.get("/metrics").await.body;
    let line = page.lines().find_map(|line| line.strip_prefix("snowmint_sections "));
    line.unwrap_or_else(|| panic!("{page}")).parse().unwrap()
}

/// A frozen peer takes calls and does not respond. The others get their sections all the same.
#[tokio::test]
async fn silent_peer_does_not_prevent_a_hand_over() {
    let store = MemoryStore::new("test").unwrap();
    let (first, second, silent) =
        (Listeners::bind().await, Listeners::bind().await, Listeners::bind().await);
    let _silent = node_at(&store, silent.announced()).await;
    let first = first.start(&store, |_| ()).await;
    let second = second.start(&store, |_| ()).await;
    let mut client = first.resp().await;
    let has_sections = async {
        for key in 0.. {
            client.ask(&["INCR", &format!("counters:k{key}")]).await;
            if sections_of(&first).await > 0.0 {
                return;
            }
        }
    };
    soon(has_sections).await;
    let passing = async {
        loop {
            first.timer.advance_ms(50);
            second.timer.advance_ms(50);
            BootTimer.sleep_ms(10).await;
        }
    };
    tokio::select! {
        () = first.handle.hand_over() => {}
        () = soon(passing) => unreachable!(),
    }
    assert!(sections_of(&first).await < 1.0);
}
