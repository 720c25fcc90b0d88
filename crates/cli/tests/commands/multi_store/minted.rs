//! Snowflakes that several stores mint (article 003), each under its own worker number.

use std::collections::HashSet;

use serde_json::Value;
use snowmint_core::Layout;
use snowmint_testkit::servers::{Redis, Server as StoreServer};

use crate::common::{Ran, run};
use crate::multi_store::ground::{Drawing, Seen, StoresDir, drawn, page, pass, share, wait_until};
use crate::multi_store::numbers::all_serve;
use crate::server::{Server, serve};

const MINTED: &str = "layout = \"redis\"\nmint = \"store\"\n";

/// Returns the worker numbers in IDs.
fn workers<'a>(ids: impl IntoIterator<Item = &'a String>) -> HashSet<u64> {
    let layout = Layout::REDIS;
    ids.into_iter().map(|id| layout.unpack(id.parse().unwrap()).unwrap().worker).collect()
}

/// Returns the workers that mint now, from six requests in a row. Under other load, not all may
/// appear.
fn drawn_by(server: &Server) -> HashSet<u64> {
    workers(&(0..6).flat_map(|_| drawn(server, 50)).collect::<Vec<_>>())
}

/// Checks that these workers mint, and no other. The stores take turns, and other clients mint too.
#[track_caller]
fn all_mint(server: &Server, all: &[u64]) {
    let mut seen = HashSet::new();
    wait_until("every store minted", || {
        seen.extend(drawn_by(server));
        all.iter().all(|worker| seen.contains(worker))
    });
    assert_eq!(seen, all.iter().copied().collect());
}

/// Waits until the server has noticed that the store is another one, which it must not use.
#[track_caller]
fn is_another(server: &Server) {
    let mut refused = Value::Null;
    wait_until("it learns of it from another", || {
        refused = share(server, "a");
        assert_eq!(refused["serving"], false, "{refused}");
        refused["error"].as_str().is_some_and(|error| error.contains("fast-forward"))
    });
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
fn each_redis_mints_unless_emptied_and_an_added_one_does() {
    let stores_dir = StoresDir::new();
    let mut a: StoreServer = Redis::start(&[]).into();
    let (b, c): (StoreServer, StoreServer) = (Redis::start(&[]).into(), Redis::start(&[]).into());
    let (a_url, b_url, c_url) = (a.url(), b.url(), c.url());
    let two = [("a", a_url.as_str()), ("b", b_url.as_str())];
    let config = stores_dir.config_of(&two, &format!("{MINTED}stores = \"a=3,b=4\"\n"));
    let server = stores_dir.start_by(&config);
    let mut seen = Seen::default();
    all_mint(&server, &[3, 4]);
    all_serve(&server, &["b"]);
    assert_eq!(share(&server, "b")["worker"], 4);

    let load = Drawing::from(&[&server], 3, 20);
    pass(500);
    a.kill();
    wait_until("the store that is away is named", || share(&server, "a")["serving"] == false);
    let line = "snowmint_source_store_up{source=\"orders\",store=\"a\"} 0";
    assert!(page(&server, "/metrics").lines().any(|sample| sample.starts_with(line)));
    pass(300);
    assert_eq!(drawn_by(&server), HashSet::from([4]));
    // The data are gone: nothing shows any more how far the store had come.
    a.forget();
    a.start();
    is_another(&server);
    assert_eq!(drawn_by(&server), HashSet::from([4]));

    // A third store is added at run time.
    let three = [two[0], two[1], ("c", c_url.as_str())];
    stores_dir.config_of(&three, &format!("{MINTED}stores = \"a=3,b=4,c=5\"\n"));
    server.signal("-HUP");
    wait_until("the third serves", || share(&server, "c")["serving"] == true);
    assert_eq!(share(&server, "c")["worker"], 5);
    all_mint(&server, &[4, 5]);
    pass(300);
    load.end(&mut seen);
    assert_eq!(workers(&seen.0), HashSet::from([3, 4, 5]));
    server.signal("-TERM");
    server.wait();

    // A restart does not forget it either. An operator moves the store forward.
    let server = stores_dir.start_by(&config);
    all_serve(&server, &["b", "c"]);
    is_another(&server);
    server.signal("-TERM");
    server.wait();
    let journal = stores_dir.path("data/stores/a");
    let forward =
        ["worker", "fast-forward", "--store", &a_url, "--data-dir", journal.to_str().unwrap()];
    let forwarded = run(&forward);
    assert_eq!(forwarded.code, 0, "{forwarded:?}");
    let server = stores_dir.start_by(&config);
    all_serve(&server, &["a", "b", "c"]);
    all_mint(&server, &[3, 4, 5]);
}

/// A store that accepts connections and never responds costs a fraction of a second, once.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
fn frozen_redis_is_skipped() {
    let stores_dir = StoresDir::new();
    let (a, b): (StoreServer, StoreServer) = (Redis::start(&[]).into(), Redis::start(&[]).into());
    let (a_url, b_url) = (a.url(), b.url());
    let stores = [("a", a_url.as_str()), ("b", b_url.as_str())];
    let server = stores_dir
        .start_by(&stores_dir.config_of(&stores, &format!("{MINTED}stores = \"a=3,b=4\"\n")));
    let mut seen = Seen::default();
    all_mint(&server, &[3, 4]);
    let load = Drawing::from(&[&server], 3, 20);
    pass(300);
    a.freeze(true);
    pass(2_000);
    a.freeze(false);
    wait_until("it is found", || share(&server, "a")["serving"] == true);
    all_mint(&server, &[3, 4]);
    load.end(&mut seen);
}

#[test]
fn stores_with_one_worker_number_are_rejected_and_both_shown() {
    let stores_dir = StoresDir::new();
    let (a, b) = (stores_dir.sqlite("a.db"), stores_dir.sqlite("b.db"));
    let stores = [("a", a.as_str()), ("b", b.as_str())];
    let config =
        |numbers: &str| stores_dir.config_of(&stores, &format!("{MINTED}stores = \"{numbers}\"\n"));
    for (numbers, text) in [
        ("a=3,b=3", "a and b both have worker number 3"),
        ("a,b", "write a=3,b=4"),
        ("a=3,b=4096", "workers 0 to 4095"),
        ("a=3,absent=4", "is not in [stores]"),
    ] {
        let config = config(numbers);
        let refused: Ran =
            serve(&stores_dir.path("data"), &["--config", &config]).output().unwrap().into();
        assert_eq!(refused.code, 2, "{numbers}: {refused:?}");
        assert!(refused.err.contains(text), "{numbers}: {}", refused.err);
    }
    // A store that minted alone before, under the number that another store gets now.
    let alone = Server::start(serve(&stores_dir.path("alone"), &["--store", &b]));
    let keys = ["--layout", "redis", "--mint", "store", "--worker", "3"];
    run(&[&["source", "define", "orders", "--server", &alone.http], &keys[..]].concat()).ok();
    drop(alone);
    let server = stores_dir.start_by(&config("a=3,b=4"));
    wait_until("they were looked at", || share(&server, "b")["error"].is_string());
    let refused = server.mint(&["orders"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    for text in ["stores \"a\" and \"b\"", "worker number 3"] {
        assert!(refused.err.contains(text), "{text}: {}", refused.err);
    }
    drop(server);
    // A worker number stays with the store that had it.
    let file = config("a=7,b=3");
    let refused: Ran =
        serve(&stores_dir.path("data"), &["--config", &file]).output().unwrap().into();
    assert_eq!(refused.code, 2, "{refused:?}");
    let moved = r#"worker number 3 of source "orders" belongs to store "a", requested for "b""#;
    assert!(refused.err.contains(moved), "{}", refused.err);
}
