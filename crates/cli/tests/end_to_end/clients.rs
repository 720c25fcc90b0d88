//! Real clients get real IDs.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use snowmint_testkit::programs;
use snowmint_testkit::servers::{Redis, free_port};

use super::server::{Folder, Resp, Server, client, curl, until};

/// Longer than anything takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

fn server(folder: &Folder) -> Server {
    let server = Server::start(&["--data-dir", folder.path().to_str().unwrap()], &[]);
    server.ready();
    server
}

fn lines(text: &str) -> Vec<u64> {
    text.lines().map(|line| line.parse().unwrap_or_else(|_| panic!("{line:?}"))).collect()
}

#[test]
fn curl_gets_ids_as_json_and_as_text() {
    let folder = Folder::new("curl");
    let server = server(&folder);
    let one = curl(&[&server.url("/v1/ids/default")]);
    let value: serde_json::Value = serde_json::from_str(&one).unwrap();
    assert!(value["ids"][0].as_str().unwrap().parse::<u64>().unwrap() > 0, "{one}");
    let many = curl(&["-H", "Accept: text/plain", &server.url("/v1/ids/default?count=1000")]);
    let ids = lines(&many);
    assert_eq!(ids.len(), 1_000);
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    let numbers = curl(&["-H", "Accept: text/plain", &server.url("/v1/ids/numbers?count=3")]);
    assert_eq!(lines(&numbers).len(), 3);
    let head = curl(&["-i", &server.url("/v1/ids/default")]).to_lowercase();
    assert!(head.contains("cache-control: no-store"), "{head}");
    let decoded = curl(&[&server.url(&format!("/v1/decode/{}?source=default", ids[0]))]);
    let decoded: serde_json::Value = serde_json::from_str(&decoded).unwrap();
    assert!(decoded["time"].as_str().unwrap().ends_with('Z'), "{decoded}");
    assert_eq!(curl(&["-o", "/dev/null", "-w", "%{http_code}", &server.url("/livez")]), "200");
    assert_eq!(server.stop(), 0);
}

#[test]
fn curl_gets_errors_with_their_status() {
    let folder = Folder::new("wrong");
    let server = server(&folder);
    let cases = [
        ("/v1/ids/default?count=0", "400"),
        ("/v1/ids/default?count=-1", "400"),
        ("/v1/ids/default?count=1000000000000000000", "413"),
        ("/v1/ids/absent", "404"),
        ("/v1/ids/a%2Fb", "400"),
        ("/v1/ids/a%3Fb%25", "400"),
        ("/v1/ids/%F0%9F%98%80", "400"),
        ("/v1/decode/99999999999999999999999?source=default", "400"),
        ("/nowhere", "404"),
    ];
    for (path, status) in cases {
        let response = curl(&["-w", "\n%{http_code}", &server.url(path)]);
        let (body, code) = response.rsplit_once('\n').unwrap();
        assert_eq!(code, status, "{path}: {body}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(body["error"]["code"].is_string(), "{path}: {body}");
        assert!(body["error"]["message"].is_string(), "{path}: {body}");
    }
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn redis_cli_and_redis_benchmark_work_unchanged() {
    let folder = Folder::new("redis");
    let server = server(&folder);
    let port = server.resp_port();
    let cli =
        |words: &[&str]| client("redis-cli", &[&["-h", "127.0.0.1", "-p", port], words].concat());
    assert_eq!(cli(&["PING"]).trim(), "PONG");
    let first: u64 = cli(&["INCR", "default"]).trim().parse().unwrap();
    let second: u64 = cli(&["INCR", "default"]).trim().parse().unwrap();
    assert!(second > first);
    assert_eq!(lines(&cli(&["MINT", "default", "100"])).len(), 100);
    assert!(cli(&["DECODE", &first.to_string(), "default"]).contains("worker"));
    assert!(cli(&["INFO"]).contains("snowmint"));
    assert!(cli(&["-3", "INCR", "numbers"]).trim().parse::<u64>().is_ok());
    assert!(cli(&["INCR", "absent"]).contains("ERR"));

    let benchmark = ["-h", "127.0.0.1", "-p", port, "-n", "100000", "-c", "20", "-P", "16", "-q"];
    let printed = client("redis-benchmark", &[&benchmark[..], &["INCR", "default"]].concat());
    assert!(printed.contains("requests per second"), "{printed}");
    let printed = client("redis-benchmark", &[&benchmark[..], &["-t", "ping"]].concat());
    assert!(printed.contains("PING_MBULK"), "{printed}");
}

/// Returns the address of a Redis server.
fn address(redis: &Redis) -> String {
    redis.url().trim_start_matches("redis://").split('/').next().unwrap().to_owned()
}

/// Sends commands, with `|` between them, and returns all replies.
fn replies_of(address: &str, commands: &str) -> String {
    const END: &str = "$3\r\nend\r\n";
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let request = format!("{}\r\nECHO end\r\n", commands.replace('|', "\r\n"));
    stream.write_all(request.as_bytes()).unwrap();
    let mut replies = Vec::new();
    let mut part = [0; 4096];
    while !replies.ends_with(END.as_bytes()) {
        match stream.read(&mut part).unwrap() {
            0 => break,
            bytes => replies.extend_from_slice(&part[..bytes]),
        }
    }
    String::from_utf8(replies).unwrap()
}

/// Commands that clients send by themselves get the same bytes as from a Redis Cluster of one
/// server.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
fn clients_get_the_same_replies_as_from_a_redis_cluster() {
    let folder = Folder::new("as-redis");
    let server = server(&folder);
    let bus = free_port().to_string();
    let redis = Redis::start(&["--cluster-enabled", "yes", "--cluster-port", &bus]);
    let redis = &address(&redis);
    assert!(replies_of(redis, "CLUSTER ADDSLOTSRANGE 0 16383").starts_with("+OK"));
    until("the cluster is up", || replies_of(redis, "CLUSTER INFO").contains("cluster_state:ok"));
    for commands in [
        "READONLY|READWRITE|ASKING|UNWATCH|READONLY x",
        "MULTI|READONLY|UNWATCH|EXEC|MULTI|WATCH a|EXEC",
        "ROLE|AUTH x|AUTH default x|AUTH other x|AUTH Default x|AUTH a b c",
        "HELLO 3 AUTH other x|HELLO 9|PING",
        "CLUSTER COUNTKEYSINSLOT 1|CLUSTER COUNTKEYSINSLOT 16384|CLUSTER COUNTKEYSINSLOT x",
        "CLUSTER COUNTKEYSINSLOT|CLUSTER GETKEYSINSLOT 1 9|CLUSTER GETKEYSINSLOT 1 -1",
        "CLUSTER GETKEYSINSLOT x 1|CLUSTER REPLICAS x|CLUSTER SLAVES x|CLUSTER LINKS",
        "CLIENT NO-EVICT ON|CLIENT NO-EVICT x|CLIENT NO-EVICT|CLIENT GETREDIR",
        "CLIENT UNBLOCK 999|CLIENT UNBLOCK x|CLIENT LIST TYPE x|CLIENT LIST x|CLIENT LIST ID x",
        "CLIENT LIST TYPE pubsub|CLIENT INFO x",
        "CLIENT TRACKINGINFO|CLIENT CACHING YES|CLIENT CACHING|CLIENT TRACKING",
        "CLIENT TRACKING ON OPTIN|CLIENT TRACKINGINFO|CLIENT GETREDIR|CLIENT CACHING NO",
        "CLIENT TRACKING ON OPTIN NOLOOP|CLIENT TRACKINGINFO|CLIENT CACHING x|RESET",
        "CLIENT TRACKING ON OPTIN|CLIENT TRACKING OFF|CLIENT TRACKINGINFO|CLIENT TRACKING x",
        "CLIENT TRACKING ON OPTIN OPTOUT|CLIENT TRACKING ON BCAST OPTIN|CLIENT TRACKING ON x",
        "CLIENT TRACKING ON PREFIX a|CLIENT TRACKING OFF PREFIX",
        "CLIENT REPLY ON|CLIENT REPLY x|CLIENT REPLY|CLIENT REPLY SKIP|PING|PING a",
        "CLIENT REPLY OFF|PING|CLIENT REPLY SKIP|PING|CLIENT REPLY ON|PING",
        "CLIENT REPLY SKIP|CLIENT REPLY SKIP|PING a|PING b|CLIENT REPLY SKIP|CLIENT REPLY ON",
        "CLIENT REPLY OFF|MULTI|PING|EXEC|CLIENT REPLY ON|CLIENT REPLY SKIP|MULTI|PING|EXEC",
        "CLIENT REPLY OFF|RESET|PING",
        "COMMAND GETKEYS INCR a|COMMAND GETKEYS EXISTS a b|COMMAND GETKEYS PING x",
        "COMMAND GETKEYS NOPE a|COMMAND GETKEYS INCR a b|COMMAND GETKEYS|COMMAND GETKEYS PING",
        "COMMAND GETKEYSANDFLAGS GET a|COMMAND GETKEYSANDFLAGS|COMMAND HELP x|CONFIG HELP x",
        "EXISTS|TTL|TYPE|SETNX a|SET a|MGET|EXISTS counters:{a}1 counters:{a}2|TTL counters:a",
        "PTTL counters:a|TYPE counters:a|PERSIST counters:a|EXPIRETIME counters:a|TOUCH counters:a",
        "INCR counters:a|EXISTS counters:a counters:a|TTL counters:a|PTTL counters:a",
        "TYPE counters:a|PERSIST counters:a|EXPIRETIME counters:a|MGET counters:a",
        "SET counters:a 0 NX|SET counters:a 7 nx|SETNX counters:a 0|SET counters:a 0 GET NX",
        "SET counters:a 0 KEEPTTL NX|SET counters:a 0 NX XX|SET counters:a 0 x|INCR counters:a",
    ] {
        assert_eq!(replies_of(&server.resp, commands), replies_of(redis, commands), "{commands}");
    }
    // Every command of this version of Redis has a reply or a reason.
    let names = client("redis-cli", &["-p", redis.split(':').nth(1).unwrap(), "COMMAND", "LIST"]);
    assert!(names.lines().count() > 300, "{names}");
    for name in names.lines() {
        let words = name.replace('|', " ");
        let reply = replies_of(&server.resp, &format!("{words}|DISCARD")).to_lowercase();
        let is_known = !reply.contains("unknown command") && !reply.contains("unknown subcommand");
        assert!(is_known, "{name}: {reply}");
    }
}

/// The benchmark's keys have no source: it ends at the first error, which says what to set, and
/// reports no rate.
#[test]
#[cfg_attr(
    not(feature = "real-servers"),
    ignore = "needs redis-benchmark: --features real-servers"
)]
fn redis_benchmark_without_a_source_ends_with_the_reason() {
    let folder = Folder::new("benchmark");
    let server = server(&folder);
    let mut command = Command::new(programs::installed("redis-benchmark"));
    command.args(["-p", server.resp_port(), "-t", "incr", "-n", "1000", "-q"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let reason = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}{reason}");
    let wanted = "source \"counter\" does not exist; define it, or set resp.default_counter_source";
    assert!(reason.contains(wanted), "{printed}{reason}");
    assert!(!printed.contains("requests per second"), "{printed}");
    assert_eq!(server.stop(), 0);
}

/// Commands that both support get the same bytes, in any use of `MULTI`.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
fn transactions_get_the_same_replies_as_in_redis() {
    let folder = Folder::new("transactions");
    let server = server(&folder);
    let redis = Redis::start(&[]);
    let redis = &address(&redis);
    for lines in [
        "MULTI|PING|ECHO a|EXEC",
        "MULTI|EXEC",
        "MULTI|MULTI|PING|EXEC",
        "EXEC|DISCARD|MULTI|PING|DISCARD|EXEC",
        "MULTI|NOPE x|PING|EXEC|EXEC",
        "MULTI|INCR|PING|EXEC|PING",
        "MULTI|ECHO a|SELECT x|PING|EXEC",
        "MULTI|PING|RESET|EXEC",
        "MULTI|PING|QUIT|EXEC",
        "MULTI|AUTH x|PING|EXEC",
        "MULTI x|DISCARD x|EXEC",
        "MULTI|HELLO 9|CLIENT SETNAME a|CLIENT GETNAME|EXEC",
        "HELLO 9|MULTI|PING|EXEC",
    ] {
        assert_eq!(replies_of(&server.resp, lines), replies_of(redis, lines), "{lines}");
    }
}

#[test]
fn a_million_ids_over_http_and_resp_at_once_are_all_distinct() {
    const RESP_IDS: usize = 125_000;
    let folder = Folder::new("million");
    let server = server(&folder);
    let of_clients: Vec<Vec<u64>> = thread::scope(|scope| {
        let resp = (0..4).map(|_| {
            let address = server.resp.as_str();
            scope.spawn(move || {
                let mut ids = Vec::with_capacity(RESP_IDS);
                let mut connection = Resp::connect(address).unwrap();
                while ids.len() < RESP_IDS {
                    // A tick holds 4096 IDs: requests on a full tick are repeated.
                    let rest = (RESP_IDS - ids.len()).min(500);
                    connection.incr("default", rest, &mut ids).unwrap();
                }
                ids
            })
        });
        let resp: Vec<_> = resp.collect();
        let http = (0..4).map(|_| {
            let url = server.url("/v1/ids/default?count=12500");
            scope.spawn(move || {
                let responses = (0..10).map(|_| curl(&["-H", "Accept: text/plain", &url]));
                responses.flat_map(|response| lines(&response)).collect()
            })
        });
        let http: Vec<_> = http.collect();
        resp.into_iter().chain(http).map(|client| client.join().unwrap()).collect()
    });
    let mut seen = HashSet::with_capacity(1_000_000);
    for ids in of_clients {
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "each client increases");
        seen.extend(ids);
    }
    assert_eq!(seen.len(), 1_000_000);
}
