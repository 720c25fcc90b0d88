//! Commands that clients and tools of Redis send by themselves: cluster clients, pools, exporters.
//! The expected bytes are those of Redis 7, in cluster mode where it matters.

use std::collections::BTreeMap;

use super::access::{ADMIN, MINTER, guarded_with};
use super::common::{Client, request, server};

/// Sends commands together, each as a line, and checks that exactly these bytes come next.
async fn exchange(client: &mut Client, commands: &str, replies: &str) {
    let requests = commands.split('|').map(|line| request(&line.split(' ').collect::<Vec<_>>()));
    client.send(requests.collect::<String>() + &request(&["ECHO", "end"])).await;
    client.expect(&format!("{replies}$3\r\nend\r\n")).await;
}

/// Returns the text of a bulk or verbatim string.
pub(super) async fn text(client: &mut Client, words: &[&str]) -> String {
    client.send(request(words)).await;
    let head = client.line().await;
    let length: usize = head[1..].parse().unwrap();
    let mut bytes = vec![0; length + 2];
    tokio::io::AsyncReadExt::read_exact(&mut client.0, &mut bytes).await.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    text.strip_prefix("txt:").unwrap_or(&text).trim_end().to_owned()
}

/// Returns the fields of `INFO`.
async fn info(client: &mut Client) -> BTreeMap<String, String> {
    let text = text(client, &["INFO"]).await;
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[tokio::test]
async fn cluster_clients_get_the_replies_of_a_redis_cluster() {
    let server = server().await;
    let mut client = server.resp().await;
    for (commands, replies) in [
        ("READONLY|readwrite|ASKING|UNWATCH", "+OK\r\n+OK\r\n+OK\r\n+OK\r\n"),
        ("READONLY x", "-ERR wrong number of arguments for 'readonly' command\r\n"),
        ("MULTI|READONLY|UNWATCH|EXEC", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n+OK\r\n"),
        ("MULTI|WATCH a|EXEC", "+OK\r\n-ERR WATCH inside MULTI is not allowed\r\n*0\r\n"),
        ("ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"),
        ("CLUSTER COUNTKEYSINSLOT 1", ":0\r\n"),
        (
            "CLUSTER COUNTKEYSINSLOT 16384|CLUSTER COUNTKEYSINSLOT -1",
            "-ERR Invalid slot\r\n-ERR Invalid slot\r\n",
        ),
        ("CLUSTER COUNTKEYSINSLOT x", "-ERR value is not an integer or out of range\r\n"),
        (
            "CLUSTER COUNTKEYSINSLOT",
            "-ERR wrong number of arguments for 'cluster|countkeysinslot' command\r\n",
        ),
        ("CLUSTER GETKEYSINSLOT 1 10", "*0\r\n"),
        ("CLUSTER GETKEYSINSLOT 1 -1", "-ERR Invalid slot or number of keys\r\n"),
        ("CLUSTER GETKEYSINSLOT 16384 1", "-ERR Invalid slot or number of keys\r\n"),
        ("CLUSTER GETKEYSINSLOT 1 x", "-ERR value is not an integer or out of range\r\n"),
        ("CLUSTER REPLICAS x|CLUSTER SLAVES x", "-ERR Unknown node x\r\n-ERR Unknown node x\r\n"),
        ("CLUSTER LINKS", "*0\r\n"),
    ] {
        exchange(&mut client, commands, replies).await;
    }
    let own = text(&mut client, &["CLUSTER", "MYID"]).await;
    exchange(&mut client, &format!("CLUSTER REPLICAS {own}|CLUSTER slaves {own}"), "*0\r\n*0\r\n")
        .await;
    exchange(&mut client, &format!("CLUSTER COUNT-FAILURE-REPORTS {own}"), ":0\r\n").await;
}

#[tokio::test]
async fn any_password_of_the_default_user_is_accepted() {
    let server = server().await;
    let mut client = server.resp().await;
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    let none = "-ERR AUTH <password> called without any password configured for the default user. \
                Are you sure your configuration is correct?\r\n";
    for (commands, replies) in [
        ("AUTH default x", "+OK\r\n"),
        ("AUTH x", none),
        ("AUTH other x", wrong),
        ("AUTH Default x", wrong),
        ("HELLO 3 AUTH other x", wrong),
        ("AUTH a b c", "-ERR syntax error\r\n"),
        ("INCR numbers", ":1\r\n"),
    ] {
        exchange(&mut client, commands, replies).await;
    }
    assert_eq!(client.ask(&["HELLO", "3", "AUTH", "default", "x"]).await, "%7");
    // The connection serves on, and in the version that HELLO set.
    client.send(request(&["GET", "counters:new"])).await;
    let mut line = client.line().await;
    while line != "_" {
        line = client.line().await;
    }
}

#[tokio::test]
async fn replies_can_be_turned_off_and_skipped() {
    let server = server().await;
    let mut client = server.resp().await;
    for (commands, replies) in [
        ("CLIENT REPLY ON", "+OK\r\n"),
        ("CLIENT REPLY nope", "-ERR syntax error\r\n"),
        ("CLIENT REPLY", "-ERR wrong number of arguments for 'client|reply' command\r\n"),
        ("CLIENT REPLY SKIP|PING|ECHO x", "$1\r\nx\r\n"),
        ("CLIENT REPLY SKIP|CLIENT REPLY SKIP|ECHO x|ECHO y", "$1\r\ny\r\n"),
        ("CLIENT REPLY SKIP|CLIENT REPLY ON|ECHO x", "+OK\r\n$1\r\nx\r\n"),
        ("CLIENT REPLY off|PING|CLIENT REPLY SKIP|PING|client reply on", "+OK\r\n"),
        ("CLIENT REPLY SKIP|NOPE|PING", "+PONG\r\n"),
        ("CLIENT REPLY SKIP|MULTI|PING|EXEC", "+QUEUED\r\n*1\r\n+PONG\r\n"),
        ("CLIENT REPLY OFF|MULTI|PING|INCR numbers|EXEC|CLIENT REPLY ON", "+OK\r\n"),
        ("CLIENT REPLY OFF|RESET|PING", "+RESET\r\n+PONG\r\n"),
        // Commands that wait are silent, too, and take their numbers.
        ("CLIENT REPLY SKIP|MINT numbers 3|INCRBY numbers 5", ":9\r\n"),
        (
            "CLIENT REPLY OFF|INCRBY counters:a 4|INCR absent|CLIENT REPLY ON|INCR counters:a",
            "+OK\r\n:5\r\n",
        ),
    ] {
        exchange(&mut client, commands, replies).await;
    }
    // EXEC announces a reply for each command: none may be left out.
    client.send("MULTI\r\nCLIENT REPLY OFF\r\nPING\r\nEXEC\r\n").await;
    client
        .expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n-ERR CLIENT REPLY OFF and SKIP do not work")
        .await;
    client.line().await;
    client.expect("+PONG\r\n").await;
    client.send("CLIENT REPLY OFF\r\nQUIT\r\n").await;
    assert_eq!(client.rest().await, b"");
}

#[tokio::test]
async fn tracking_is_accepted_until_a_value_is_to_be_cached() {
    let server = server().await;
    let off =
        "*6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0\r\n";
    let on = "*6\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n$5\r\noptin\r\n$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n*0\r\n";
    let no_mode = "-ERR CLIENT CACHING can be called only when the client is in tracking mode with \
                   OPTIN or OPTOUT mode enabled\r\n";
    let mut client = server.resp().await;
    for (commands, replies) in [
        ("CLIENT TRACKINGINFO|CLIENT GETREDIR", &format!("{off}:-1\r\n")[..]),
        ("CLIENT CACHING YES|CLIENT CACHING NO", &no_mode.repeat(2)),
        (
            "CLIENT TRACKING ON OPTIN|CLIENT GETREDIR|CLIENT TRACKINGINFO",
            &format!("+OK\r\n:0\r\n{on}"),
        ),
        ("INCR counters:a", ":1\r\n"),
        (
            "CLIENT CACHING NO|CLIENT CACHING x",
            "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.\r\n\
             -ERR syntax error\r\n",
        ),
        ("client tracking off|CLIENT TRACKINGINFO", &format!("+OK\r\n{off}")),
        ("CLIENT TRACKING ON OPTIN|RESET|CLIENT TRACKINGINFO", &format!("+OK\r\n+RESET\r\n{off}")),
        (
            "CLIENT TRACKING nope|CLIENT TRACKING ON nope",
            "-ERR syntax error\r\n-ERR syntax error\r\n",
        ),
        ("CLIENT TRACKING", "-ERR wrong number of arguments for 'client|tracking' command\r\n"),
        ("CLIENT TRACKING ON PREFIX a", "-ERR PREFIX option requires BCAST mode to be enabled\r\n"),
        (
            "CLIENT TRACKING ON BCAST OPTIN",
            "-ERR OPTIN and OPTOUT are not compatible with BCAST\r\n",
        ),
        (
            "CLIENT TRACKING ON OPTIN OPTOUT",
            "-ERR You can't specify both OPTIN mode and OPTOUT mode\r\n",
        ),
    ] {
        exchange(&mut client, commands, replies).await;
    }
    assert_eq!(client.ask(&["CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP"]).await, "+OK");
    let reason = client.ask(&["CLIENT", "CACHING", "YES"]).await;
    assert!(
        reason.starts_with("-ERR CLIENT CACHING YES is rejected: a value here changes"),
        "{reason}"
    );
    for mode in
        [&["ON"][..], &["ON", "OPTOUT"], &["ON", "BCAST"], &["ON", "OPTIN", "REDIRECT", "9"]]
    {
        let reason = client.ask(&[&["CLIENT", "TRACKING"], mode].concat()).await;
        let expected = "-ERR CLIENT TRACKING ON works only with OPTIN, without REDIRECT: a value";
        assert!(reason.starts_with(expected), "{mode:?}: {reason}");
    }
}

/// Some clients send it together with what they would cache, and do not read its error.
#[tokio::test]
async fn nothing_is_read_for_a_cache() {
    let server = server().await;
    let mut client = server.resp().await;
    let reason = "a value here changes with each call, and a cache would return it twice; read \
                  without a cache\r\n";
    let yes = format!("-ERR CLIENT CACHING YES is rejected: {reason}");
    let after = |name: &str| format!("-ERR {name} after CLIENT CACHING YES is rejected: {reason}");
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    let (get, ttl) = (after("GET"), after("PTTL"));
    for (commands, replies) in [
        ("CLIENT TRACKING ON OPTIN|INCR counters:a", "+OK\r\n:1\r\n".to_owned()),
        ("CLIENT CACHING YES|GET counters:a|GET counters:a", format!("{yes}{get}$1\r\n1\r\n")),
        (
            "CLIENT CACHING YES|MULTI|PTTL counters:a|GET counters:a|EXEC|GET counters:a",
            format!("{yes}+OK\r\n{ttl}{get}{aborted}$1\r\n1\r\n"),
        ),
        (
            "CLIENT CACHING YES|CLIENT GETREDIR|MGET counters:a|GET counters:a",
            format!("{yes}:0\r\n{}$1\r\n1\r\n", after("MGET")),
        ),
        ("CLIENT CACHING YES|PING|GET counters:a", format!("{yes}+PONG\r\n$1\r\n1\r\n")),
        (
            "MULTI|CLIENT CACHING YES|GET counters:a|EXEC|GET counters:a",
            format!("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n{yes}{get}$1\r\n1\r\n"),
        ),
        (
            "CLIENT CACHING YES|MULTI|DISCARD|GET counters:a",
            format!("{yes}+OK\r\n+OK\r\n$1\r\n1\r\n"),
        ),
        (
            "CLIENT CACHING YES|CLIENT TRACKING OFF|GET counters:a",
            format!("{yes}+OK\r\n$1\r\n1\r\n"),
        ),
    ] {
        exchange(&mut client, commands, &replies).await;
    }
}

#[tokio::test]
async fn settings_of_a_connection_without_effect_are_accepted() {
    let server = server().await;
    let mut client = server.resp().await;
    for (commands, replies) in [
        ("CLIENT NO-EVICT ON|CLIENT NO-EVICT off|CLIENT NO-TOUCH on", "+OK\r\n+OK\r\n+OK\r\n"),
        ("CLIENT NO-EVICT nope", "-ERR syntax error\r\n"),
        ("CLIENT NO-EVICT", "-ERR wrong number of arguments for 'client|no-evict' command\r\n"),
        ("CLIENT UNBLOCK 1|CLIENT UNBLOCK 1 ERROR", ":0\r\n:0\r\n"),
        ("CLIENT UNBLOCK x", "-ERR value is not an integer or out of range\r\n"),
        ("CLIENT LIST TYPE master|CLIENT LIST ID 999", "$0\r\n\r\n$0\r\n\r\n"),
        ("CLIENT LIST TYPE nope", "-ERR Unknown client type 'nope'\r\n"),
        ("CLIENT LIST nope|CLIENT LIST ID x", "-ERR syntax error\r\n-ERR Invalid client ID\r\n"),
        ("COMMAND GETKEYS INCR a", "*1\r\n$1\r\na\r\n"),
        ("COMMAND GETKEYS EXISTS a b c", "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"),
        ("COMMAND GETKEYS SET a b NX", "*1\r\n$1\r\na\r\n"),
        ("COMMAND GETKEYS PING x", "-ERR The command has no key arguments\r\n"),
        ("COMMAND GETKEYS NOPE a", "-ERR Invalid command specified\r\n"),
        ("COMMAND GETKEYS INCR a b", "-ERR Invalid number of arguments specified for command\r\n"),
        (
            "COMMAND GETKEYS INCR",
            "-ERR wrong number of arguments for 'command|getkeys' command\r\n",
        ),
        ("COMMAND GETKEYSANDFLAGS GET a", "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+RO\r\n+access\r\n"),
        (
            "COMMAND INFO exists",
            "*1\r\n*10\r\n$6\r\nexists\r\n:-2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:-1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n",
        ),
        ("DBSIZE", ":0\r\n"),
        ("INCR counters:a|INCR counters:b|DBSIZE", ":1\r\n:1\r\n:2\r\n"),
    ] {
        exchange(&mut client, commands, replies).await;
    }
    for container in ["COMMAND", "CONFIG", "CLIENT", "CLUSTER"] {
        let head = client.ask(&[container, "HELP"]).await;
        for at in 0..head[1..].parse().unwrap() {
            let line = client.line().await;
            assert!(line.starts_with('+') && (at > 0 || line.contains("<subcommand>")), "{line}");
        }
        let extra = client.ask(&[container, "HELP", "x"]).await;
        assert!(extra.starts_with("-ERR wrong number of arguments for '"), "{extra}");
    }
}

/// The fields of Redis 7.0, in its order, and those of later versions.
#[tokio::test]
async fn connection_is_described_with_every_field_of_redis() {
    let server = server().await;
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["CLIENT", "SETNAME", "me"]).await, "+OK");
    let own = text(&mut client, &["CLIENT", "INFO"]).await;
    let fields: Vec<_> = own.split(' ').map(|field| field.split_once('=').unwrap()).collect();
    let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names.join(" "),
        "id addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free argv-mem \
         multi-mem rbs rbp obl oll omem tot-mem events cmd user redir resp lib-name lib-ver"
    );
    let fields: BTreeMap<_, _> = fields.into_iter().collect();
    let address = client.0.local_addr().unwrap().to_string();
    let local = server.resp.to_string();
    for (name, value) in [
        ("id", "1"),
        ("addr", address.as_str()),
        ("laddr", local.as_str()),
        ("name", "me"),
        ("flags", "N"),
        ("cmd", "client|info"),
        ("user", "default"),
        ("redir", "-1"),
        ("resp", "2"),
    ] {
        assert_eq!(fields[name], value, "{own}");
    }
    let mut other = server.resp().await;
    assert_eq!(other.ask(&["HELLO", "3"]).await, "%7");
    let listed = loop {
        let listed = text(&mut client, &["CLIENT", "LIST", "ID", "2"]).await;
        if !listed.is_empty() {
            break listed;
        }
    };
    for part in ["id=2 ", " resp=3 ", " cmd=NULL ", " flags=N "] {
        assert!(listed.contains(part), "{listed}");
    }
    exchange(&mut client, "CLIENT TRACKING ON OPTIN", "+OK\r\n").await;
    let own = text(&mut client, &["CLIENT", "INFO"]).await;
    assert!(own.contains(" flags=t ") && own.contains(" redir=0 "), "{own}");
}

#[tokio::test]
async fn connection_with_a_token_shows_its_name() {
    let (server, _) = guarded_with(|_| {}).await;
    let mut client = server.resp().await;
    assert!(client.ask(&["READONLY"]).await.starts_with("-NOAUTH"));
    assert!(client.ask(&["EXPIRE", "a", "1"]).await.starts_with("-NOAUTH"));
    for (token, name) in [(MINTER, "minter"), (ADMIN, "admin")] {
        assert_eq!(client.ask(&["AUTH", "default", token]).await, "+OK");
        let own = text(&mut client, &["CLIENT", "INFO"]).await;
        assert!(own.contains(&format!(" user={name} ")), "{own}");
    }
    assert!(client.ask(&["AUTH", "default", "x"]).await.starts_with("-WRONGPASS"));
}

#[tokio::test]
async fn info_has_the_numbers_that_tools_divide_by() {
    let server = server().await;
    let mut client = server.resp().await;
    let fields = info(&mut client).await;
    for name in [
        "connected_clients",
        "blocked_clients",
        "maxclients",
        "used_memory",
        "used_memory_rss",
        "used_memory_peak",
        "maxmemory",
        "total_connections_received",
        "total_commands_processed",
        "instantaneous_ops_per_sec",
        "rejected_connections",
        "keyspace_hits",
        "keyspace_misses",
        "expired_keys",
        "evicted_keys",
        "rdb_bgsave_in_progress",
        "aof_rewrite_in_progress",
        "loading",
        "uptime_in_seconds",
        "uptime_in_days",
        "connected_slaves",
        "master_repl_offset",
    ] {
        assert!(fields[name].parse::<u64>().is_ok(), "{name}: {fields:?}");
    }
    for name in ["used_cpu_sys", "used_cpu_user", "mem_fragmentation_ratio"] {
        assert!(fields[name].parse::<f64>().is_ok(), "{name}: {fields:?}");
    }
    assert!(cfg!(not(target_os = "linux")) || fields["used_memory"] != "0", "{fields:?}");
    assert!(fields["used_memory_human"].ends_with(['B', 'K', 'M', 'G']), "{fields:?}");
    assert_eq!(fields["run_id"].len(), 40);
    // The three places that say it agree.
    assert_eq!((&fields["redis_mode"][..], &fields["cluster_enabled"][..]), ("cluster", "1"));
    assert!(text(&mut client, &["CLUSTER", "INFO"]).await.contains("cluster_enabled:1"));
    assert!(!fields.contains_key("db0"), "{fields:?}");
    assert_eq!(client.ask(&["INCR", "counters:a"]).await, ":1");
    // The commands since the last reading, in a second of test time.
    for _ in 0..99 {
        assert_eq!(client.ask(&["PING"]).await, "+PONG");
    }
    server.timer.advance_ms(1_000);
    let fields = info(&mut client).await;
    assert_eq!(fields["db0"], "keys=1,expires=0,avg_ttl=0");
    assert_eq!(fields["instantaneous_ops_per_sec"], "102", "{fields:?}");
}
