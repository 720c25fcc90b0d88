//! Store-backed sources inside an application.

use std::path::Path;
use std::time::Duration;

use crate::common::{Seen, TempDir, open_once_free};
use snowmint::{AfterCrash, Mint, NodeSettings, Options, SourceSpec, open, open_blocking};
use snowmint_coord::{BootTimer, Timer as _};
use snowmint_core::clock::Pause as _;
use snowmint_core::{SystemClock, UnixMillis};

/// Longer than any test of this file takes; a wait without a bound would exceed it.
const BOUND: Duration = Duration::from_secs(60);

fn url(dir: &Path) -> String {
    format!("sqlite:{}/ids.db", dir.display())
}

async fn within<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, call).await.unwrap()
}

/// Returns settings that allow a slow call of the store on a busy machine.
fn node_settings() -> NodeSettings {
    NodeSettings { store_call_ms: 60_000, ..NodeSettings::default() }
}

fn options() -> Options {
    Options::new().node_settings(node_settings())
}

async fn opened(dir: &TempDir) -> Mint {
    within(options().open(&url(dir.path()))).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_mints_and_reopening_gives_the_same_generator() {
    let dir = TempDir::new();
    let mint = opened(&dir).await;
    let orders = within(mint.snowflake("orders")).await.unwrap();
    let again = within(mint.snowflake("orders")).await.unwrap();
    let mut seen = Seen::default();
    let mut last = 0;
    let mut add = |id: u64| {
        assert!(id > last, "{id} is not above {last}");
        last = id;
        seen.add(id);
    };
    let mut lane = orders.lane(16);
    for _ in 0..200 {
        add(orders.mint().unwrap());
        add(again.mint().unwrap());
        add(orders.mint_by(orders.elapsed().saturating_add(60_000)).unwrap());
        add(orders.mint_async().await.unwrap());
        add(lane.mint().unwrap());
        let mut batch = [0; 10];
        again.fill(&mut batch).unwrap();
        batch.into_iter().for_each(&mut add);
    }
    let decoded = orders.decode(last).unwrap();
    let stats = orders.stats();
    assert_eq!(stats.taken_until.unwrap().since(decoded.time), 1);
    assert!(stats.lead_ms <= 1, "{stats:?}");
    assert!(mint.readiness().ready, "{:?}", mint.readiness());
    let error = orders.close().unwrap_err();
    assert!(error.to_string().contains("close the store's handle"), "{error}");
    mint.close().await.unwrap();
    mint.close().await.unwrap();
    for error in [orders.mint().unwrap_err(), again.mint_async().await.unwrap_err()] {
        assert_eq!(error.kind().code(), "closed", "{error}");
    }
}

/// The call blocks the thread that alone could extend the window.
#[tokio::test]
async fn a_batch_from_a_spent_window_ends() {
    let dir = TempDir::new();
    let settings = NodeSettings { window_ms: 1_000, ..node_settings() };
    let (options, url) = (Options::new().node_settings(settings), url(dir.path()));
    let mint = within(options.open(&url)).await.unwrap();
    let orders = within(mint.snowflake("orders")).await.unwrap();
    within(orders.mint_async()).await.unwrap();
    // Longer than any window.
    let from = BootTimer.elapsed();
    while BootTimer.elapsed().since(from) < 4_000 {
        SystemClock.pause_until(UnixMillis::MAX, 4_000);
    }
    let begun = BootTimer.elapsed();
    let short = orders.fill(&mut [0; 10]).unwrap_err();
    assert_eq!((short.made, short.error.kind().code()), (0, "window_spent"), "{short:?}");
    assert!(u128::from(BootTimer.elapsed().since(begun)) < BOUND.as_millis());
    within(orders.mint_async()).await.unwrap();
    within(mint.close()).await.unwrap();
}

#[tokio::test]
async fn handles_of_one_store_claim_and_release_own_workers() {
    let dir = TempDir::new();
    let opened =
        async |owner: &str| within(options().owner(owner).open(&url(dir.path()))).await.unwrap();
    let mints = [opened("a").await, opened("b").await, opened("c").await];
    let mut seen = Seen::default();
    let mut workers = Vec::new();
    for mint in &mints {
        let orders = within(mint.snowflake("orders")).await.unwrap();
        for _ in 0..100 {
            seen.add(orders.mint().unwrap());
        }
        workers.push(orders.decode(orders.mint().unwrap()).unwrap().worker);
    }
    assert_eq!(workers, [0, 1, 2]);
    for mint in &mints {
        within(mint.close()).await.unwrap();
    }
    let next = opened("b").await;
    let orders = within(next.snowflake("orders")).await.unwrap();
    for _ in 0..100 {
        let id = orders.mint().unwrap();
        assert_eq!(orders.decode(id).unwrap().worker, 1);
        seen.add(id);
    }
    within(next.close()).await.unwrap();
}

#[tokio::test]
async fn segments_continue_where_they_were_closed() {
    let dir = TempDir::new();
    let mut wanted = 1;
    for _ in 0..3 {
        let mint = opened(&dir).await;
        let invoices = within(mint.segment("invoices")).await.unwrap();
        for _ in 0..10 {
            assert_eq!(within(invoices.next()).await.unwrap(), wanted);
            wanted += 1;
        }
        assert_eq!(within(invoices.take(2)).await.unwrap(), [wanted, wanted + 1]);
        wanted += 2;
        within(mint.close()).await.unwrap();
        assert_eq!(invoices.try_next().unwrap_err().kind().code(), "closed");
    }
}

#[tokio::test]
async fn counters_rise_by_key_and_belong_to_one_open_process() {
    let dir = TempDir::new();
    let (first, second) = (opened(&dir).await, opened(&dir).await);
    let messages = within(first.counter("messages")).await.unwrap();
    for wanted in 1..=3 {
        assert_eq!(within(messages.next("alice")).await.unwrap(), wanted);
        assert_eq!(within(messages.next(b"7")).await.unwrap(), wanted);
    }
    assert_eq!(within(messages.next_many("alice", 10)).await.unwrap(), (4, 13));
    assert_eq!(messages.try_next("alice").unwrap(), 14);
    assert_eq!(within(messages.next_each(&["carol", "dave"])).await.unwrap(), [1, 1]);
    assert_eq!(messages.try_next_each(&["dave", "carol"]).unwrap(), [2, 2]);
    let others = within(second.counter("messages")).await.unwrap();
    let refused = within(others.next("alice")).await.unwrap_err();
    assert_eq!(refused.kind().code(), "not_owner", "{refused}");
    within(first.close()).await.unwrap();
    assert_eq!(messages.try_next("alice").unwrap_err().kind().code(), "closed");
    // A result of the store is reused for some milliseconds.
    let next = async {
        loop {
            match others.next("alice").await {
                Err(error) if error.kind().code() == "not_owner" => tokio::task::yield_now().await,
                result => return result.unwrap(),
            }
        }
    };
    let next = within(next).await;
    assert!(next > 14, "{next}");
    assert!(within(others.bound("7")).await.unwrap() >= 3);
    within(second.close()).await.unwrap();
}

#[tokio::test]
async fn uuids_and_ulids_are_sources_too() {
    let mint = within(open("memory:")).await.unwrap();
    let requests = within(mint.uuid("requests")).await.unwrap();
    let uuid = requests.next().await.unwrap();
    assert_eq!((uuid.len(), &uuid[14..15]), (36, "7"));
    assert_eq!(requests.take(5).await.unwrap().len(), 5);
    let events = within(mint.ulid("events")).await.unwrap();
    assert_eq!(events.next().await.unwrap().len(), 26);
    let error = events.next_for("a name").await.unwrap_err();
    assert_eq!(error.kind().code(), "invalid", "{error}");
    within(mint.close()).await.unwrap();
}

#[tokio::test]
async fn a_source_of_another_kind_is_a_conflict_that_shows_both() {
    let mint = within(open("memory:")).await.unwrap();
    within(mint.segment("orders")).await.unwrap();
    let error = within(mint.snowflake("orders")).await.unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind().code(), "conflict");
    assert!(text.contains("kind segment") && text.contains("kind snowflake"), "{text}");
    for (name, code) in [("", "invalid"), ("a/b", "invalid"), ("😀", "invalid")] {
        let error = within(mint.snowflake(name)).await.unwrap_err();
        assert_eq!(error.kind().code(), code, "{name}: {error}");
    }
    within(mint.close()).await.unwrap();
}

#[tokio::test]
async fn keys_are_set_by_defining() {
    let mint = within(open("memory:")).await.unwrap();
    let mut spec = SourceSpec::of(snowmint::coord::spec::Kind::Snowflake);
    spec.set("layout", "baidu").unwrap();
    within(mint.define("legacy", &spec)).await.unwrap();
    let legacy = within(mint.snowflake("legacy")).await.unwrap();
    assert_eq!(legacy.layout().unit_ms(), 1_000);
    legacy.mint().unwrap();
    within(mint.close()).await.unwrap();
}

#[tokio::test]
async fn invalid_store_url_is_reported() {
    for url in ["", "ids.db", "oracle://host", "memory:x"] {
        let error = within(open(url)).await.unwrap_err();
        assert_eq!(error.kind().code(), "invalid", "{url}: {error}");
    }
    let below_a_file = within(open("sqlite:/dev/null/ids.db")).await.unwrap_err();
    assert_ne!(below_a_file.kind().code(), "internal", "{below_a_file}");
    let error = open_blocking("memory:").unwrap_err();
    assert_eq!(error.kind().code(), "unsupported", "{error}");
}

#[test]
fn journal_resumes_the_same_worker_after_a_crash() {
    let (dir, data) = (TempDir::new(), TempDir::new());
    let open = || {
        let settings = NodeSettings {
            owner: "orders-1".into(),
            data_dir: Some(data.path().into()),
            after_crash: AfterCrash::OtherWorker,
            ..node_settings()
        };
        Options::new().node_settings(settings).open_blocking(&url(dir.path())).unwrap()
    };
    let mut seen = Seen::default();
    let mut workers = Vec::new();
    for _ in 0..3 {
        let mint = open();
        let orders = mint.snowflake("orders").unwrap();
        for _ in 0..100 {
            seen.add(orders.mint().unwrap());
        }
        workers.push(orders.decode(orders.mint().unwrap()).unwrap().worker);
        // Dropped, not closed: nothing is released.
        drop(orders);
        drop(mint);
    }
    assert_eq!(workers, [0, 0, 0]);
}

/// Two stores hand out the numbers of one source; the third has its definition.
#[tokio::test]
async fn numbers_of_one_source_come_from_two_stores() {
    let dir = TempDir::new();
    let at = |name: &str| format!("sqlite:{}/{name}.db", dir.path().display());
    let spec = SourceSpec::from_json(r#"{"kind":"segment","stores":"a,b"}"#).unwrap();
    let mut seen = Seen::default();
    for _ in 0..2 {
        let options = || options().secondary_store("a", at("a")).secondary_store("b", at("b"));
        let options = || options().data_dir(dir.path().join("data"));
        let mint = open_once_free(&at("ids"), options).await;
        mint.define("bills", &spec).await.unwrap();
        let bills = within(mint.segment("bills")).await.unwrap();
        // Until both stores have replied once, one store serves alone.
        let mut came = [false; 2];
        let both = async {
            while came != [true; 2] {
                let id = bills.next().await.unwrap();
                came[usize::try_from(id % 2).unwrap()] = true;
                seen.add(id);
                BootTimer.sleep_ms(1).await;
            }
        };
        within(both).await;
        // A slow store is left out while it is slow.
        let mut residues = [0; 2];
        let by_both = async {
            while residues.iter().any(|count| *count <= 50) {
                for id in bills.take(3).await.unwrap() {
                    residues[usize::try_from(id % 2).unwrap()] += 1;
                    seen.add(id);
                }
                seen.add(bills.next().await.unwrap());
            }
        };
        within(by_both).await;
        assert_eq!(bills.stats().stores.len(), 2);
        let mut lane = bills.lane(10).unwrap();
        for _ in 0..50 {
            // Prefetched numbers only, without waiting.
            match lane.try_next() {
                Ok(id) => seen.add(id),
                Err(_) => seen.add(within(bills.next()).await.unwrap()),
            }
        }
        mint.close().await.unwrap();
    }
    assert!(dir.path().join("data/stores/a/journal").is_file());
    // A program that does not know the stores does not mint.
    let stranger = within(open(&at("ids"))).await.unwrap();
    let refused = within(stranger.segment("bills")).await.unwrap_err();
    assert!(refused.to_string().contains("add it under [stores]"), "{refused}");
}

#[tokio::test]
async fn closed_handle_stops_all_sources_and_closes_the_store() {
    let mint = open("memory:").await.unwrap();
    let uuids = mint.uuid("events").await.unwrap();
    let ulids = mint.ulid("logs").await.unwrap();
    let counters = mint.counter("counters").await.unwrap();
    within(counters.next("alice")).await.unwrap();
    mint.close().await.unwrap();
    mint.close().await.unwrap();
    let ended = [
        within(uuids.next()).await.map(drop),
        within(ulids.next()).await.map(drop),
        within(counters.next("alice")).await.map(drop),
        mint.node().store().identity().await.map(drop),
    ];
    for ended in ended {
        assert_eq!(ended.map_err(|error| error.kind().code()), Err("closed"));
    }
}
