//! Two versions on one store, under load, forward and back. There is one version so far: what the newer one
//! writes is written by hand.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]
#![allow(clippy::disallowed_methods, reason = "real servers are waited for in real time")]

mod common;
#[path = "common/server.rs"]
mod server;

use std::process::Command;
use std::time::Duration;

use common::{Ran, json, run, until};
use server::{Server, serve};
use snowmint_testkit::servers::Redis;

/// Where a namespace of a Redis store says what it is.
const KEY: &str = "snowmint:{default}";

#[test]
fn an_older_server_stops_at_its_window_when_a_newer_one_has_come_and_goes_on_when_it_has_gone() {
    let redis = Redis::start(&[]);
    let url = redis.url();
    let cli = |words: &[&str]| {
        let output = Command::new("redis-cli").args(["-u", &url]).args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    let folder = tempfile::tempdir().unwrap();
    let server_at = |name: &str| {
        let mut command = serve(&folder.path().join(name), &["--store", &url]);
        command.env("SNOWMINT_WORKER__WINDOW", "2s");
        command
    };
    let server = Server::start(server_at("older"));
    let health = || run(&["health", "--server", &server.http]);
    until("it is ready", || health().code == 0);
    let load = std::thread::spawn({
        let http = server.http.clone();
        move || run(&["bench", &http, "--rate", "200", "-d", "15s", "-c", "2", "--json"])
    });
    std::thread::sleep(Duration::from_secs(2));

    let record = cli(&["HGET", KEY, "store"]);
    assert!(record.contains("\"form\":1"), "{record}");
    // As every change: counted, and with the count as the version of what was changed.
    let (_, value) = record.split_once(' ').unwrap();
    let count = cli(&["HINCRBY", KEY, "writes", "1"]);
    let newer = format!("{count} {}", value.replace("\"form\":1", "\"form\":2"));
    cli(&["HSET", KEY, "store", &newer]);
    until("it says that a newer one has come", || {
        let Ran { out, code, .. } = health();
        code == 1 && out.contains("newer Snowmint")
    });
    let refused: Ran = server_at("another").output().unwrap().into();
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("newer Snowmint"), "{}", refused.err);

    // Back: its own rows again, as a restore or the newer one's way back leaves them.
    cli(&["HSET", KEY, "store", &record]);
    until("it is ready by itself", || health().code == 0);
    let another = Server::start(server_at("another"));
    another.mint(&["-n", "10"]).ok();
    let ran = load.join().unwrap();
    assert_eq!(ran.code, 0, "{}", ran.err);
    let report = json(&ran.out);
    assert_eq!(report["unique"]["repeated"], 0, "{report}");
    assert_eq!(report["unique"]["compared"], report["ids"], "{report}");
    assert!(report["ids"].as_u64().unwrap() > 200, "{report}");
    for server in [server, another] {
        server.signal("-TERM");
        let (code, log) = server.wait();
        assert_eq!(code, 0, "{log}");
    }
}
