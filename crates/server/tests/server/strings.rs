//! Tests of IDs as strings over RESP, byte by byte.

use snowmint_coord::{Decoded, Source};
use snowmint_core::text::Format;

use super::common::{Client, Server, node, request, server, server_of, server_with, settings};

/// Returns the number of the text that comes next.
async fn number(client: &mut Client, source: &Source) -> u64 {
    let text = client.string().await;
    let decoded = source.decode(&text, Some(source.format()));
    match decoded.unwrap_or_else(|error| panic!("{text}: {error}")) {
        Decoded::Snowflake { id, .. } | Decoded::Number { id } => id,
        other => panic!("{text}: {other:?}"),
    }
}

/// Every text form, of both kinds that have one, in both versions of the protocol.
#[tokio::test]
async fn source_with_a_text_form_replies_with_strings() {
    let node = node().await;
    let server = server_of(node.clone(), settings()).await;
    for format in Format::ALL.into_iter().filter(|&format| format != Format::default()) {
        for kind in ["snowflake", "segment"] {
            if kind == "segment" && format.name().starts_with("friendly") {
                continue;
            }
            let name = format!("{kind}-{}", format.name());
            let body = format!(r#"{{"name":"{name}","kind":"{kind}","text":"{}"}}"#, format.name());
            assert_eq!(server.post("/v1/sources", &body).await.status, 200, "{body}");
            let source = node.source(&name).await.unwrap();
            let mut last = 0;
            for version in ["2", "3"] {
                let mut client = server.resp().await;
                client.speaks(version).await;
                let commands: &[(&[&str], &str, usize)] = &[
                    (&["INCR", &name], "", 1),
                    // The source is cached now.
                    (&["INCR", &name], "", 1),
                    (&["INCRBY", &name, "1"], "", 1),
                    (&["MINT", &name], "", 1),
                    (&["MINT", &name, "1"], "*1\r\n", 1),
                    (&["MINT", &name, "3"], "*3\r\n", 3),
                ];
                for (command, head, count) in commands {
                    for (before, head, after) in [
                        ("", (*head).to_owned(), ""),
                        ("MULTI\r\n", format!("+OK\r\n+QUEUED\r\n*1\r\n{head}"), "EXEC\r\n"),
                    ] {
                        client.send(format!("{before}{}{after}", request(command))).await;
                        client.expect(&head).await;
                        for _ in 0..*count {
                            let id = number(&mut client, &source).await;
                            assert!(id > last, "{command:?}: {id} after {last}");
                            last = id;
                        }
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn numbers_in_a_row_have_the_text_form() {
    let node = node().await;
    let server = server_of(node.clone(), settings()).await;
    let body = r#"{"name":"codes","kind":"segment","text":"base36"}"#;
    assert_eq!(server.post("/v1/sources", body).await.status, 200);
    let mut client = server.resp().await;
    client.send(request(&["INCRBY", "codes", "35"]) + &request(&["INCRBY", "codes", "2"])).await;
    client.expect("$1\r\nz\r\n$2\r\n11\r\n").await;
    assert_eq!(client.ask(&["DECODE", "11", "codes"]).await, "*4");
    client.expect("$2\r\nid\r\n$2\r\n11\r\n$6\r\nnumber\r\n$2\r\n37\r\n").await;
}

/// A connection follows a changed definition, though it caches the source.
#[tokio::test]
async fn changed_text_form_applies_to_the_next_command() {
    let server = server().await;
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["INCRBY", "numbers", "35"]).await, ":35");
    assert_eq!(client.ask(&["INCR", "numbers"]).await, ":36");
    let alter = async |text: &str| {
        let body = format!(r#"{{"text":"{text}"}}"#);
        let altered = server.send("PATCH", "/v1/sources/numbers", "", &body).await;
        assert_eq!(altered.status, 200, "{altered:?}");
    };
    alter("base36").await;
    client.send(request(&["INCR", "numbers"])).await;
    client.expect("$2\r\n11\r\n").await;
    alter("decimal").await;
    assert_eq!(client.ask(&["INCR", "numbers"]).await, ":38");
}

/// Commands, and the replies to them as integers and as strings.
const REPLIES: [(&[&str], &str, &str); 13] = [
    (&["INCR", "numbers"], ":1\r\n", "$1\r\n1\r\n"),
    (&["INCR", "numbers"], ":2\r\n", "$1\r\n2\r\n"),
    (&["INCRBY", "numbers", "8"], ":10\r\n", "$2\r\n10\r\n"),
    (&["MINT", "numbers"], ":11\r\n", "$2\r\n11\r\n"),
    (&["MINT", "numbers", "2"], "*2\r\n:12\r\n:13\r\n", "*2\r\n$2\r\n12\r\n$2\r\n13\r\n"),
    (&["INCR", "counters:a"], ":1\r\n", "$1\r\n1\r\n"),
    (&["INCR", "counters:a"], ":2\r\n", "$1\r\n2\r\n"),
    (&["INCRBY", "counters:a", "2"], ":4\r\n", "$1\r\n4\r\n"),
    (&["HINCRBY", "counters", "a", "5"], ":9\r\n", "$1\r\n9\r\n"),
    (&["MINT", "counters:a", "1"], "*1\r\n:10\r\n", "*1\r\n$2\r\n10\r\n"),
    (&["GET", "counters:a"], "$2\r\n10\r\n", "$2\r\n10\r\n"),
    (&["HGET", "counters", "a"], "$2\r\n10\r\n", "$2\r\n10\r\n"),
    (&["CLUSTER", "KEYSLOT", "foo"], ":12182\r\n", ":12182\r\n"),
];

/// Checks the replies of a new server after `before`, each by itself and in a transaction.
async fn replies(change: impl Fn(&mut snowmint_server::Settings), before: &str, strings: bool) {
    for version in ["2", "3"] {
        let (by_itself, queued) = (server_with(&change).await, server_with(&change).await);
        let mut client = connected(&by_itself, version, before).await;
        for (command, integers, texts) in REPLIES {
            client.send(request(command)).await;
            client.expect(if strings { texts } else { integers }).await;
        }
        let mut client = connected(&queued, version, before).await;
        let mut sent = request(&["MULTI"]);
        let mut expected = format!("+OK\r\n{}*13\r\n", "+QUEUED\r\n".repeat(REPLIES.len()));
        for (command, integers, texts) in REPLIES {
            sent.push_str(&request(command));
            expected.push_str(if strings { texts } else { integers });
        }
        client.send(sent + &request(&["EXEC"])).await;
        client.expect(&expected).await;
    }
}

async fn connected(server: &Server, version: &str, before: &str) -> Client {
    let mut client = server.resp().await;
    client.send(before).await;
    for _ in before.lines() {
        assert!(client.line().await.starts_with('+'), "{before}");
    }
    client.speaks(version).await;
    client
}

#[tokio::test]
async fn strings_come_from_any_source_if_wanted() {
    replies(|_| {}, "", false).await;
    replies(|_| {}, "SELECT 0\r\n", false).await;
    replies(|_| {}, "SELECT 1\r\n", true).await;
    replies(|_| {}, "SELECT 1\r\nSELECT 0\r\n", false).await;
    replies(|_| {}, "SELECT 1\r\nRESET\r\n", false).await;
    for before in ["", "SELECT 0\r\n", "SELECT 1\r\nRESET\r\n"] {
        replies(|settings| settings.resp.strings = true, before, true).await;
    }
}

/// A rejected database changes nothing.
#[tokio::test]
async fn other_databases_do_not_exist() {
    let server = server().await;
    let mut client = server.resp().await;
    for before in ["0", "1"] {
        assert_eq!(client.ask(&["SELECT", before]).await, "+OK");
        let is_string = client.ask(&["INCR", "numbers"]).await.starts_with('$');
        assert_eq!(is_string, before == "1");
        if is_string {
            client.line().await;
        }
        for other in ["2", "16", "01", "99999999999999999999", "-1", "x", ""] {
            let refused = client.ask(&["SELECT", other]).await;
            assert!(refused.starts_with("-ERR "), "{other}: {refused}");
        }
        client.send(request(&["INCR", "numbers"])).await;
        let next = client.line().await;
        assert_eq!(next.starts_with('$'), is_string, "{next}");
        if is_string {
            client.line().await;
        }
    }
    // SELECT in a transaction applies to the commands after it.
    client.send("SELECT 0\r\nMULTI\r\nINCR numbers\r\nSELECT 1\r\nINCR numbers\r\nEXEC\r\n").await;
    client.expect("+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n").await;
    client.expect("*3\r\n:5\r\n+OK\r\n$1\r\n6\r\n").await;
}

/// No number of `DECODE` is rounded either.
#[tokio::test]
async fn decode_replies_with_strings_if_wanted() {
    let server = server().await;
    let mut client = server.resp().await;
    client.send("SELECT 1\r\nINCR default\r\n").await;
    client.expect("+OK\r\n").await;
    let id = client.string().await;
    let head = client.ask(&["DECODE", &id, "default"]).await;
    for _ in 0..head[1..].parse::<usize>().unwrap() {
        client.string().await;
    }
    assert_eq!(client.ask(&["PING"]).await, "+PONG");
}

/// These have no number: they are strings for every client.
#[tokio::test]
async fn texts_are_strings_from_every_command() {
    let server = server().await;
    for (name, keys, length) in [
        ("uuids", r#""kind":"uuid""#, 36),
        ("ulids", r#""kind":"ulid""#, 26),
        ("serials", r#""kind":"segment","serial":{"prefix":"INV-","width":6}"#, 10),
    ] {
        let body = format!(r#"{{"name":"{name}",{keys}}}"#);
        let defined = server.post("/v1/sources", &body).await;
        assert_eq!(defined.status, 200, "{defined:?}");
        for version in ["2", "3"] {
            let mut client = server.resp().await;
            client.speaks(version).await;
            for command in
                [&["INCR", name][..], &["INCR", name], &["INCRBY", name, "1"], &["MINT", name]]
            {
                client.send(request(command)).await;
                assert_eq!(client.string().await.len(), length, "{command:?}");
                client.send(format!("MULTI\r\n{}EXEC\r\n", request(command))).await;
                client.expect("+OK\r\n+QUEUED\r\n*1\r\n").await;
                assert_eq!(client.string().await.len(), length, "{command:?} in EXEC");
            }
            assert_eq!(client.ask(&["MINT", name, "2"]).await, "*2");
            assert_ne!(client.string().await, client.string().await);
            let rejected = client.ask(&["INCRBY", name, "2"]).await;
            assert!(rejected.starts_with("-ERR source "), "{rejected}");
        }
    }
}
