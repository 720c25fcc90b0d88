//! `MULTI` to `EXEC`, byte by byte. That the words are Redis's is held by the end-to-end tests, against one.

use super::common::{Client, Server, request, server, server_with};

/// Requests that come together.
fn together(requests: &[&[&str]]) -> String {
    requests.iter().map(|args| request(args)).collect()
}

#[tokio::test]
async fn commands_wait_for_exec_and_are_answered_in_order() {
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
        &["INCR", "nobody"],
        &["EXEC"],
        &["INCR", "numbers"],
    ];
    let queued = "+QUEUED\r\n".repeat(6);
    let replies = "*6\r\n:1\r\n*2\r\n:2\r\n:3\r\n:6\r\n:1\r\n$1\r\n1\r\n-ERR there is no source \"nobody\"\r\n:7\r\n";
    let expected = format!("+OK\r\n{queued}{replies}");
    client.send(together(sent)).await;
    client.expect(&expected).await;

    // The same, a byte at a time, and as people type it.
    for byte in "multi\r\nincr numbers\r\nping 'a b'\r\nexec\r\n".bytes() {
        client.send([byte]).await;
    }
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:8\r\n$3\r\na b\r\n").await;
    client.send(together(&[&["MULTI"], &["EXEC"], &["PING"]])).await;
    client.expect("+OK\r\n*0\r\n+PONG\r\n").await;
}

#[tokio::test]
async fn what_is_kept_takes_no_id_before_exec_and_none_without() {
    let server = server().await;
    let (mut client, mut other) = (server.resp().await, server.resp().await);
    client.send(together(&[&["MULTI"], &["INCR", "numbers"]])).await;
    client.expect("+OK\r\n+QUEUED\r\n").await;
    assert_eq!(other.ask(&["INCR", "numbers"]).await, ":1");
    client.send(together(&[&["DISCARD"], &["INCR", "numbers"]])).await;
    client.expect("+OK\r\n:2\r\n").await;
    // A connection that ends takes its transaction with it.
    client.send(together(&[&["MULTI"], &["INCR", "numbers"], &["QUIT"]])).await;
    assert_eq!(client.rest().await, b"+OK\r\n+QUEUED\r\n+OK\r\n");
    assert_eq!(other.ask(&["INCR", "numbers"]).await, ":3");
    let page = server.get("/metrics").await.body;
    let issued = "snowmint_ids_total{source=\"numbers\",protocol=\"resp\"} 3";
    assert!(page.lines().any(|line| line == issued), "{page}");
}

#[tokio::test]
async fn a_refused_command_refuses_all() {
    let server = server().await;
    let mut client = server.resp().await;
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    let unknown = "-ERR unknown command 'WATCH', with args beginning with: 'a' \r\n";
    let arity = "-ERR wrong number of arguments for 'incr' command\r\n";
    for (wrong, said) in [(&["WATCH", "a"][..], unknown), (&["INCR"], arity)] {
        let sent: &[&[&str]] = &[&["MULTI"], wrong, &["INCR", "numbers"], &["EXEC"], &["EXEC"]];
        client.send(together(sent)).await;
        let none = "-ERR EXEC without MULTI\r\n";
        client.expect(&format!("+OK\r\n{said}+QUEUED\r\n{aborted}{none}")).await;
    }
    assert_eq!(client.ask(&["INCR", "numbers"]).await, ":1");
}

/// However much is sent, no more than so much is kept, and it is said at once.
#[tokio::test]
async fn a_transaction_that_is_too_long_is_refused() {
    let server = server().await;
    let mut client = server.resp().await;
    let incr = request(&["INCR", "numbers"]);
    // The argument with its head and the command's takes 26 bytes more than it is long.
    let fits = 262_144 / incr.len();
    client.send(request(&["MULTI"])).await;
    client.expect("+OK\r\n").await;
    for (sent, queued) in [(incr.repeat(fits), fits), (incr.repeat(3), 0)] {
        client.send(sent).await;
        client.expect(&"+QUEUED\r\n".repeat(queued)).await;
    }
    let error = client.line().await;
    let length = (fits + 1) * incr.len();
    let said = format!("-ERR the commands since MULTI have {length} bytes, and may have 262144: ");
    assert!(error.starts_with(&said), "{error}");
    client.expect("+QUEUED\r\n+QUEUED\r\n").await;
    assert!(client.ask(&["EXEC"]).await.starts_with("-EXECABORT "));
    assert_eq!(client.ask(&["INCR", "numbers"]).await, ":1");

    // What fits runs, and none is lost.
    client.send([request(&["MULTI"]), incr.repeat(fits), request(&["EXEC"])].concat()).await;
    client.expect(&format!("+OK\r\n{}*{fits}\r\n", "+QUEUED\r\n".repeat(fits))).await;
    for number in 2..=u64::try_from(fits).unwrap() + 1 {
        assert_eq!(client.integer().await, number);
    }
}

#[tokio::test]
async fn the_version_may_change_within() {
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

/// With `resp.default_counter_source`, as an application of Redis sends it.
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
