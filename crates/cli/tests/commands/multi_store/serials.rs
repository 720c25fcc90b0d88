//! Serials and disguised numbers of several stores.

use snowmint_testkit::servers::{Postgres, Redis, Server as StoreServer};

use crate::common::{json, run};
use crate::multi_store::ground::{
    Drawing, Seen, StoresDir, drawn, drawn_from_all, pass, restripe, share, wait_until,
};
use crate::multi_store::numbers::all_serve;

const SERIALS: &str = "serial.prefix = \"INV-\"\nserial.date = \"yyyyMMdd\"\nserial.width = 7\n";

/// Returns the number of a serial within its day.
fn number(serial: &str) -> u64 {
    let rest = serial.strip_prefix("INV-").unwrap();
    assert_eq!(rest.len(), 15, "{serial}");
    rest[8..].parse().unwrap()
}

#[test]
#[cfg_attr(
    not(feature = "real-servers"),
    ignore = "needs PostgreSQL and Redis: --features real-servers"
)]
fn serials_continue_while_stores_are_killed_and_added() {
    let stores_dir = StoresDir::new();
    let a: StoreServer = Postgres::start(&[]).into();
    let mut b: StoreServer = Redis::start(&[]).into();
    let (a_url, b_url, c) = (a.url(), b.url(), stores_dir.sqlite("c.db"));
    let two = [("a", a_url.as_str()), ("b", b_url.as_str())];
    let server = stores_dir.start_by(&stores_dir.config_with(&two, SERIALS));
    all_serve(&server, &["a", "b"]);
    let mut seen = Seen::default();
    seen.add(drawn_from_all(&server, 300, 2, number));
    let load = Drawing::from(&[&server], 2, 20);
    pass(300);
    b.kill();
    wait_until("the store that is away is named", || share(&server, "b")["serving"] == false);
    pass(500);
    b.start();
    wait_until("it is back", || share(&server, "b")["serving"] == true);
    load.end(&mut seen);

    let load = Drawing::from(&[&server], 2, 20);
    pass(200);
    let three = [two[0], two[1], ("c", c.as_str())];
    let config = stores_dir.config_with(&three, SERIALS);
    let stripes = ["--stripe", "1=a", "--stripe", "2=b", "--stripe", "3=c"];
    let changed = restripe(&config, "3", &stripes).ok();
    assert_eq!(changed.lines().count(), 3, "{changed}");
    wait_until("it is followed", || share(&server, "a")["increment"] == 3);
    pass(200);
    load.end(&mut seen);
    drop(server);

    let server = stores_dir.start_by(&config);
    all_serve(&server, &["a", "b", "c"]);
    let after = drawn_from_all(&server, 100, 3, number);
    let read =
        run(&["decode", &after[0], "--source", "orders", "--json", "--server", &server.http]);
    assert_eq!(json(&read.ok())["number"], number(&after[0]).to_string());
    seen.add(after);
}

/// A period holds fewer numbers than usually separate old stripes from new ones.
#[test]
fn restripe_splits_the_numbers_of_the_current_period() {
    let stores_dir = StoresDir::new();
    let (a, b) = (stores_dir.sqlite("a.db"), stores_dir.sqlite("b.db"));
    let stores = [("a", a.as_str()), ("b", b.as_str())];
    let keys = "serial.date = \"yyyy\"\nserial.width = 2\nstep.rule = \"fixed\"\nstep.size = 4\n";
    let config = stores_dir.config_with(&stores, keys);
    let server = stores_dir.start_by(&config);
    let mut seen = Seen::default();
    // A small batch: a slow server allocates again, and one store may be far ahead of the other.
    seen.add(drawn(&server, 6));
    let stripes = ["--stripe", "1=b", "--stripe", "2=a"];
    // The stripes are swapped: old and new must not meet.
    restripe(&config, "3", &stripes).ok();
    let mut left: u64 = 0;
    loop {
        let ran = server.mint(&["orders", "-n", "1"]);
        if ran.code != 0 {
            assert!(ran.err.contains("serial.width"), "{}", ran.err);
            break;
        }
        seen.add(ran.out.lines().map(str::to_owned));
        left += 1;
    }
    assert!((1..80).contains(&left), "{left}");
    assert!(seen.0.iter().all(|serial| serial.len() == 6), "no year but this one");
    // Another restripe does not bring back used numbers.
    restripe(&config, "2", &["--stripe", "1=a", "--stripe", "2=b"]).ok();
    let refused = server.mint(&["orders", "-n", "1"]);
    assert!(refused.code != 0 && refused.err.contains("serial.width"), "{refused:?}");
}

#[test]
fn numbers_of_several_stores_are_disguised_by_one_key() {
    let stores_dir = StoresDir::new();
    let (a, b) = (stores_dir.sqlite("a.db"), stores_dir.sqlite("b.db"));
    let stores = [("a", a.as_str()), ("b", b.as_str())];
    let key = stores_dir.path("key");
    std::fs::write(&key, "00112233445566778899aabbccddeeff").unwrap();
    let keys = "disguise.mode = \"full\"\ndisguise.key = 7\n";
    let config = stores_dir.config_with(&stores, keys);
    let text = std::fs::read_to_string(&config).unwrap();
    let text = format!("[disguise.keys]\n7 = \"file:{}\"\n{text}", key.display());
    std::fs::write(&config, text).unwrap();
    let mut seen = Seen::default();
    let mut numbers = Seen::default();
    for _ in 0..2 {
        let server = stores_dir.start_by(&config);
        all_serve(&server, &["a", "b"]);
        let read = |id: &str| -> u64 {
            let read = ["decode", id, "--source", "orders", "--json", "--server", &server.http];
            json(&run(&read).ok())["number"].as_str().unwrap().parse().unwrap()
        };
        let ids = drawn_from_all(&server, 20, 2, read);
        let values: Vec<u64> = ids.iter().map(|id| read(id)).collect();
        assert!(values.iter().all(|number| *number < 10_000), "{values:?}");
        assert!(ids.iter().filter(|id| id.len() < 10).count() < 5, "they are hidden");
        seen.add(ids);
        numbers.add(values.iter().map(u64::to_string));
    }
    // The store alone disguises its numbers, too, with the same key or not at all.
    let refused = crate::server::serve(&stores_dir.path("alone"), &["--store", &a]);
    let server = crate::server::Server::start(refused);
    let refused = server.mint(&["orders"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.err.contains("key 7"), "{}", refused.err);
}
