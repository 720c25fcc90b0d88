//! Commands that programs send besides `INCR` to count in Redis: each has a meaning for counters
//! and sources, takes no number, and lowers or repeats none.

use std::sync::Arc;

use snowmint_coord::{MemoryStore, Node, NodeSettings, Platform};
use snowmint_server::Settings;

use super::access::{MINTER, guarded_with};
use super::common::{Client, request, server, server_of, server_with, settings};

/// Sends a command of words, and checks that exactly these bytes come next.
async fn gets(client: &mut Client, command: &str, reply: &str) {
    client.send(request(&command.split(' ').collect::<Vec<_>>())).await;
    client.send(request(&["ECHO", command])).await;
    client.expect(&format!("{reply}\r\n${}\r\n{command}\r\n", command.len())).await;
}

#[tokio::test]
async fn key_is_prepared_and_read_as_in_redis() {
    let server = server().await;
    let mut client = server.resp().await;
    for (command, reply) in [
        // Without a number the counter does not exist, whatever prepares it.
        ("EXISTS counters:a", ":0"),
        ("TYPE counters:a", "+none"),
        ("TTL counters:a", ":-2"),
        ("PTTL counters:a", ":-2"),
        ("EXPIRETIME counters:a", ":-2"),
        ("PERSIST counters:a", ":0"),
        ("SET counters:a 0 NX", "$-1"),
        ("set counters:a 0 nx", "$-1"),
        ("SET counters:a 0 NX GET", "$-1"),
        ("SET counters:a 0 keepttl get nx", "$-1"),
        ("SETNX counters:a 0", ":0"),
        ("EXISTS counters:a", ":0"),
        ("INCR counters:a", ":1"),
        // What is there stays, whatever the value.
        ("SET counters:a 0 NX", "$-1"),
        ("SET counters:a 900 NX", "$-1"),
        ("SET counters:a 0 NX GET", "$1\r\n1"),
        ("SETNX counters:a 900", ":0"),
        ("EXISTS counters:a counters:a counters:b default absent:x absent", ":3"),
        ("TOUCH counters:a default", ":2"),
        ("TTL counters:a", ":-1"),
        ("pttl counters:a", ":-1"),
        ("EXPIRETIME counters:a", ":-1"),
        ("PEXPIRETIME counters:a", ":-1"),
        ("TYPE counters:a", "+string"),
        ("PERSIST counters:a", ":0"),
        ("MGET counters:a counters:b default", "*3\r\n$1\r\n1\r\n$-1\r\n$-1"),
        ("INCR counters:a", ":2"),
        // A source exists from its definition on.
        ("SET default 0 NX", "$-1"),
        ("SETNX numbers 0", ":0"),
        ("EXISTS default numbers counters", ":3"),
        ("TTL default", ":-1"),
        ("TYPE default", "+string"),
        ("TYPE counters", "+hash"),
        ("TYPE absent", "+none"),
        ("INCR numbers", ":1"),
        ("SET counters:a 0 NX XX", "-ERR syntax error"),
        ("SET counters:a 0 nope", "-ERR syntax error"),
        ("SET counters:a 0 NX EX", "-ERR syntax error"),
        ("SET counters:a 0 NX EX 5 PX 5", "-ERR syntax error"),
        ("SET counters:a 0 KEEPTTL NX EXAT 5", "-ERR syntax error"),
        ("SET counters:a", "-ERR wrong number of arguments for 'set' command"),
        ("SETNX counters:a", "-ERR wrong number of arguments for 'setnx' command"),
        ("EXISTS", "-ERR wrong number of arguments for 'exists' command"),
    ] {
        gets(&mut client, command, reply).await;
    }
}

/// Another first value is an error: neither "set" nor "exists already" would be true.
#[tokio::test]
async fn counter_begins_at_no_other_value() {
    let server = server().await;
    let mut client = server.resp().await;
    for command in ["SET counters:a 41 NX", "SETNX counters:a 41", "SET counters:a x NX GET"] {
        let reply = client.ask(&command.split(' ').collect::<Vec<_>>()).await;
        assert!(reply.starts_with("-ERR key \"a\" has no numbers yet and begins at 1"), "{reply}");
        assert!(reply.contains("PUT /v1/counters/counters/KEY"), "{reply}");
    }
    for command in ["SET absent:a 0 NX", "SETNX absent 0"] {
        let reply = client.ask(&command.split(' ').collect::<Vec<_>>()).await;
        assert!(reply.starts_with("-ERR source \"absent\" does not exist"), "{reply}");
    }
    for command in ["EXISTS default:x", "SETNX numbers:x 0", "TTL counters:", "TYPE a/b"] {
        let reply = client.ask(&command.split(' ').collect::<Vec<_>>()).await;
        assert!(reply.starts_with("-ERR "), "{command}: {reply}");
    }
    assert_eq!(client.ask(&["INCR", "counters:a"]).await, ":1");
}

/// The error names what helps the program that sends the command.
#[tokio::test]
async fn rejected_command_says_where_its_program_belongs() {
    let server = server().await;
    let mut client = server.resp().await;
    for (command, part) in [
        ("SET lock token NX PX 30000", "SET with NX and an expiry takes a lock"),
        ("SET lock token PX 30000 NX", "Keep locks in Redis"),
        ("SET session text EX 60", "keep locks, sessions and caches in Redis"),
        ("SETEX session 60 text", "keep locks, sessions and caches in Redis"),
        ("DEL lock", "keep locks, sessions and caches in Redis"),
        ("SET name text", "keep other values in Redis"),
        ("EVAL script 0", "keep locks and queues in Redis"),
        ("INCRBY counters:a 18446744073709551615", "count 18446744073709551615 or more exceeds"),
        ("INCRBY counters:a 99999999999999999999", "count 18446744073709551615 or more exceeds"),
    ] {
        let reply = client.ask(&command.split(' ').collect::<Vec<_>>()).await;
        assert!(reply.starts_with("-ERR ") && reply.contains(part), "{command}: {reply}");
    }
}

/// A program of Redis may send long scripts and values, and gets the reason, on an open connection.
#[tokio::test]
async fn long_command_is_rejected_with_its_reason() {
    let server = server().await;
    let mut client = server.resp().await;
    let long = "x".repeat(20_000);
    let many = vec!["key"; 2_000];
    let parts = [&long[..10_000]; 8];
    let cases: &[(&[&str], &str)] = &[
        (&["EVAL", &long, "0"], "-ERR EVAL runs a script"),
        (&["script", "LOAD", &long], "-ERR SCRIPT runs a script"),
        (&["SET", "key", &long], "-ERR SET sets a value"),
        (&[&["DEL"], &many[..]].concat(), "-ERR DEL makes a key begin again"),
        (&[&["RPUSH", "list"], &parts[..]].concat(), "-ERR RPUSH needs a value of another kind"),
        (&["ECHO", &long], "-ERR ECHO has an argument above 16384 bytes; send less at once"),
        (&[&["MGET"], &many[..]].concat(), "-ERR MGET has more than 1024 arguments; send less"),
        (&[&["MGET"], &parts[..]].concat(), "-ERR MGET has more than 65536 bytes; send less"),
        (&["NOPE", &long], "-ERR unknown command 'NOPE'"),
    ];
    for (command, reason) in cases {
        // Requests before and after it get their replies.
        let sent = [request(&["ECHO", "a"]), request(command), request(&["ECHO", "b"])];
        client.send(sent.concat()).await;
        client.expect("$1\r\na\r\n").await;
        let reply = client.line().await;
        assert!(reply.starts_with(reason), "{reason}: {reply}");
        client.expect("$1\r\nb\r\n").await;
    }
    let sent = request(&["MULTI"]) + &request(cases[0].0) + &request(&["EXEC"]);
    client.send(sent).await;
    client.expect("+OK\r\n-ERR EVAL ").await;
    client.line().await;
    client.expect("-EXECABORT ").await;
    client.line().await;
    let skipped = request(&["CLIENT", "REPLY", "SKIP"]) + &request(cases[0].0);
    client.send(skipped + &request(&["ECHO", "c"])).await;
    client.expect("$1\r\nc\r\n").await;
}

/// The error for a key in the form of an application of Redis names the setting.
#[tokio::test]
async fn unknown_source_names_the_default_counter_source() {
    let plain = server().await;
    let mut client = plain.resp().await;
    for command in
        [&["INCR", "counter:__rand_int__"][..], &["INCRBY", "views", "2"], &["GET", "a:b"]]
    {
        let reply = client.ask(command).await;
        assert!(
            reply.ends_with(", or set resp.default_counter_source to count keys of any name"),
            "{reply}"
        );
    }
    // These name their source: the setting changes nothing.
    for command in [
        &["HINCRBY", "views", "2", "1"][..],
        &["HGET", "views", "2"],
        &["MINT", "views"],
        &["DECODE", "1", "views"],
    ] {
        for in_transaction in [false, true] {
            if in_transaction {
                assert_eq!(client.ask(&["MULTI"]).await, "+OK");
            }
            let reply = client.ask(command).await;
            assert!(reply.starts_with("-ERR source \"views\" does not exist"), "{reply}");
            assert!(!reply.contains("default_counter_source"), "{command:?}: {reply}");
        }
        assert_eq!(client.ask(&["DISCARD"]).await, "+OK");
    }
    let default = |settings: &mut Settings| {
        settings.resp.default_counter_source = "counters".into();
    };
    let server = server_with(default).await;
    let mut client = server.resp().await;
    for (command, reply) in [
        ("SET counter:7 0 NX", "$-1"),
        ("EXISTS counter:7", ":0"),
        ("INCR counter:7", ":1"),
        ("EXISTS counter:7 default", ":1"),
        ("TYPE counter:7", "+string"),
    ] {
        gets(&mut client, command, reply).await;
    }
    let reply = client.ask(&["MINT", "absent"]).await;
    assert_eq!(reply, "-ERR source \"absent\" does not exist; define it");
}

#[tokio::test]
async fn reading_a_key_needs_the_right_to_mint() {
    let (server, _) = guarded_with(|_| {}).await;
    let mut client = server.resp().await;
    assert!(client.ask(&["SET", "default", "0", "NX"]).await.starts_with("-NOAUTH"));
    assert_eq!(client.ask(&["AUTH", MINTER]).await, "+OK");
    // Whether a source exists is no secret to callers with a right over it alone.
    for name in ["counters:a", "counters", "absent"] {
        for command in [
            &["EXISTS", name][..],
            &["TTL", name],
            &["TYPE", name],
            &["SETNX", name, "0"],
            &["MGET", name],
        ] {
            let reply = client.ask(command).await;
            assert!(reply.starts_with("-NOPERM"), "{command:?}: {reply}");
        }
    }
    gets(&mut client, "EXISTS default", ":1").await;
    gets(&mut client, "EXISTS numbers", ":1").await;
    let reply = client.ask(&["EXISTS", "default", "counters:a"]).await;
    assert!(reply.starts_with("-NOPERM"), "{reply}");
}

/// A key of another server's section gets the reply that `INCR` gets.
#[tokio::test]
async fn key_of_another_server_is_redirected() {
    let store = MemoryStore::new("test").unwrap();
    let open = async |address: &str| {
        let node_settings =
            NodeSettings { builtin: true, address: address.into(), ..NodeSettings::default() };
        let store = Arc::new(store.handle("test").unwrap());
        Node::open(store, node_settings, Platform::system()).await.unwrap()
    };
    let owner = open("resp=127.0.0.1:7 http=127.0.0.1:8").await;
    owner.source("counters").await.unwrap().count(b"k", 5, 60_000).await.unwrap();
    let server = server_of(open("").await, settings()).await;
    let mut client = server.resp().await;
    let moved = client.ask(&["INCR", "counters:k"]).await;
    assert!(moved.starts_with("-MOVED ") && moved.ends_with(" 127.0.0.1:7"), "{moved}");
    for command in [
        &["SET", "counters:k", "0", "NX"][..],
        &["SETNX", "counters:k", "0"],
        &["EXISTS", "default", "counters:k"],
        &["TTL", "counters:k"],
        &["TYPE", "counters:k"],
        &["PERSIST", "counters:k"],
        &["MGET", "counters:k"],
    ] {
        assert_eq!(client.ask(command).await, moved, "{command:?}");
    }
    assert_eq!(client.ask(&["EXISTS", "default"]).await, ":1");
}

/// A transaction may read keys; each reply has its place.
#[tokio::test]
async fn keys_are_read_in_transactions() {
    let server = server().await;
    let mut client = server.resp().await;
    client
        .send("MULTI\r\nSETNX counters:a 0\r\nINCR counters:a\r\nTTL counters:a\r\nEXEC\r\n")
        .await;
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:0\r\n:1\r\n:-1\r\n").await;
}

#[tokio::test]
async fn deleted_source_exists_no_longer() {
    let server = server().await;
    let orders = r#"{"name":"orders","kind":"segment"}"#;
    assert_eq!(server.post("/v1/sources", orders).await.status, 200);
    let mut client = server.resp().await;
    for (command, reply) in [("EXISTS orders", ":1"), ("INCR orders", ":1")] {
        gets(&mut client, command, reply).await;
    }
    assert_eq!(server.send("DELETE", "/v1/sources/orders", "", "").await.status, 204);
    gets(&mut client, "EXISTS orders", ":0").await;
    let reply = client.ask(&["SETNX", "orders", "0"]).await;
    assert!(reply.starts_with("-ERR source \"orders\" "), "{reply}");
}
