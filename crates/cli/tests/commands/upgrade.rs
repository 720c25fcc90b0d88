//! Two versions on one store, under load, forward and back. Only one version exists so far: the
//! newer one's writes are made by hand.

use std::process::{Command, Stdio};

use crate::common::{Ran, ended, json, run, snowmint, until};
use crate::server::{Server, serve};
use snowmint_testkit::servers::Redis;
use snowmint_testkit::{children, programs};

/// Key of a namespace's description in a Redis store.
const KEY: &str = "snowmint:{default}";

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
fn older_server_stops_at_its_window_while_a_newer_one_runs() {
    let redis = Redis::start(&[]);
    let url = redis.url();
    let cli = |words: &[&str]| {
        let output = Command::new(programs::installed("redis-cli"))
            .args(["-u", &url])
            .args(words)
            .output()
            .unwrap();
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
    let load = ["bench", &server.http, "--rate", "200", "-d", "10m", "-c", "2", "--json"];
    let mut load = snowmint(&load).stdout(Stdio::piped()).spawn().unwrap();
    let mints_on = || {
        let before = server.issued();
        until("it mints on", || server.issued() > before + 200.0);
    };
    mints_on();

    let record = cli(&["HGET", KEY, "store"]);
    assert!(record.contains("\"form\":3"), "{record}");
    // Each change is counted, and the changed value has the count as its version.
    let (_, value) = record.split_once(' ').unwrap();
    let count = cli(&["HINCRBY", KEY, "writes", "1"]);
    let newer = format!("{count} {}", value.replace("\"form\":3", "\"form\":4"));
    cli(&["HSET", KEY, "store", &newer]);
    until("it says that a newer one has come", || {
        let Ran { out, code, .. } = health();
        code == 1 && out.contains("update this program")
    });
    let refused: Ran = server_at("another").output().unwrap().into();
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("update this program"), "{}", refused.err);

    // The old rows return, as after a restore or the newer version's downgrade.
    cli(&["HSET", KEY, "store", &record]);
    until("it is ready by itself", || health().code == 0);
    let another = Server::start(server_at("another"));
    another.mint(&["-n", "10"]).ok();
    mints_on();
    children::signal(load.id(), "-INT");
    assert_eq!(ended(&mut load).code(), Some(0));
    let report = json(&String::from_utf8(load.wait_with_output().unwrap().stdout).unwrap());
    assert_eq!(report["unique"]["repeated"], 0, "{report}");
    assert_eq!(report["unique"]["compared"], report["ids"], "{report}");
    assert!(report["ids"].as_u64().unwrap() > 400, "{report}");
    for server in [server, another] {
        server.signal("-TERM");
        let (code, log) = server.wait();
        assert_eq!(code, 0, "{log}");
    }
}
