//! Counters of Redis continue above every number that they reached, and fail there.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use snowmint_testkit::{programs, servers};

use crate::common::{Ran, json, run, snowmint, until};
use crate::import::ImportDir;
use crate::server::{Server, serve};

struct Redis {
    server: servers::Redis,
    port: String,
}

impl Redis {
    fn start() -> Self {
        let server = servers::Redis::start(&[]);
        let url = server.url();
        let port = url.rsplit_once(':').unwrap().1.trim_end_matches("/0").to_owned();
        Self { server, port }
    }

    fn ask(&self, words: &[&str]) -> String {
        ask(&self.port, words)
    }
}

fn ask(port: &str, words: &[&str]) -> String {
    let output = Command::new(programs::installed("redis-cli"))
        .args(["-p", port])
        .args(words)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn actions(ran: &Ran) -> Vec<String> {
    ran.out.lines().map(|line| json(line)["action"].as_str().unwrap().to_owned()).collect()
}

fn count(import_dir: &ImportDir, key: &str) -> u64 {
    let args = ["mint", "counters", "--key", key, "--data-dir", import_dir.dir()];
    run(&args).ok().trim().parse().unwrap()
}

#[test]
fn counters_move_once_and_interrupted_moves_finish() {
    let (redis, import_dir) = (Redis::start(), ImportDir::new());
    redis.ask(&["MSET", "seq:a", "41", "seq:b", "0", "seq:far", "1000000000000", "other", "7"]);
    let with = ["--match", "seq:*", "--json"];
    let dry =
        import_dir.import("redis", &redis.server.url(), &[&with[..], &["--dry-run"]].concat());
    assert_eq!(actions(&dry), ["move"; 3], "{dry:?}");
    assert!(!import_dir.store().exists(), "a plan makes no store");
    assert_eq!(redis.ask(&["INCR", "seq:a"]), "42");

    let done = import_dir.import("redis", &redis.server.url(), &with);
    assert_eq!(done.code, 0, "{done:?}");
    for key in ["seq:a", "seq:b", "seq:far"] {
        let refused = redis.ask(&["INCR", key]);
        assert!(refused.contains("not an integer"), "{refused}");
    }
    assert_eq!(redis.ask(&["GET", "seq:a"]), "moved:snowmint:42");
    assert_eq!(redis.ask(&["INCR", "other"]), "8");
    assert!(count(&import_dir, "seq:a") > 42 && count(&import_dir, "seq:far") > 1_000_000_000_000);
    let before = count(&import_dir, "seq:a");
    let again = import_dir.import("redis", &redis.server.url(), &with);
    assert_eq!((again.code, actions(&again)), (0, vec!["finish".to_owned(); 3]), "{again:?}");
    assert!(count(&import_dir, "seq:a") > before, "nothing is lowered");

    // A command that is interrupted between Redis and the store leaves this state.
    redis.ask(&["SET", "seq:cut", "moved:snowmint:5000000000"]);
    import_dir
        .import("redis", &redis.server.url(), &["--match", "seq:cut", "--strip", "seq:"])
        .ok();
    assert!(count(&import_dir, "cut") > 5_000_000_000);
}

/// The plan did not include them, and they would begin at 1 here again.
#[test]
fn keys_added_during_a_move_are_reported_and_move_next() {
    let (redis, import_dir) = (Redis::start(), ImportDir::new());
    for number in 0..500 {
        redis.ask(&["SET", &format!("seq:{number}"), "7"]);
    }
    let server = Server::start(serve(import_dir.0.path(), &[]));
    let stop = Arc::new(AtomicBool::new(false));
    let counted = Arc::<AtomicU64>::default();
    let counting = {
        let (port, stop, counted) = (redis.port.clone(), Arc::clone(&stop), Arc::clone(&counted));
        std::thread::spawn(move || {
            // New keys appear continuously, from before the plan until after the move.
            let mut redis = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
            let mut reply = [0; 4];
            while !stop.load(Ordering::SeqCst) {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                redis.write_all(format!("INCR seq:new{number}\r\n").as_bytes()).unwrap();
                redis.read_exact(&mut reply).unwrap();
                assert_eq!(&reply, b":1\r\n");
                std::thread::sleep(Duration::from_millis(20));
            }
        })
    };
    until("new keys are counted", || counted.load(Ordering::SeqCst) > 2);
    let with = ["--match", "seq:*", "--server", &server.http];
    let import = || import_dir.import("redis", &redis.server.url(), &with);
    let first = import();
    stop.store(true, Ordering::SeqCst);
    counting.join().unwrap();
    assert_eq!(first.code, 1, "{}", first.err);
    assert!(first.err.contains("import, such as \"seq:new"), "{}", first.err);
    let second = import();
    assert_eq!((second.code, second.err.as_str()), (0, ""), "they have no number here");

    // One process still counts in Redis, while another already counts here.
    assert_eq!(redis.ask(&["INCRBY", "seq:late", "3"]), "3");
    server.mint(&["counters", "--key", "seq:late", "-n", "2"]).ok();
    let late = import();
    assert_eq!(late.code, 1, "{}", late.err);
    assert!(late.err.contains("1 to 2 of \"seq:late\""), "{}", late.err);
    assert_eq!(server.mint(&["counters", "--key", "seq:late"]).ok().trim(), "4");
    assert_eq!(import().code, 0);
    server.kill();
}

/// The application moved here before its counters: it counted from 1 again.
#[test]
fn numbers_counted_before_the_first_import_are_reported() {
    let (redis, import_dir) = (Redis::start(), ImportDir::new());
    redis.ask(&["MSET", "seq:early", "5", "seq:still", "7"]);
    let server = Server::start(serve(import_dir.0.path(), &[]));
    server.mint(&["counters", "--key", "seq:early", "-n", "3"]).ok();
    let with = ["--match", "seq:*", "--server", &server.http];
    let first = import_dir.import("redis", &redis.server.url(), &with);
    assert_eq!(first.code, 1, "{first:?}");
    for part in ["1 to 3 of \"seq:early\"", "counters may have been used here"] {
        assert!(first.err.contains(part), "{part}: {}", first.err);
    }
    assert!(!first.err.contains("seq:still"), "{}", first.err);
    assert_eq!(server.mint(&["counters", "--key", "seq:early"]).ok().trim(), "6");
    assert_eq!(import_dir.import("redis", &redis.server.url(), &with).code, 0);
    server.kill();
}

/// A caller that moves counters needs no permission to mint.
#[test]
fn the_admin_right_is_enough_to_finish_a_move() {
    let (redis, import_dir) = (Redis::start(), ImportDir::new());
    let made = json(run(&["token", "new", "--json"]).ok().trim());
    let (token, hash) = (made["token"].as_str().unwrap(), made["hash"].as_str().unwrap());
    let write = |name: &str, text: String| {
        let path = import_dir.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let grants = r#"grants = ["admin *"]"#;
    let tokens = write("tokens.toml", format!("[mover]\nhashes = [{hash:?}]\n{grants}\n"));
    let config = write("snowmint.toml", format!("[tokens]\nfile = {tokens:?}\n"));
    let server = Server::start(serve(import_dir.0.path(), &["--config", &config]));
    let import = || -> Ran {
        let (from, to) = (redis.server.url(), &server.http);
        let args = ["import", "redis", "--from", &from, "--match", "seq:*", "--server", to];
        snowmint(&args).env("SNOWMINT_TOKEN", token).output().unwrap().into()
    };
    redis.ask(&["SET", "seq:a", "41"]);
    let first = import();
    assert_eq!(first.code, 0, "{first:?}");
    assert!(first.err.contains("mint right") && first.err.contains("\"seq:a\""), "{first:?}");
    redis.ask(&["SET", "seq:late", "7"]);
    let late = import();
    assert_eq!(late.code, 0, "{late:?}");
    assert!(late.err.contains("mint right") && late.err.contains("\"seq:late\""), "{late:?}");
    assert_eq!(redis.ask(&["GET", "seq:late"]), "moved:snowmint:7");
    let nothing = import();
    assert_eq!((nothing.code, nothing.err.as_str()), (0, ""), "nothing was to be compared");
}

#[test]
fn counters_of_all_primaries_of_a_cluster_move() {
    let (cluster, import_dir) = (servers::RedisCluster::start(), ImportDir::new());
    let url = cluster.url();
    let port = url.split([',', '/']).find_map(|part| part.strip_prefix("127.0.0.1:")).unwrap();
    let names: Vec<String> = (0..30).map(|number| format!("seq:{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        assert_eq!(ask(port, &["-c", "SET", name, &(100 * number).to_string()]), "OK");
    }
    let done = import_dir.import("redis", &url, &["--match", "seq:*", "--json"]);
    assert_eq!((done.code, actions(&done)), (0, vec!["move".to_owned(); 30]), "{done:?}");
    for (number, name) in names.iter().enumerate() {
        assert_eq!(ask(port, &["-c", "GET", name]), format!("moved:snowmint:{}", 100 * number));
        assert!(ask(port, &["-c", "INCR", name]).contains("not an integer"), "{name}");
    }
    assert!(count(&import_dir, "seq:29") > 2900);
}

#[test]
fn import_with_a_margin_leaves_redis_unchanged() {
    let (redis, import_dir) = (Redis::start(), ImportDir::new());
    redis.ask(&["SET", "seq:a", "100"]);
    let with = ["--match", "seq:*", "--margin", "1000000"];
    import_dir.import("redis", &redis.server.url(), &with).ok();
    assert_eq!(redis.ask(&["INCR", "seq:a"]), "101");
    assert!(count(&import_dir, "seq:a") > 1_000_100);
}

#[test]
fn counters_move_up_to_half_of_all_numbers_with_the_margin() {
    let (redis, import_dir) = (Redis::start(), ImportDir::new());
    redis.ask(&[
        "MSET",
        "seq:nanoseconds",
        "1795000000000000000",
        "seq:half",
        "4611686018427387904",
    ]);
    let with = ["--match", "seq:*", "--margin", "1", "--json"];
    let refused = import_dir.import("redis", &redis.server.url(), &with);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.out.contains("4611686018427387905, maximum"), "{refused:?}");
    let server = Server::start(serve(import_dir.0.path(), &[]));
    let with = ["--match", "seq:*", "--json", "--server", &server.http];
    import_dir.import("redis", &redis.server.url(), &with).ok();
    for (key, value) in [("seq:nanoseconds", 1_795_000_000_000_000_000), ("seq:half", 1 << 62)] {
        let minted = server.mint(&["counters", "--key", key, "-n", "1"]).ok();
        assert!(minted.trim().parse::<u64>().unwrap() > value, "{key}: {minted}");
    }
}

#[test]
fn invalid_counter_is_rejected_and_nothing_moves() {
    let (redis, import_dir) = (Redis::start(), ImportDir::new());
    let top = "9223372036854775807";
    redis
        .ask(&["MSET", "s:good", "5", "s:minus", "-5", "s:text", "x", "s:top", top, "s:00", "007"]);
    redis.ask(&["RPUSH", "s:list", "1"]);
    let refused = import_dir.import("redis", &redis.server.url(), &["--match", "s:*", "--json"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    let rejected = actions(&refused).iter().filter(|action| *action == "refuse").count();
    assert_eq!(rejected, 5, "{refused:?}");
    assert_eq!(redis.ask(&["GET", "s:good"]), "5");
    let nothing = import_dir.import("redis", &redis.server.url(), &["--match", "nothing*"]);
    assert_eq!(nothing.code, 1, "{nothing:?}");
    let unsupported = import_dir.import("redis", "mysql://127.0.0.1:1/x", &["--match", "*"]);
    assert_eq!(unsupported.code, 2, "{unsupported:?}");
    let with = ["--match", "s:good", "--source", "default"];
    let snowflake = import_dir.import("redis", &redis.server.url(), &with);
    assert_eq!(snowflake.code, 2, "{snowflake:?}");
    assert!(snowflake.err.contains("name a source of kind counter by --source"), "{snowflake:?}");
    assert_eq!(redis.ask(&["GET", "s:good"]), "5");
}

#[test]
fn two_keys_that_would_be_one_counter_are_refused() {
    let (redis, import_dir) = (Redis::start(), ImportDir::new());
    redis.ask(&["MSET", "seq:a", "5", "a", "7"]);
    let with = ["--match", "*", "--strip", "seq:", "--json"];
    let refused = import_dir.import("redis", &redis.server.url(), &with);
    assert_eq!((refused.code, actions(&refused)), (3, vec!["move".into(), "refuse".into()]));
    assert!(refused.out.contains("becomes the same counter"), "{refused:?}");
    assert_eq!(
        (redis.ask(&["GET", "a"]).as_str(), redis.ask(&["GET", "seq:a"]).as_str()),
        ("7", "5")
    );
}

#[test]
fn counters_move_under_load_and_no_number_repeats() {
    let (redis, import_dir) = (Redis::start(), ImportDir::new());
    let server = Server::start(serve(import_dir.0.path(), &[]));
    let stop = Arc::new(AtomicBool::new(false));
    let counting: Vec<_> = (0..4)
        .map(|_| {
            let (port, stop) = (redis.port.clone(), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut counted = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    match ask(&port, &["INCR", "seq:a"]).parse::<u64>() {
                        Ok(number) => counted.push(number),
                        Err(_) => break,
                    }
                }
                counted
            })
        })
        .collect();
    until("it is counted", || redis.ask(&["GET", "seq:a"]).parse::<u64>().unwrap_or(0) >= 50);
    let server_of = server.http.clone();
    let with = ["--match", "seq:*", "--server", &server_of];
    let done = import_dir.import("redis", &redis.server.url(), &with);
    assert_eq!(done.code, 0, "{done:?}");
    stop.store(true, Ordering::SeqCst);
    let old: Vec<u64> = counting.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    let highest = old.iter().copied().max().unwrap();
    assert_eq!(redis.ask(&["GET", "seq:a"]), format!("moved:snowmint:{highest}"));
    let minted = server.mint(&["counters", "--key", "seq:a", "-n", "1"]).ok();
    assert!(minted.trim().parse::<u64>().unwrap() > highest, "{minted} after {highest}");
}
