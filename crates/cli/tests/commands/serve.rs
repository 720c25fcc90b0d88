//! `serve` from start to end, with real clients.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use crate::common::{Ran, json, run, run_with, snowmint};
use crate::server::{Server, serve};

/// Ten years of 365 days, in milliseconds.
const TEN_YEARS_MS: i64 = 315_360_000_000;

fn refused(data_dir: &Path, more: &[&str]) -> Ran {
    serve(data_dir, more).output().unwrap().into()
}

#[test]
fn server_mints_over_http_and_resp_and_stops_on_a_signal() {
    let directory = tempfile::tempdir().unwrap();
    let mut all = String::new();
    for _ in 0..2 {
        let server = Server::start(serve(directory.path(), &[]));
        all.push_str(&server.mint(&["-n", "25000"]).ok());
        all.push_str(&server.mint(&["--format", "decimal"]).ok());

        let mut resp = TcpStream::connect(&server.resp).unwrap();
        resp.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        resp.write_all(b"PING\r\nINCR default\r\n").unwrap();
        let mut reply = [0; 8];
        resp.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"+PONG\r\n:");
        drop(resp);

        server.signal("-TERM");
        let (code, err) = server.wait();
        assert_eq!(code, 0, "{err}");
        assert!(err.contains("stopped"), "{err}");
    }
    assert_eq!(
        run_with(&["verify", "--increasing"], &all).ok(),
        "50002 IDs, all different, each greater than the one before\n"
    );
}

#[test]
fn sources_are_managed_from_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(serve(directory.path(), &[]));
    let source = |args: &[&str]| {
        let all = [&["source"], args, &["--server", &server.http, "--json"]].concat();
        run(&all)
    };
    let names = |out: &str| -> Vec<String> {
        out.lines().map(|line| json(line)["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&source(&["list"]).ok()), ["counters", "default", "numbers"]);
    let defined = json(&source(&["define", "orders", "--layout", "discord"]).ok());
    assert!(defined["layout"].as_str().unwrap().starts_with("time=42,worker=5+5,"));
    assert_eq!(json(&source(&["alter", "orders", "--burst", "5ms"]).ok())["burst"], "5ms");
    let shown = json(&source(&["show", "orders"]).ok());
    assert_eq!(shown["burst"], "5ms");
    // Programs see all that people see.
    let text = run(&["source", "show", "orders", "--server", &server.http]).ok();
    let spread = shown["shard_spread"].as_str().unwrap_or_default();
    assert!(text.contains(&format!("\n# shards: {spread}\n")), "{shown}\n{text}");
    let counters = json(&source(&["show", "counters"]).ok());
    assert_eq!(counters.get("shard_spread"), None, "{counters}");
    // An alteration with a version changes that version, or nothing.
    let seen = defined["version"].to_string();
    let late = source(&["alter", "orders", "--burst", "7ms", "--if-version", &seen]);
    assert_eq!(late.code, 2, "{late:?}");
    assert!(late.err.contains("; read it again"), "{late:?}");
    let shown = json(&source(&["show", "orders"]).ok());
    assert_eq!(shown["burst"], "5ms");
    let seen = shown["version"].to_string();
    source(&["alter", "orders", "--burst", "6ms", "--if-version", &seen]).ok();

    let id = server.mint(&["orders"]).ok();
    let decoded = json(&run(&["decode", id.trim(), "--layout", "discord", "--json"]).ok());
    assert!(decoded["age_ms"].as_i64().unwrap() < 600_000, "{decoded}");
    assert_eq!(server.mint(&["numbers", "-n", "3"]).ok(), "1\n2\n3\n");

    source(&["disable", "orders"]).ok();
    assert_eq!(server.mint(&["orders"]).code, 1);
    source(&["alter", "orders", "--enabled", "true"]).ok();
    server.mint(&["orders"]).ok();

    assert_eq!(source(&["show", "nothing"]).code, 1);
    assert_eq!(source(&["define", "orders", "--layout", "twitter"]).code, 2);
    assert_eq!(server.mint(&["nothing"]).code, 1);
    let workers = run(&["worker", "list", "--server", &server.http, "--json"]).ok();
    let live: Vec<_> = workers.lines().map(json).filter(|one| one["live"] == true).collect();
    assert!(!live.is_empty(), "{workers}");
    assert!(live.iter().all(|worker| worker["own"] == true), "{workers}");
    let table = run(&["worker", "list", "--server", &server.http]).ok();
    let own = |line: &str| line.split_whitespace().nth(2) == Some("own");
    assert!(table.lines().skip(1).any(own), "{table}");

    // Another server on the same store sees the first server's numbers as live, not as its own.
    let store = format!("sqlite:{}", directory.path().join("snowmint.db").display());
    let second_dir = tempfile::tempdir().unwrap();
    let second = Server::start(serve(second_dir.path(), &["--store", &store]));
    second.mint(&["default"]).ok();
    let table = run(&["worker", "list", "--server", &second.http]).ok();
    let state = |state: &str| {
        table.lines().skip(1).any(|line| line.split_whitespace().nth(2) == Some(state))
    };
    assert!(state("own") && state("held"), "{table}");
}

#[test]
fn sources_of_the_configuration_are_there_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("snowmint.toml");
    std::fs::write(
        &file,
        "[sources]\nbuiltin = false\n[sources.short]\nlayout = \"js53\"\ntext = \"base62\"\n\
         [sources.names]\nkind = \"uuid\"\nuuid.version = 5\nuuid.namespace = \"dns\"\n",
    )
    .unwrap();
    let data_dir = directory.path().join("data");
    let config = file.to_str().unwrap();
    let server = Server::start(serve(&data_dir, &["--config", config]));
    let short = server.mint(&["short"]).ok();
    assert!(short.trim().len() < 11, "{short}");
    let name = server.mint(&["names", "--key", "example.com"]).ok();
    assert_eq!(name, run(&["mint", "uuid:v5", "--in", "dns", "--name", "example.com"]).ok());
    let decode = |id: &str, source: &str| {
        run(&["decode", id.trim(), "--source", source, "--server", &server.http, "--json"])
    };
    let decoded = json(&decode(&short, "short").ok());
    assert_eq!(decoded["id"], short.trim());
    assert!(decoded["age_ms"].as_i64().unwrap() < 600_000, "{decoded}");
    assert_eq!(decode("!", "short").code, 2);
    assert_eq!(decode(&short, "default").code, 1);
    assert_eq!(server.mint(&["default"]).code, 1);
    server.kill();

    // The same name has another definition: the catalog's stays, and this server does not start.
    std::fs::write(&file, "[sources.short]\nlayout = \"twitter\"\n").unwrap();
    let ran = refused(&data_dir, &["--config", config]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
    for part in ["snowmint.toml, line 2", "sources.short"] {
        assert!(ran.err.contains(part), "{}", ran.err);
    }
}

#[test]
fn kill_9_and_a_clock_that_goes_back_repeat_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut all = String::new();
    // A clock before the epoch, the beginning of 2026, cannot mint. Any other clock can, at once.
    for (offset_ms, code) in
        [(0, 0), (-1, 0), (-1_000, 0), (60_000, 0), (-3_600_000, 0), (-TEN_YEARS_MS, 4), (0, 0)]
    {
        let mut command = serve(directory.path(), &[]);
        command.env("SNOWMINT_TEST_CLOCK_OFFSET_MS", offset_ms.to_string());
        let server = Server::start(command);
        let ran = server.mint(&["-n", "20000"]);
        assert_eq!(ran.code, code, "{offset_ms}: {}", ran.err);
        let expected = if code == 0 { "" } else { "before the epoch of source \"default\"" };
        assert!(ran.err.contains(expected), "{offset_ms}: {}", ran.err);
        all.push_str(&ran.out);
        server.kill();
    }
    assert_eq!(run_with(&["verify"], &all).ok(), "120000 IDs, all different\n");
}

#[test]
fn a_data_directory_has_one_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(serve(directory.path(), &[]));
    let ran = refused(directory.path(), &[]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    // A concurrent command is another member, with another worker number.
    let second: Ran =
        snowmint(&["mint", "-n", "1000", "--data-dir", directory.path().to_str().unwrap()])
            .output()
            .unwrap()
            .into();
    let both = second.ok() + &server.mint(&["-n", "1000"]).ok();
    assert_eq!(run_with(&["verify"], &both).ok(), "2000 IDs, all different\n");
}

#[test]
fn rolled_back_store_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let (data_dir, aside) = (directory.path().join("data"), directory.path().join("aside"));
    std::fs::create_dir_all(&aside).unwrap();
    let stop = |server: Server| {
        server.signal("-INT");
        assert_eq!(server.wait().0, 0);
    };
    let server = Server::start(serve(&data_dir, &[]));
    let mut all = server.mint(&["numbers", "-n", "10"]).ok();
    stop(server);
    let copy = |from: &Path, to: &Path| {
        for name in ["snowmint.db", "snowmint.db-wal"] {
            let _ = std::fs::remove_file(to.join(name));
            if from.join(name).exists() {
                std::fs::copy(from.join(name), to.join(name)).unwrap();
            }
        }
    };
    copy(&data_dir, &aside);
    let server = Server::start(serve(&data_dir, &[]));
    all.push_str(&server.mint(&["numbers", "-n", "1000"]).ok());
    stop(server);
    copy(&aside, &data_dir);

    // The server reports it and mints nothing; nor does any other server, whatever it remembers.
    let server = Server::start(serve(&data_dir, &[]));
    let file = format!("sqlite:{}", data_dir.join("snowmint.db").display());
    let other = Server::start(serve(&directory.path().join("other"), &["--store", &file]));
    let dir = data_dir.to_str().unwrap();
    for server in [&server, &other] {
        let ran = server.mint(&["numbers", "-n", "1"]);
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
        assert!(ran.err.contains("rolled back") && ran.err.contains("recover"), "{}", ran.err);
    }
    let second = run(&["mint", "numbers", "--store", &file, "--data-dir", dir]);
    assert_eq!((second.code, second.out.as_str()), (3, ""), "{}", second.err);
    let doctor = run(&["doctor", "--data-dir", dir]);
    assert!(doctor.out.contains("store is in doubt, and no server mints"), "{}", doctor.out);
    stop(server);
    stop(other);
    // A report proves nothing once its server is stopped: its journal is read.
    let refused = run(&["worker", "fast-forward", "--data-dir", dir]);
    assert_eq!(refused.code, 3, "{}", refused.err);
    let others = directory.path().join("other");
    let others = ["--journal", others.to_str().unwrap()];
    run(&[&["worker", "fast-forward", "--data-dir", dir][..], &others].concat()).ok();
    let server = Server::start(serve(&data_dir, &[]));
    all.push_str(&server.mint(&["numbers", "-n", "1000"]).ok());
    assert_eq!(run_with(&["verify"], &all).ok(), "2010 IDs, all different\n");
}

#[test]
fn failed_start_reports_its_cause_and_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let occupied = occupied.local_addr().unwrap().to_string();
    let ran: Ran =
        snowmint(&["serve", "--data-dir", directory.path().to_str().unwrap(), "--http", &occupied])
            .output()
            .unwrap()
            .into();
    assert_eq!((ran.code, ran.out.as_str()), (4, ""), "{}", ran.err);
    assert!(ran.err.contains(&occupied), "{}", ran.err);
    for (more, part) in [
        (&["--store", "memory:"][..], "--ephemeral"),
        (&["--store", "leaf:x"], "sqlite:"),
        (&["--store", "leaf:x", "--check"], "sqlite:"),
        (&["--namespace", "a b"], "namespace"),
        (&["--config", "/nonexistent.toml"], "/nonexistent.toml"),
    ] {
        let ran = refused(directory.path(), more);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{more:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{more:?}: {}", ran.err);
    }
    let ran: Ran = snowmint(&["serve", "--http", "nonsense", "--check"]).output().unwrap().into();
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("HOST:PORT"), "{}", ran.err);
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert_eq!(refused(&file, &[]).code, 4);
    assert_eq!(refused(directory.path(), &["--check"]).ok(), "the configuration is right\n");
}

#[test]
fn memory_store_serves_with_the_ephemeral_flag() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(serve(directory.path(), &["--store", "memory:", "--ephemeral"]));
    server.mint(&["-n", "5"]).ok();
    server.signal("-TERM");
    assert_eq!(server.wait().0, 0);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
