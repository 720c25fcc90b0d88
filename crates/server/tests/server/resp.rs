//! Tests of RESP, byte by byte.

use snowmint_server::Settings;

use super::common::{request, server, server_with};

#[tokio::test]
async fn each_command_gets_its_reply() {
    let server = server().await;
    let mut client = server.resp().await;
    let cases: &[(&[&str], &str)] = &[
        (&["PING"], "+PONG\r\n"),
        (&["ping", "hi"], "$2\r\nhi\r\n"),
        (&["ECHO", "a\r\nb"], "$4\r\na\r\nb\r\n"),
        (&["INCR", "numbers"], ":1\r\n"),
        (&["incr", "numbers"], ":2\r\n"),
        (&["MINT", "numbers"], ":3\r\n"),
        (&["MINT", "numbers", "1"], "*1\r\n:4\r\n"),
        (&["MINT", "numbers", "3"], "*3\r\n:5\r\n:6\r\n:7\r\n"),
        (&["SELECT", "0"], "+OK\r\n"),
        (&["SELECT", "2"], "-ERR DB index is out of range\r\n"),
        (&["SELECT", "x"], "-ERR value is not an integer or out of range\r\n"),
        (&["CLIENT", "GETNAME"], "$-1\r\n"),
        (
            &["CLIENT", "SETNAME", "a b"],
            "-ERR Client names cannot contain spaces, newlines or special characters.\r\n",
        ),
        (&["CLIENT", "SETNAME", "me"], "+OK\r\n"),
        (&["CLIENT", "GETNAME"], "$2\r\nme\r\n"),
        (&["CLIENT", "SETINFO", "LIB-NAME", "redis-py"], "+OK\r\n"),
        (&["CLIENT", "SETINFO", "LIB-VER", "5.0"], "+OK\r\n"),
        (&["CLIENT", "ID"], ":1\r\n"),
        (&["CLIENT", "ID", "x"], "-ERR wrong number of arguments for 'client|id' command\r\n"),
        (&["CLIENT", "NOPE", "x"], "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP.\r\n"),
        (&["CONFIG", "GET", "save"], "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        (&["CONFIG", "GET", "appendonly"], "*2\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n"),
        (&["CONFIG", "GET", "nothing"], "*0\r\n"),
        (&["COMMAND", "INFO", "nothing"], "*1\r\n$-1\r\n"),
        (&["CLUSTER", "KEYSLOT", "foo"], ":12182\r\n"),
        (&["GET", "counters:alice"], "$-1\r\n"),
        (&["INCR", "counters:alice"], ":1\r\n"),
        (&["INCRBY", "counters:alice", "9"], ":10\r\n"),
        (&["GET", "counters:alice"], "$2\r\n10\r\n"),
        (&["INCRBY", "counters:alice", "1"], ":11\r\n"),
        (&["INCRBY", "numbers", "1"], ":8\r\n"),
        (&["HGET", "counters", "a:b"], "$-1\r\n"),
        (&["HINCRBY", "counters", "a:b", "1"], ":1\r\n"),
        (&["hincrby", "counters", "a:b", "8"], ":9\r\n"),
        (&["HGET", "counters", "a:b"], "$1\r\n9\r\n"),
        (&["INCR", "counters:a:b"], ":10\r\n"),
        (&["RESET"], "+RESET\r\n"),
        (&["CLIENT", "GETNAME"], "$-1\r\n"),
    ];
    for (args, reply) in cases {
        client.send(request(args)).await;
        client.expect(reply).await;
    }
    // Libraries write every INCR in this form.
    assert!(client.ask(&["INCRBY", "default", "1"]).await.starts_with(':'));
    assert!(
        client.ask(&["AUTH", "secret"]).await.starts_with("-ERR AUTH <password> called without")
    );
    let count = client.ask(&["COMMAND", "COUNT"]).await;
    assert_eq!(client.ask(&["COMMAND", "LIST"]).await, count.replace(':', "*"));
}

/// After any mistake in a command, the connection lives.
#[tokio::test]
async fn a_bad_command_is_an_error_and_the_connection_lives() {
    let server = server().await;
    let mut client = server.resp().await;
    let cases: &[(&[&str], &str)] = &[
        (&["NOPE"], "-ERR unknown command 'NOPE', with args beginning with: "),
        (&["NOPE", "a", "b"], "-ERR unknown command 'NOPE', with args beginning with: 'a' 'b' "),
        (&["FLUSHALL"], "-ERR FLUSHALL makes a key begin again"),
        (&["SET", "a", "b"], "-ERR SET sets a value"),
        (&["\u{1f600}\r\n"], "-ERR unknown command '"),
        (&[""], "-ERR unknown command ''"),
        (&["INCR"], "-ERR wrong number of arguments for 'incr' command"),
        (&["INCR", "a", "b"], "-ERR wrong number of arguments for 'incr' command"),
        (&["PING", "a", "b"], "-ERR wrong number of arguments for 'ping' command"),
        (&["INCR", "absent"], "-ERR source \"absent\" does not exist"),
        (&["INCR", ""], "-ERR source \"\" is not a valid name"),
        (&["INCR", "a/b"], "-ERR source \"a/b\" is not a valid name"),
        (&["INCR", "a?b"], "-ERR source \"a?b\" is not a valid name"),
        (&["INCR", "a%b"], "-ERR source \"a%b\" is not a valid name"),
        (&["INCR", "\u{1f600}"], "-ERR source \"\u{1f600}\" is not a valid name"),
        (&["INCR", "a\r\nb"], "-ERR source \"a\\r\\nb\" is not a valid name"),
        (&["MINT", "default", "0"], "-ERR count \"0\" is not a whole number"),
        (&["MINT", "default", "-1"], "-ERR count \"-1\" is not a whole number"),
        (&["MINT", "default", "1e18"], "-ERR count \"1e18\" is not a whole number"),
        (&["MINT", "default", ""], "-ERR count \"\" is not a whole number"),
        (&["MINT", "default", "100001"], "-ERR count 100001 exceeds limits.batch_max (100000)"),
        (&["MINT", "default", "1000000000000000000"], "-ERR count 1000000000000000000 exceeds"),
        (
            &["MINT", "default", "99999999999999999999999999"],
            "-ERR count 18446744073709551615 or more exceeds",
        ),
        (&["INCRBY", "numbers", "0"], "-ERR count \"0\" is not a whole number"),
        (&["INCRBY", "numbers", "-5"], "-ERR count \"-5\" is not a whole number"),
        (&["INCRBY", "numbers", "1000001"], "-ERR count 1000001 exceeds"),
        (&["INCRBY", "default", "5"], "-ERR "),
        (&["INCRBY", "numbers:key", "5"], "-ERR source \"numbers\" has kind segment"),
        (&["INCRBY", "counters:a", "1000001"], "-ERR count 1000001 exceeds"),
        (&["INCR", "counters"], "-ERR source \"counters\" counts by key"),
        (
            &["HINCRBY", "counters", "a", "0"],
            "-ERR count \"0\" is not a whole number of at least 1",
        ),
        (&["HINCRBY", "counters", "a", "-5"], "-ERR count \"-5\" is not a whole number"),
        (&["HINCRBY", "counters", "a", "1.5"], "-ERR count \"1.5\" is not a whole number"),
        (&["HINCRBY", "counters", "a", ""], "-ERR count \"\" is not a whole number"),
        (&["HINCRBY", "counters", "a", "1000001"], "-ERR count 1000001 exceeds limits.incrby_max"),
        (
            &["HINCRBY", "counters", "a", "99999999999999999999999999"],
            "-ERR count 18446744073709551615 or more exceeds",
        ),
        (&["HINCRBY", "counters", "", "1"], "-ERR "),
        (&["HINCRBY", "counters", "a"], "-ERR wrong number of arguments for 'hincrby' command"),
        (&["HINCRBY", "numbers", "a", "1"], "-ERR source \"numbers\" has kind segment"),
        (&["HINCRBY", "absent", "a", "1"], "-ERR source \"absent\" does not exist"),
        (&["HINCRBY", "a/b", "a", "1"], "-ERR source \"a/b\" is not a valid name"),
        (&["HGET", "numbers", "a"], "-ERR source \"numbers\" has kind segment"),
        (&["HGET", "absent", "a"], "-ERR source \"absent\" does not exist"),
        (&["GET", "default"], "-ERR GET needs the key of a counter"),
        (&["CLUSTER", "SLOTS", "x"], "-ERR wrong number of arguments for 'cluster|slots'"),
        (&["CLUSTER", "NOPE"], "-ERR unknown subcommand"),
        (&["CLUSTER", "MEET"], "-ERR CLUSTER MEET changes which server has a section"),
        (&["INCR", "numbers:key"], "-ERR "),
        (&["DECODE", "nonsense", "default"], "-ERR "),
        (&["DECODE", "1", "absent"], "-ERR source \"absent\" does not exist"),
        (&["HELLO", "4"], "-NOPROTO unsupported protocol version"),
        (&["HELLO", "x"], "-ERR Protocol version is not an integer or out of range"),
        (&["HELLO", "3", "NONSENSE"], "-ERR Syntax error in HELLO option 'NONSENSE'"),
        (&["HELLO", "3", "AUTH", "me", "secret"], "-WRONGPASS invalid username-password pair"),
        (&["CONFIG", "SET", "save", "1"], "-ERR settings cannot change over RESP"),
        (&["CONFIG", "GET"], "-ERR wrong number of arguments for 'config|get' command"),
    ];
    for (args, expected) in cases {
        let line = client.ask(args).await;
        assert!(line.starts_with(expected), "{args:?}: {line}");
        assert_eq!(client.ask(&["PING"]).await, "+PONG", "after {args:?}");
    }
    // A name that is not UTF-8.
    client.send(b"*2\r\n$4\r\nINCR\r\n$2\r\n\xff\xfe\r\n").await;
    assert!(client.line().await.starts_with("-ERR "));
    assert_eq!(client.ask(&["PING"]).await, "+PONG");
}

#[tokio::test]
async fn malformed_request_ends_the_connection() {
    let server = server().await;
    for (bytes, message) in [
        ("*1\r\n:1\r\n", "expected '$', got ':'"),
        ("*x\r\n", "invalid multibulk length"),
        ("*1\r\n$x\r\n", "invalid bulk length"),
        ("ECHO \"a\r\n", "unbalanced quotes"),
    ] {
        let mut client = server.resp().await;
        // Earlier requests get replies, later ones do not.
        client.send(format!("PING\r\n{bytes}PING\r\n")).await;
        client.expect("+PONG\r\n-ERR Protocol error: ").await;
        let rest = String::from_utf8(client.rest().await).unwrap();
        assert!(rest.starts_with(message) && rest.ends_with("\r\n"), "{rest}");
        assert_eq!(rest.matches("\r\n").count(), 1, "{rest}");
    }
}

#[tokio::test]
async fn replies_keep_the_order_of_requests() {
    let server = server().await;
    let mut client = server.resp().await;
    // Some of these get replies immediately and some only after a wait.
    client
        .send("INCR numbers\r\nPING\r\nINCRBY numbers 10\r\nINCR absent\r\nMINT numbers 2\r\nECHO x\r\n")
        .await;
    client.expect(":1\r\n+PONG\r\n:11\r\n").await;
    client.expect("-ERR source \"absent\" does not exist; define it, or set ").await;
    client.line().await;
    client.expect("*2\r\n:12\r\n:13\r\n$1\r\nx\r\n").await;
}

#[tokio::test]
async fn a_pipeline_gets_increasing_ids() {
    let server = server().await;
    let mut client = server.resp().await;
    const REQUESTS: usize = 20_000;
    let (mut from, mut to) = client.0.split();
    let sending = async {
        let batch = request(&["INCR", "default"]).repeat(100);
        for _ in 0..REQUESTS / 100 {
            tokio::io::AsyncWriteExt::write_all(&mut to, batch.as_bytes()).await.unwrap();
        }
    };
    let reading = async {
        let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(&mut from));
        let mut last = 0;
        for _ in 0..REQUESTS {
            let line = lines.next_line().await.unwrap().unwrap();
            let id: u64 =
                line.strip_prefix(':').unwrap_or_else(|| panic!("{line}")).parse().unwrap();
            assert!(id > last);
            last = id;
        }
    };
    super::common::soon(async { tokio::join!(sending, reading) }).await;
}

#[tokio::test]
async fn request_in_single_bytes_is_read() {
    let server = server().await;
    let mut client = server.resp().await;
    for byte in request(&["ECHO", "slowly"]).bytes() {
        client.send([byte]).await;
        tokio::task::yield_now().await;
    }
    client.expect("$6\r\nslowly\r\n").await;
    for byte in "PING\r\n".bytes() {
        client.send([byte]).await;
        tokio::task::yield_now().await;
    }
    client.expect("+PONG\r\n").await;
}

#[tokio::test]
async fn version_three_has_maps_and_null() {
    let server = server().await;
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["HELLO"]).await, "*14");
    let head = "$6\r\nserver\r\n$8\r\nsnowmint\r\n$7\r\nversion\r\n$5\r\n0.1.0\r\n$5\r\nproto\r\n";
    let tail = "$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$7\r\ncluster\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";
    client.expect(&format!("{head}:2\r\n{tail}")).await;
    assert_eq!(client.ask(&["HELLO", "3", "SETNAME", "me"]).await, "%7");
    client.expect(&format!("{head}:3\r\n{tail}")).await;
    client.send(request(&["CLIENT", "GETNAME"])).await;
    client.expect("$2\r\nme\r\n").await;
    client.send(request(&["CONFIG", "GET", "save"])).await;
    client.expect("%1\r\n$4\r\nsave\r\n$0\r\n\r\n").await;
    client.send(request(&["COMMAND", "INFO", "nothing"])).await;
    client.expect("*1\r\n_\r\n").await;
    assert!(client.ask(&["INFO", "server"]).await.starts_with('='));
}

#[tokio::test]
async fn decode_shows_time_worker_and_sequence() {
    let server = server().await;
    let mut client = server.resp().await;
    let id = client.ask(&["INCR", "default"]).await[1..].to_owned();
    client.send(request(&["DECODE", &id, "default"])).await;
    let fields = client.line().await;
    let mut found = std::collections::BTreeMap::new();
    for _ in 0..fields[1..].parse::<usize>().unwrap() / 2 {
        client.line().await;
        let name = client.line().await;
        let mut value = client.line().await;
        if value.starts_with('$') {
            value = client.line().await;
        }
        found.insert(name, value);
    }
    assert_eq!(found["id"], id);
    assert!(found["time"].ends_with('Z'), "{found:?}");
    for number in ["tick", "worker", "sequence"] {
        assert!(found[number].starts_with(':'), "{found:?}");
    }
}

#[tokio::test]
async fn quit_replies_and_closes() {
    let server = server().await;
    let mut client = server.resp().await;
    client.send("QUIT\r\nPING\r\n").await;
    assert_eq!(client.rest().await, b"+OK\r\n");
}

/// A page in a browser must not be able to make the browser send commands.
#[tokio::test]
async fn http_over_resp_closes_the_connection() {
    let server = server().await;
    for bytes in [
        "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nINCR numbers\r\n",
        "Host: x\r\nINCR numbers\r\n",
    ] {
        let mut client = server.resp().await;
        client.send(bytes).await;
        assert_eq!(client.rest().await, b"");
    }
    assert_eq!(server.resp().await.ask(&["INCR", "numbers"]).await, ":1");
}

/// The first bytes of redis-cli and redis-benchmark.
#[tokio::test]
async fn first_commands_of_redis_tools_get_replies() {
    let server = server().await;
    let mut client = server.resp().await;
    client
        .send(request(&["CONFIG", "GET", "save"]) + &request(&["CONFIG", "GET", "appendonly"]))
        .await;
    client.expect("*2\r\n$4\r\nsave\r\n$0\r\n\r\n*2\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n").await;
    assert_eq!(client.ask(&["COMMAND", "DOCS", "incr"]).await, "*2");
    client.expect("$4\r\nincr\r\n*6\r\n$7\r\nsummary\r\n").await;
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["COMMAND", "INFO", "incr"]).await, "*1");
    client.expect("*10\r\n$4\r\nincr\r\n:2\r\n*2\r\n+write\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n").await;
}

/// With a default counter source, `INCR` counts, whatever source was minted from before, and `MINT`
/// mints.
#[tokio::test]
async fn default_counter_source_applies_after_any_command() {
    let default = |settings: &mut Settings| {
        settings.resp.default_counter_source = "counters".into();
    };
    let server = server_with(default).await;
    let mut client = server.resp().await;
    for count in 1..=3 {
        for key in ["default", "default:x"] {
            let minted = client.ask(&["MINT", "default"]).await;
            assert!(minted.len() > 10, "{minted}");
            assert_eq!(client.ask(&["INCR", key]).await, format!(":{count}"));
        }
    }
}
