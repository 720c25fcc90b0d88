//! `bench` against the real server in all three protocols, and in its own process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::common::{self, Ran, ended, json, run, until};
use crate::server::{Server, serve};
use serde_json::Value;
use snowmint_testkit::children;

fn bench(args: &[&str]) -> Ran {
    run(&[&["bench", "--json"], args].concat())
}

/// Returns the report of a run without any error.
#[track_caller]
fn report(args: &[&str]) -> Value {
    let report = json(&bench(args).ok());
    assert_eq!(report["errors"], serde_json::json!([]), "{report}");
    report
}

#[track_caller]
fn number(report: &Value, pointer: &str) -> f64 {
    let value = report.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("{pointer}: {report}"))
}

fn server(folder: &Path) -> Server {
    let config = folder.join("snowmint.toml");
    let sources = "[sources.ulids]\nkind = \"ulid\"\n[sources.short]\ntext = \"base62\"\n\
                   [sources.names]\nkind = \"uuid\"\nuuid.version = 5\nuuid.namespace = \"dns\"\n";
    std::fs::write(&config, sources).unwrap();
    Server::start(serve(&folder.join("data"), &["--config", config.to_str().unwrap()]))
}

#[test]
fn every_protocol_is_loaded_and_every_id_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    let urls = ["http", "redis", "grpc"].map(|scheme| {
        let address = if scheme == "redis" { &server.resp } else { &server.http };
        format!("{scheme}://{address}")
    });
    let mut numbers = 0.0;
    for url in &urls {
        // The first 32 IDs show their kind, before anything is measured.
        numbers += 32.0;
        for (source, batch, pipeline, total) in [
            ("default", "1", "1", 2_000.0),
            ("default", "7", "5", 10_003.0),
            ("numbers", "100", "3", 20_000.0),
            ("ulids", "3", "2", 1_000.0),
            ("short", "2", "2", 1_000.0),
        ] {
            let n = total.to_string();
            let args = [&[url, "--source", source, "-b", batch, "-p", pipeline, "-n", &n][..]];
            let report = report(&[&args.concat()[..], &["-c", "3", "--threads", "2"]].concat());
            for (pointer, expected) in
                [("/ids", total), ("/unique/compared", total), ("/unique/repeated", 0.0)]
            {
                assert_eq!(number(&report, pointer), expected, "{pointer}: {report}");
            }
            let requests = (total / batch.parse::<f64>().unwrap()).ceil();
            assert_eq!(number(&report, "/answers"), requests, "{report}");
            let at = ["p50", "p90", "p99", "p99_9", "max"]
                .map(|name| number(&report, &format!("/latency_us/{name}")));
            assert!(at[0] > 0.0 && at.is_sorted(), "{report}");
            assert!(number(&report, "/ids_per_s") > 0.0, "{report}");
            assert!(number(&report, "/processors/ran_s") > 0.0, "{report}");
            numbers += if source == "numbers" { total } else { 0.0 };
        }
    }
    // The server has issued exactly the counted numbers: its next number shows it.
    let next: f64 = server.mint(&["numbers"]).ok().trim().parse().unwrap();
    assert_eq!(next, numbers + 1.0);
    // Requests carry the key unchanged: each of its numbers comes once.
    for url in &urls {
        let counted = report(&[url, "--source", "counters", "--key", "a b/ü", "-n", "500"]);
        assert_eq!(number(&counted, "/unique/compared"), 500.0);
    }
    assert!(bench(&[&urls[0], "-n", "100"]).out.ends_with("}\n"));
    let shown = run(&["bench", &urls[0], "-n", "1000"]).ok();
    assert!(shown.contains("all 1,000 IDs compared: all different"), "{shown}");
}

#[test]
fn an_id_that_comes_twice_is_an_error_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    // A name has a single UUID, however often it is requested.
    for url in [format!("http://{}", server.http), format!("grpc://{}", server.http)] {
        let ran = bench(&[&url, "--source", "names", "--key", "example.com", "-n", "10"]);
        assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{}", ran.out);
        let report = json(&ran.out);
        assert_eq!(number(&report, "/unique/repeated"), 9.0);
        let id = run(&["mint", "uuid:v5", "--in", "dns", "--name", "example.com"]).ok();
        assert_eq!(report["unique"]["duplicates"][0]["id"], id.trim());
        assert_eq!(number(&report, "/unique/duplicates/0/times"), 10.0);
    }
    // `--check 0` turns the comparison off.
    let url = format!("http://{}", server.http);
    let args = [&url, "--source", "names", "--key", "x", "-n", "10", "--check", "0"];
    assert_eq!(number(&report(&args), "/unique/compared"), 0.0);
    let some = report(&[&url, "-n", "1000", "--check", "300"]);
    assert_eq!(number(&some, "/unique/compared"), 300.0);
}

#[test]
fn invalid_target_or_load_is_reported_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    let urls = [("http", &server.http), ("redis", &server.resp), ("grpc", &server.http)];
    for (scheme, address) in urls {
        let url = format!("{scheme}://{address}");
        let ran = bench(&[&url, "--source", "absent"]);
        assert_ne!(ran.code, 0, "{scheme}: {}", ran.out);
        assert!(ran.err.contains("absent") && ran.out.is_empty(), "{scheme}: {ran:?}");
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let ran = bench(&[&format!("{scheme}://{free}")]);
        assert_eq!((ran.code, ran.out.as_str()), (4, ""), "{scheme}: {}", ran.err);
    }
    // The port belongs to another protocol.
    for (scheme, address) in
        [("http", &server.resp), ("redis", &server.http), ("grpc", &server.resp)]
    {
        let ran = bench(&[&format!("{scheme}://{address}"), "-n", "1"]);
        assert_eq!((ran.code, ran.out.as_str()), (4, ""), "{scheme}: {}", ran.err);
        assert!(ran.err.contains("RESP 7701)"), "{scheme}: {}", ran.err);
    }
    for args in [
        &["ftp://a:1"][..],
        &["http://a:1", "--local"],
        &["--local", "--connections", "3"],
        &["--store", "memory:"],
        &["-n", "0"],
        &["--duration", "5"],
        &["--duration", "0s"],
    ] {
        assert_eq!(bench(args).code, 2, "{args:?}");
    }
    // The error names the right port or scheme.
    for (url, hint) in [
        (format!("http://{}", server.resp), "use that of HTTP"),
        (format!("https://{}", server.http), "write http://"),
    ] {
        let ran = run(&["mint", "default", "--server", &url]);
        assert_eq!(ran.code, 4, "{url}: {}", ran.err);
        assert!(ran.err.contains(hint) && ran.err.contains(&url), "{hint}: {}", ran.err);
    }
    let url = format!("http://{}", server.resp);
    let ran = run(&["worker", "list", "--server", &url]);
    assert!(ran.err.contains("RESP has a port of its own"), "{}", ran.err);
}

#[test]
fn errors_are_counted_by_code() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    let too_many = ["-b", "200000", "-n", "600000", "-c", "1"];
    for (scheme, address, code) in [
        ("http", &server.http, "limit_exceeded"),
        ("redis", &server.resp, "ERR"),
        ("grpc", &server.http, "ResourceExhausted"),
    ] {
        let url = format!("{scheme}://{address}");
        let ran = bench(&[&[&url[..]], &too_many[..]].concat());
        assert_eq!(ran.code, 4, "{scheme}: {ran:?}");
        let errors = &json(&ran.out)["errors"];
        assert_eq!(
            (&errors[0]["code"], &errors[0]["count"]),
            (&code.into(), &3.into()),
            "{errors}"
        );
        assert!(errors[0]["example"].as_str().unwrap().contains("100000"), "{errors}");
    }
}

/// Starts a server that replies to one `INCR` at a time, and stalls before the one with this
/// number.
fn stalling(stall: Duration, stalls_at: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let reply = move |stream: TcpStream| {
        let mut requests = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut id = 0;
        // A request has the array line, then two lines for each string.
        while let Some(Ok(line)) = requests.next() {
            assert!(line.starts_with('*'), "{line}");
            let words: usize = line[1..].parse().unwrap();
            let request: Vec<_> = requests.by_ref().take(2 * words).map_while(Result::ok).collect();
            let reply = if words == 3 {
                let count: u64 = request.last().unwrap().parse().unwrap();
                let ids: String =
                    (0..count).map(|n| format!(":{}\r\n", 1_000_000_000 + n)).collect();
                format!("*{count}\r\n{ids}")
            } else {
                id += 1;
                if id == stalls_at {
                    thread::sleep(stall);
                }
                format!(":{id}\r\n")
            };
            if (&stream).write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || reply(stream));
        }
    });
    address
}

#[test]
fn server_stall_shows_in_all_delayed_requests() {
    let stall = Duration::from_millis(400);
    let url = format!("redis://{}", stalling(stall, 300));
    let common = [&url[..], "-c", "1", "--threads", "1", "-n", "1000"];
    // Without a rate no request is sent during the stall: one slow reply in a thousand.
    let closed = report(&common);
    assert!(number(&closed, "/latency_us/max") >= 400_000.0, "{closed}");
    assert!(number(&closed, "/latency_us/p50") < 400_000.0, "{closed}");
    assert_eq!(closed["latency_us"]["from"], "sent");
    // At a rate, 400 of the thousand requests were due meanwhile and had to wait.
    let paced = report(&[&common[..], &["--rate", "1000"]].concat());
    assert_eq!(paced["latency_us"]["from"], "due");
    assert_eq!(number(&paced, "/answers"), 1_000.0, "{paced}");
    assert!(number(&paced, "/latency_us/p90") > 100_000.0, "{paced}");
    // Requests that were due but not sent before the end are reported.
    let brief = report(&[&common[..5], &["-d", "1s", "--rate", "1000"]].concat());
    let (responses, unsent) = (number(&brief, "/answers"), number(&brief, "/unsent"));
    assert_eq!(responses + unsent, 1_000.0, "{brief}");
}

#[test]
fn server_that_does_not_respond_is_named() {
    // No process listens on port 1.
    for url in ["http://127.0.0.1:1", "redis://127.0.0.1:1"] {
        let ran = bench(&[url, "-n", "1"]);
        assert_eq!((ran.code, ran.out.as_str()), (4, ""), "{url}: {}", ran.err);
        assert!(ran.err.contains("no response from 127.0.0.1:1: "), "{url}: {}", ran.err);
    }
}

#[test]
fn restarted_server_is_called_again() {
    let folder = tempfile::tempdir().unwrap();
    let start = |http: &str| {
        let dir = folder.path().to_str().unwrap();
        let args = ["serve", "--data-dir", dir, "--http", http, "--resp", "127.0.0.1:0"];
        common::snowmint(&args)
    };
    let server = Server::start(start("127.0.0.1:0"));
    let http = server.http.clone();
    let load = ["bench", "--json", &http, "-c", "2", "-d", "10m", "--rate", "200"];
    let mut load = common::snowmint(&load).stdout(Stdio::piped()).spawn().unwrap();
    // More IDs than those that show the kind.
    until("load is made", || server.issued() > 100.0);
    server.kill();
    let mut server = None;
    // Another process's connection may use the port for a moment while the server is away.
    until("it listens again", || {
        server = Server::try_start(start(&http)).0.ok();
        server.is_some()
    });
    let server = server.unwrap();
    until("it is asked again", || server.issued() > 0.0);
    children::signal(load.id(), "-INT");
    assert_eq!(ended(&mut load).code(), Some(0));
    let ran = load.wait_with_output().unwrap();
    let report = json(&String::from_utf8(ran.stdout).unwrap());
    assert_eq!(report["errors"][0]["code"], "connection", "{report}");
    assert_eq!(number(&report, "/unique/compared"), number(&report, "/ids"), "{report}");
    server.kill();
}

/// Returns a line of a kernel status file.
fn status_line(path: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path.join("status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)).map(|line| line.trim().to_owned())
}

/// Returns whether the process handles SIGINT, the second bit in the signal mask.
fn catches_interrupts(process: &str) -> bool {
    let mask = status_line(Path::new(process), "SigCgt:").expect("it runs");
    u64::from_str_radix(&mask, 16).unwrap() & 1 << 1 != 0
}

/// Returns how often its threads have gone to sleep.
fn waits(process: &str) -> u64 {
    let threads = std::fs::read_dir(format!("{process}/task")).unwrap();
    let of_thread = |thread: std::fs::DirEntry| {
        // The thread may have ended meanwhile.
        let count = status_line(&thread.path(), "voluntary_ctxt_switches:");
        count.map_or(0, |count| count.parse::<u64>().unwrap())
    };
    threads.map(|thread| of_thread(thread.unwrap())).sum()
}

#[test]
fn interrupted_bench_prints_a_report() {
    let command = &["bench", "--json", "--local", "-d", "10m", "--rate", "1000"];
    let mut child = common::snowmint(command).stdout(Stdio::piped()).spawn().unwrap();
    let process = format!("/proc/{}", child.id());
    until("it listens for signals", || catches_interrupts(&process));
    // The process sleeps about once for each request.
    let before = waits(&process);
    until("it mints", || waits(&process) > before + 200);
    children::signal(child.id(), "-INT");
    ended(&mut child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let report = json(&String::from_utf8(output.stdout).unwrap());
    assert!(number(&report, "/ids") > 0.0 && number(&report, "/seconds") < 60.0, "{report}");
    assert_eq!((number(&report, "/unsent"), &report["errors"]), (0.0, &serde_json::json!([])));
}

#[test]
fn local_bench_mints_in_its_own_process() {
    let local =
        |args: &[&str]| report(&[&["--local", "--threads", "2", "-n", "20000"], args].concat());
    for source in ["default", "numbers"] {
        let report = local(&["--source", source]);
        assert_eq!(number(&report, "/unique/compared"), 20_000.0, "{report}");
        assert_eq!(report["target"], "this process");
    }
    assert_eq!(number(&local(&["--batch", "100"]), "/answers"), 200.0);
    assert_eq!(number(&local(&["--source", "counters", "--key", "k"]), "/ids"), 20_000.0);
    // On a store of its own, the numbers that it took remain taken.
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("ids.db").display());
    let on_disk = |count: &str| {
        let common = ["--local", "--store", &store, "--source", "numbers", "--threads", "1"];
        report(&[&common[..], &["-n", count]].concat())
    };
    assert_eq!(number(&on_disk("1000"), "/ids"), 1_000.0);
    assert_eq!(number(&on_disk("1000"), "/unique/repeated"), 0.0);
    let next = run(&["mint", "numbers", "--store", &store]).ok();
    assert!(next.trim().parse::<u64>().unwrap() > 2_000, "{next}");
}
