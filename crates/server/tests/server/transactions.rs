//! Tests of `MULTI` to `EXEC`, byte by byte. The end-to-end tests compare the words with a real
//! Redis.

use futures_util::future::select_all;

use super::common::{Client, Server, request, server, server_with};

/// Returns requests that come together.
fn together(requests: &[&[&str]]) -> String {
    requests.iter().map(|args| request(args)).collect()
}

#[tokio::test]
async fn commands_wait_for_exec_and_get_replies_in_order() {
    let server = server().await;
    let mut client = server.resp().await;
    let sent: &[&[&str]] = &[
        &["MULTI"],
        &["INCR", "numbers"],
        // These have to wait: for the store, for another source.
        &["MINT", "numbers", "2"],
        &["INCRBY", "numbers", "3"],
        &["INCR", "counters:alice"],
        &["GET", "counters:alice"],
        // Values are checked when the command runs.
        &["INCRBY", "numbers", "-1"],
        &["EXEC"],
        &["INCR", "numbers"],
    ];
    let queued = "+QUEUED\r\n".repeat(6);
    let replies = "*6\r\n:1\r\n*2\r\n:2\r\n:3\r\n:6\r\n:1\r\n$1\r\n1\r\n-ERR count \"-1\" is not a whole number of at least 1; correct it\r\n:7\r\n";
    let expected = format!("+OK\r\n{queued}{replies}");
    client.send(together(sent)).await;
    client.expect(&expected).await;

    // The same, a byte at a time, and in the form that people type.
    for byte in "multi\r\nincr numbers\r\nping 'a b'\r\nexec\r\n".bytes() {
        client.send([byte]).await;
    }
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:8\r\n$3\r\na b\r\n").await;
    client.send(together(&[&["MULTI"], &["EXEC"], &["PING"]])).await;
    client.expect("+OK\r\n*0\r\n+PONG\r\n").await;
}

#[tokio::test]
async fn queued_commands_mint_ids_only_at_exec() {
    let server = server().await;
    let (mut client, mut other) = (server.resp().await, server.resp().await);
    client.send(together(&[&["MULTI"], &["INCR", "numbers"]])).await;
    client.expect("+OK\r\n+QUEUED\r\n").await;
    assert_eq!(other.ask(&["INCR", "numbers"]).await, ":1");
    client.send(together(&[&["DISCARD"], &["INCR", "numbers"]])).await;
    client.expect("+OK\r\n:2\r\n").await;
    // The end of a connection discards its transaction.
    client.send(together(&[&["MULTI"], &["INCR", "numbers"], &["QUIT"]])).await;
    assert_eq!(client.rest().await, b"+OK\r\n+QUEUED\r\n+OK\r\n");
    assert_eq!(other.ask(&["INCR", "numbers"]).await, ":3");
    let page = server.get("/metrics").await.body;
    let issued = "snowmint_ids_total{source=\"numbers\",protocol=\"resp\"} 3";
    assert!(page.lines().any(|line| line == issued), "{page}");
}

#[tokio::test]
async fn rejected_command_aborts_the_transaction() {
    let server = server().await;
    let mut client = server.resp().await;
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    let unknown = "-ERR unknown command 'NOPE', with args beginning with: 'a' \r\n";
    let arity = "-ERR wrong number of arguments for 'incr' command\r\n";
    let many = "-ERR wrong number of arguments for 'mint' command\r\n";
    let sub = "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP.\r\n";
    let sub_arity = "-ERR wrong number of arguments for 'cluster|slots' command\r\n";
    for (wrong, wanted) in [
        (&["NOPE", "a"][..], unknown),
        (&["INCR"], arity),
        (&["MINT", "numbers", "1", "2"], many),
        (&["CLIENT", "NOPE"], sub),
        (&["CLUSTER", "SLOTS", "x"], sub_arity),
        (&["CLUSTER", "NOPE"], &sub.replace("CLIENT", "CLUSTER")),
        (&["CONFIG", "NOPE"], &sub.replace("CLIENT", "CONFIG")),
        (&["CONFIG", "GET"], &sub_arity.replace("cluster|slots", "config|get")),
        (&["COMMAND", "NOPE"], &sub.replace("CLIENT", "COMMAND")),
        (&["COMMAND", "COUNT", "x"], &sub_arity.replace("cluster|slots", "command|count")),
    ] {
        let sent: &[&[&str]] = &[&["MULTI"], wrong, &["INCR", "numbers"], &["EXEC"], &["EXEC"]];
        client.send(together(sent)).await;
        let none = "-ERR EXEC without MULTI\r\n";
        client.expect(&format!("+OK\r\n{wanted}+QUEUED\r\n{aborted}{none}")).await;
    }
    // A sub-command that this server rejects, as any command that it rejects.
    client.send(together(&[&["MULTI"], &["CLUSTER", "MEET"]])).await;
    client.expect("+OK\r\n-ERR CLUSTER MEET ").await;
    client.line().await;
    assert!(client.ask(&["EXEC"]).await.starts_with("-EXECABORT "));
    assert_eq!(client.ask(&["INCR", "numbers"]).await, ":1");
    // Values are checked when it runs.
    client
        .send(together(&[&["MULTI"], &["COMMAND"], &["CLIENT", "REPLY", "x"], &["DISCARD"]]))
        .await;
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n+OK\r\n").await;
}

/// As in Redis, a command that cannot run aborts the transaction, whatever its values. Later
/// commands are checked, too.
#[tokio::test]
async fn command_for_no_source_is_rejected_while_queued() {
    let server = server().await;
    let off = r#"{"name":"off","kind":"segment","enabled":false}"#;
    assert_eq!(server.post("/v1/sources", off).await.status, 200);
    let gone = r#"{"name":"gone","kind":"segment"}"#;
    assert_eq!(server.post("/v1/sources", gone).await.status, 200);
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["INCR", "gone"]).await, ":1");
    assert_eq!(server.send("DELETE", "/v1/sources/gone", "", "").await.status, 204);
    let missing = "-ERR source \"absent\" does not exist";
    let invalid = "-ERR source \"a/b\" is not a valid name";
    let wrongs: &[(&[&str], &str)] = &[
        (&["INCR", "absent"], missing),
        (&["INCR", "absent:key"], missing),
        (&["INCRBY", "absent", "x"], missing),
        (&["MINT", "absent", "3"], missing),
        (&["GET", "absent:key"], missing),
        (&["HINCRBY", "absent", "key", "1"], missing),
        (&["HGET", "absent", "key"], missing),
        (&["DECODE", "1", "absent"], missing),
        (&["INCR", "a/b"], invalid),
        (&["INCR", "off"], "-ERR source \"off\" is disabled"),
        (&["INCR", "gone"], "-ERR source \"gone\" "),
    ];
    for (wrong, error) in wrongs {
        client.send(together(&[&["MULTI"], &["INCR", "numbers"], wrong])).await;
        client.expect("+OK\r\n+QUEUED\r\n").await;
        let line = client.line().await;
        assert!(line.starts_with(error), "{wrong:?}: {line}");
        assert_eq!(client.ask(&["INCR", "numbers"]).await, "+QUEUED");
        assert!(client.ask(wrong).await.starts_with(error), "{wrong:?}");
        let aborted = "-EXECABORT Transaction discarded because of previous errors.";
        assert_eq!(client.ask(&["EXEC"]).await, aborted, "{wrong:?}");
        assert_eq!(client.ask(&["EXEC"]).await, "-ERR EXEC without MULTI");
    }
    client.send(b"MULTI\r\n*2\r\n$4\r\nINCR\r\n$2\r\n\xff\xfe\r\n").await;
    client.expect("+OK\r\n-ERR argument ").await;
    client.line().await;
    assert!(client.ask(&["EXEC"]).await.starts_with("-EXECABORT "));
    // No number was taken.
    assert_eq!(client.ask(&["INCR", "numbers"]).await, ":1");
}

/// At any amount sent, the kept bytes are bounded, and the error comes immediately.
#[tokio::test]
async fn a_transaction_that_is_too_long_is_refused() {
    let server = server().await;
    let mut client = server.resp().await;
    let incr = request(&["INCR", "numbers"]);
    // The argument with its head and the command's takes 26 bytes more than its length.
    let fits = 262_144 / incr.len();
    client.send(request(&["MULTI"])).await;
    client.expect("+OK\r\n").await;
    for (sent, queued) in [(incr.repeat(fits), fits), (incr.repeat(3), 0)] {
        client.send(sent).await;
        client.expect(&"+QUEUED\r\n".repeat(queued)).await;
    }
    let error = client.line().await;
    let length = (fits + 1) * incr.len();
    let wanted = format!("-ERR commands since MULTI have {length} bytes, maximum 262144; ");
    assert!(error.starts_with(&wanted), "{error}");
    client.expect("+QUEUED\r\n+QUEUED\r\n").await;
    assert!(client.ask(&["EXEC"]).await.starts_with("-EXECABORT "));
    assert_eq!(client.ask(&["INCR", "numbers"]).await, ":1");

    // A transaction that fits runs, and none of it is lost.
    client.send([request(&["MULTI"]), incr.repeat(fits), request(&["EXEC"])].concat()).await;
    client.expect(&format!("+OK\r\n{}*{fits}\r\n", "+QUEUED\r\n".repeat(fits))).await;
    for number in 2..=u64::try_from(fits).unwrap() + 1 {
        assert_eq!(client.integer().await, number);
    }
}

#[tokio::test]
async fn protocol_version_may_change_in_a_transaction() {
    let server = server().await;
    let mut client = server.resp().await;
    client.send("MULTI\r\nGET counters:a\r\nHELLO 3\r\nGET counters:a\r\nEXEC\r\n").await;
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n$-1\r\n%7\r\n").await;
    client.send("PING end\r\n").await;
    let mut last = String::new();
    while last != "$3" {
        let line = client.line().await;
        last = if line == "_" { client.line().await } else { line };
    }
    client.expect("end\r\n").await;
}

/// With `resp.default_counter_source`, in the form of a Redis application.
#[tokio::test]
async fn a_pipeline_of_an_application_of_redis_counts_its_keys() {
    let server: Server =
        server_with(|settings| settings.resp.default_counter_source = "counters".into()).await;
    let mut client: Client = server.resp().await;
    let sent: &[&[&str]] =
        &[&["MULTI"], &["INCR", "page:1"], &["INCRBY", "page:2", "5"], &["EXEC"]];
    client.send(together(sent)).await;
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:5\r\n").await;
}

/// Returns 16 commands of a transaction near the longest length.
fn long_commands() -> String {
    request(&["ECHO", &"x".repeat(16_000)]).repeat(16)
}

/// Opens connections of one client with long unfinished transactions, up to the limit. Returns
/// them, and the error at the limit.
async fn as_many_as_may_be(server: &Server) -> (Vec<Client>, String) {
    let mut kept = Vec::new();
    loop {
        let mut client = server.resp().await;
        client.send(request(&["MULTI"]) + &long_commands()).await;
        client.expect("+OK\r\n").await;
        for _ in 0..16 {
            let line = client.line().await;
            if line != "+QUEUED" {
                return (kept, line);
            }
        }
        kept.push(client);
        // 64 MiB, which takes nothing from other clients.
        assert!(kept.len() < 300, "a client keeps as much as it likes");
    }
}

/// Returns half a request, of about 20,000 bytes.
fn half() -> String {
    request(&["ECHO", &"x".repeat(16_000), &"x".repeat(5_000)]).split_at(20_000).0.to_owned()
}

/// The memory that the server keeps for a client, over any number of connections, is a share of the
/// common limit.
#[tokio::test]
async fn bytes_kept_for_a_client_over_all_connections_are_bounded() {
    let server = server().await;
    let (mut kept, refused) = as_many_as_may_be(&server).await;
    for part in ["-TRYAGAIN ", " exceeds the ", "of one token or address", "16777216 bytes"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let mut short = server.resp().await;
    assert_eq!(short.ask(&["INCR", "numbers"]).await, ":1", "short ones get a reply");

    // Halves of requests count with them, and the rest of the limit is so small that some of these
    // fail.
    let mut halves = Vec::new();
    for _ in 0..60 {
        let mut client = server.resp().await;
        client.send(half()).await;
        halves.push(Box::pin(async move { client.line().await }));
    }
    let (refused, _, others) = select_all(halves).await;
    assert!(refused.starts_with("-TRYAGAIN half a request with "), "{refused}");
    drop(others);

    // Finished transactions free their bytes: more than those halves take, if the server still
    // reads some of them.
    for client in kept.iter_mut().take(10) {
        assert_eq!(client.ask(&["DISCARD"]).await, "+OK");
    }
    let mut again = server.resp().await;
    again.send(request(&["MULTI"]) + &long_commands() + &request(&["DISCARD"])).await;
    again.expect(&format!("+OK\r\n{}+OK\r\n", "+QUEUED\r\n".repeat(16))).await;
}
