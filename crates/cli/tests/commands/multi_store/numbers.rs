//! Numbers: the stores that have them, and those that are rejected.

use std::collections::HashSet;

use snowmint_testkit::servers::{Postgres, Redis, Server as StoreServer};

use crate::common::{Ran, json, run};
use crate::multi_store::ground::{
    Drawing, Seen, StoresDir, drawn_from_all, page, pass, restripe, share, wait_until,
};
use crate::server::{Server, serve};

/// Waits until each of these stores serves.
#[track_caller]
pub(crate) fn all_serve(server: &Server, stores: &[&str]) {
    for store in stores {
        wait_until("it serves", || share(server, store)["serving"] == true);
    }
}

/// Returns the number in an ID without text form.
pub(crate) fn plain(id: &str) -> u64 {
    id.parse().unwrap()
}

fn drawn(server: &Server, count: u32) -> Vec<u64> {
    crate::multi_store::ground::drawn(server, count).iter().map(|id| id.parse().unwrap()).collect()
}

fn add(seen: &mut Seen, ids: impl IntoIterator<Item = u64>) {
    seen.add(ids.into_iter().map(|id| id.to_string()));
}

#[test]
#[cfg_attr(
    not(feature = "real-servers"),
    ignore = "needs PostgreSQL and Redis: --features real-servers"
)]
fn store_killed_under_load_returns_and_no_caller_waits() {
    let stores_dir = StoresDir::new();
    let a: StoreServer = Postgres::start(&[]).into();
    let mut b: StoreServer = Redis::start(&[]).into();
    let server = stores_dir.start(&[("a", &a.url()), ("b", &b.url())]);
    all_serve(&server, &["a", "b"]);
    let mut seen = Seen::default();
    seen.add(drawn_from_all(&server, 2_000, 2, plain));
    let load = Drawing::from(&[&server], 3, 50);
    pass(500);
    b.kill();
    wait_until("the store that is away is named", || share(&server, "b")["serving"] == false);
    let away = share(&server, "b");
    assert!(away["error"].as_str().is_some_and(|error| !error.is_empty()), "{away}");
    all_serve(&server, &["a"]);
    let metrics = page(&server, "/metrics");
    for (store, serves) in [("a", "1"), ("b", "0")] {
        let line =
            format!("snowmint_source_store_up{{source=\"orders\",store=\"{store}\"}} {serves}");
        assert!(metrics.lines().any(|sample| sample.starts_with(&line)), "{line}: {metrics}");
    }
    let shown = run(&["source", "show", "orders", "--server", &server.http]).ok();
    assert!(shown.contains("# store b: stripe 2 of 2, does not serve"), "{shown}");
    assert!(page(&server, "/readyz").contains("ready"));
    pass(1_000);
    b.start();
    wait_until("it is back", || share(&server, "b")["serving"] == true);
    pass(500);
    load.end(&mut seen);
    drop(server);

    // The server starts with one of the stores away.
    b.stop();
    let server = stores_dir.start(&[("a", &a.url()), ("b", &b.url())]);
    let from_one = drawn(&server, 500);
    assert!(from_one.iter().all(|id| id % 2 == 1), "{from_one:?}");
    add(&mut seen, from_one);
    assert_eq!(share(&server, "b")["serving"], false);
    b.start();
    wait_until("it is found", || share(&server, "b")["serving"] == true);
    let from_both: Vec<u64> = (0..4).flat_map(|_| drawn(&server, 200)).collect();
    assert!(from_both.iter().any(|id| id % 2 == 0));
    add(&mut seen, from_both);
}

/// Returns a store with a source of these keys, defined by hand.
fn defined(stores_dir: &StoresDir, name: &str, keys: &str) -> String {
    let url = stores_dir.sqlite(&format!("{name}.db"));
    let server = Server::start(serve(&stores_dir.path(name), &["--store", &url]));
    let define = ["source", "define", "orders", "--kind", "segment", "--server", &server.http];
    let keys: Vec<_> = keys.split_whitespace().collect();
    run(&[&define[..], &keys].concat()).ok();
    url
}

#[test]
fn conflicting_stripes_are_rejected_and_both_shown() {
    for (index, (one, other)) in [
        ("--offset 1 --increment 2", "--offset 1 --increment 2"),
        ("--offset 1 --increment 2", "--offset 2 --increment 3"),
    ]
    .into_iter()
    .enumerate()
    {
        let stores_dir = StoresDir::new();
        let (a, b) = (defined(&stores_dir, "a", one), defined(&stores_dir, "b", other));
        let server = stores_dir.start(&[("a", &a), ("b", &b)]);
        let refused = server.mint(&["orders"]);
        assert_ne!(refused.code, 0, "{index}: {refused:?}");
        for part in ["\"a\" (offset 1 of 2", "\"b\" (offset", "the same numbers"] {
            assert!(refused.err.contains(part), "{index}: {part}: {}", refused.err);
        }
    }
    // The store has another source under this name.
    let stores_dir = StoresDir::new();
    let a = defined(&stores_dir, "a", "--serial.prefix INV-");
    let b = defined(&stores_dir, "b", "--offset 2 --increment 2");
    let server = stores_dir.start(&[("a", &a), ("b", &b)]);
    let ids = drawn(&server, 3);
    assert!(ids.iter().all(|id| id % 2 == 0), "{ids:?}");
    let refused = share(&server, "a");
    assert!(refused["error"].as_str().unwrap().contains("correct the definition"), "{refused}");
}

#[test]
fn unknown_or_invalid_stores_are_rejected_at_start() {
    let stores_dir = StoresDir::new();
    let start = |text: &str| -> Ran {
        let file = stores_dir.path("wrong.toml");
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap().to_owned();
        serve(&stores_dir.path("data"), &["--config", &file]).output().unwrap().into()
    };
    for (text, part) in [
        ("[sources.orders]\nkind = \"segment\"\nstores = \"a,b\"\n", "is not in [stores]"),
        ("[sources.orders]\nkind = \"segment\"\nstores = \"a\"\n", "2 to 64 stores"),
        ("[sources.orders]\nkind = \"segment\"\nstores = \"a,a\"\n", "named twice"),
        (
            "[sources.orders]\nkind = \"segment\"\nstores = \"a,b\"\noffset = 2\nincrement = 3\n",
            "stores",
        ),
        (
            "[sources.orders]\nkind = \"segment\"\nstores = \"a,b\"\nserial.width = 0\n",
            "serial.width",
        ),
        ("[sources.orders]\nstores = \"a,b\"\n", "stores"),
        ("[stores]\na = \"memory:\"\n", "stores.a"),
        ("[stores]\na = \"10.0.0.1:7700\"\n", "stores.a"),
    ] {
        let refused = start(text);
        assert_eq!(refused.code, 2, "{text}: {refused:?}");
        assert!(refused.err.contains(part), "{text}: {}", refused.err);
    }
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
fn two_stores_become_three_and_two_again_under_load() {
    let stores_dir = StoresDir::new();
    let c: StoreServer = Redis::start(&[]).into();
    let (a, b, c_url) = (stores_dir.sqlite("a.db"), stores_dir.sqlite("b.db"), c.url());
    let server = stores_dir.start(&[("a", &a), ("b", &b)]);
    let mut seen = Seen::default();
    add(&mut seen, drawn(&server, 1_000));
    // One store cannot be reached: nothing is changed.
    let unreached = "redis://127.0.0.1:1";
    let config = stores_dir.config(&[("a", &a), ("b", &b), ("c", unreached)]);
    let stripes = ["--stripe", "1=a", "--stripe", "2=b", "--stripe", "3=c"];
    let refused = restripe(&config, "3", &stripes);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.err.contains("nothing was changed"), "{}", refused.err);
    for (store, offset) in [("a", 1), ("b", 2)] {
        let share = share(&server, store);
        assert_eq!((&share["offset"], &share["increment"]), (&offset.into(), &2.into()), "{share}");
    }

    let load = Drawing::from(&[&server], 2, 50);
    pass(300);
    let config = stores_dir.config(&[("a", &a), ("b", &b), ("c", &c_url)]);
    let changed = restripe(&config, "3", &stripes).ok();
    let firsts: Vec<u64> =
        changed.lines().map(|line| json(line)["first"].as_u64().unwrap()).collect();
    assert_eq!(firsts.len(), 3, "{changed}");
    assert_eq!(firsts.iter().map(|first| first % 3).collect::<HashSet<_>>().len(), 3);
    assert_eq!(restripe(&config, "3", &stripes).ok().lines().count(), 3, "again is no error");
    wait_until("it is followed", || share(&server, "a")["increment"] == 3);
    pass(300);
    load.end(&mut seen);
    drop(server);

    let server = stores_dir.start(&[("a", &a), ("b", &b), ("c", &c_url)]);
    all_serve(&server, &["a", "b", "c"]);
    let lowest = *firsts.iter().min().unwrap();
    let ids = drawn_from_all(&server, 300, 3, plain);
    assert!(ids.iter().all(|id| plain(id) >= lowest));
    seen.add(ids);
    drop(server);
    let leave = ["--stripe", "1=a", "--stripe", "2=b", "--remove", "c"];
    restripe(&config, "2", &leave).ok();
    let server = stores_dir.start(&[("a", &a), ("b", &b)]);
    add(&mut seen, drawn(&server, 1_000));
    drop(server);
    // The store that left ends where the new stripes begin.
    let server = stores_dir.start(&[("a", &a), ("b", &b), ("c", &c_url)]);
    add(&mut seen, drawn(&server, 1_000));
}
