//! Two systems allocate from one table while both serve; after that, only one of them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use snowmint_coord::{
    BootTimer, IdBatch, Node, NodeSettings, Platform, Retry, Source, SourceSpec, Store, Timer as _,
    Upstream as _, Upstreams,
};
use snowmint_stores::legacy::{LegacySystem, UpstreamTable};
use snowmint_testkit::servers::Mysql;
use sqlx::Row as _;
use sqlx::mysql::{MySqlPool, MySqlPoolOptions};

/// Allocating tasks of each system.
const EACH: usize = 10;
/// Numbers of one step of the other system.
const STEP: i64 = 50;

const TABLES: &str = "
    CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint NOT NULL,
        step int NOT NULL) ENGINE=InnoDB;
    INSERT INTO leaf_alloc VALUES ('orders', 1001, 50);
    CREATE TABLE tiny_id_info (id bigint unsigned AUTO_INCREMENT PRIMARY KEY,
        biz_type varchar(63) NOT NULL UNIQUE, max_id bigint NOT NULL, step int, delta int NOT NULL,
        remainder int NOT NULL, version bigint NOT NULL) ENGINE=InnoDB;
    INSERT INTO tiny_id_info VALUES (1, 'orders', 1000, 50, 1, 0, 1);
    CREATE TABLE cosid (name varchar(100) PRIMARY KEY, last_max_id bigint NOT NULL,
        last_fetch_time bigint NOT NULL) ENGINE=InnoDB;
    INSERT INTO cosid VALUES ('orders', 1000, 0);";

/// Returns the numbers of one step, allocated by the other system's own statements.
async fn theirs(legacy_system: LegacySystem, pool: &MySqlPool) -> Result<Vec<u64>, sqlx::Error> {
    let mut step = pool.begin().await?;
    let max: i64 = match legacy_system {
        LegacySystem::Leaf => {
            let update = "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ?";
            sqlx::query(update).bind("orders").execute(&mut *step).await?;
            let select = "SELECT max_id FROM leaf_alloc WHERE biz_tag = ?";
            // Leaf's numbers are below the mark.
            sqlx::query(select).bind("orders").fetch_one(&mut *step).await?.get::<i64, _>(0) - 1
        }
        LegacySystem::Cosid => {
            let update =
                "update cosid set last_max_id=(last_max_id + ?),last_fetch_time=? where name = ?";
            let update = sqlx::query(update).bind(STEP).bind(1_i64).bind("orders");
            update.execute(&mut *step).await?;
            let select = "select last_max_id from cosid where name = ?";
            sqlx::query(select).bind("orders").fetch_one(&mut *step).await?.get(0)
        }
        LegacySystem::Tinyid => {
            let select = "select max_id, version from tiny_id_info where biz_type = ?";
            let row = sqlx::query(select).bind("orders").fetch_one(&mut *step).await?;
            let (max, version): (i64, i64) = (row.get(0), row.get(1));
            let update = "update tiny_id_info set max_id = ?, version = version + 1
                where id = 1 and max_id = ? and version = ? and biz_type = ?";
            let update = sqlx::query(update).bind(max + STEP).bind(max).bind(version);
            let done = update.bind("orders").execute(&mut *step).await?;
            if done.rows_affected() == 0 {
                return Ok(Vec::new());
            }
            max + STEP
        }
    };
    step.commit().await?;
    let number = |number: i64| u64::try_from(number).unwrap();
    Ok((number(max - STEP + 1)..=number(max)).collect())
}

/// Allocates until the table prevents it.
async fn allocate_theirs(
    legacy_system: LegacySystem,
    pool: MySqlPool,
    steps: Arc<AtomicUsize>,
) -> (Vec<u64>, String) {
    let mut allocated = Vec::new();
    loop {
        match theirs(legacy_system, &pool).await {
            Ok(numbers) => allocated.extend(numbers),
            // Two of MariaDB's transactions in conflict: the other system's servers try again too.
            Err(error) if error.to_string().contains("try restarting") => {}
            Err(error) if error.to_string().contains("Record has changed") => {}
            Err(error) => return (allocated, error.to_string()),
        }
        steps.fetch_add(1, Ordering::SeqCst);
    }
}

async fn ours(source: &Source) -> Vec<u64> {
    match source.mint(70, None, 20_000).await.unwrap() {
        IdBatch::Numbers(ids) => ids,
        other => panic!("{other:?}"),
    }
}

async fn allocate_ours(source: Source, stop: Arc<AtomicBool>) -> Vec<u64> {
    let mut allocated = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        allocated.extend(ours(&source).await);
    }
    // Some more after the cutover.
    allocated.extend(ours(&source).await);
    allocated
}

async fn node(store: &Arc<dyn Store>, legacy_system: LegacySystem, url: &str) -> Node {
    let table = UpstreamTable::open(legacy_system, url).unwrap();
    let upstreams: Upstreams = [("old".to_owned(), Arc::new(table) as _)].into();
    let settings = NodeSettings { upstreams, ..NodeSettings::default() };
    Node::open(Arc::clone(store), settings, Platform::system()).await.unwrap()
}

/// Ten tasks of each system allocate at once; after the cutover the other system's fail, and ours
/// continue above all earlier numbers.
async fn both_serve(legacy_system: LegacySystem) {
    let server = Mysql::start(&[]);
    server.run(TABLES);
    let url = server.url();
    let store = snowmint_stores::open("memory:", "default").await.unwrap();
    let first = node(&store, legacy_system, &url).await;
    let spec = r#"{"kind":"segment","upstream":"old:orders","step":{"rule":"fixed","size":30}}"#;
    first.define("orders", &SourceSpec::from_json(spec).unwrap()).await.unwrap();

    let (stop, steps) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let connections = u32::try_from(EACH).unwrap();
    let pool = MySqlPoolOptions::new().max_connections(connections).connect(&url).await.unwrap();
    let (mut our_tasks, mut nodes) = (Vec::new(), Vec::new());
    for _ in 0..EACH {
        let node = node(&store, legacy_system, &url).await;
        let source = node.source("orders").await.unwrap();
        our_tasks.push(tokio::spawn(allocate_ours(source, Arc::clone(&stop))));
        nodes.push(node);
    }
    let theirs = |_| tokio::spawn(allocate_theirs(legacy_system, pool.clone(), Arc::clone(&steps)));
    let their_tasks: Vec<_> = (0..EACH).map(theirs).collect();
    while steps.load(Ordering::SeqCst) < 20 * EACH {
        BootTimer.sleep_ms(20).await;
    }

    let table = UpstreamTable::open(legacy_system, &url).unwrap();
    let frozen = table.freeze("orders").await.unwrap();
    let highest = frozen.highest().unwrap();
    first.begin_cut_over("orders", highest + 1).await.unwrap();
    frozen.end().await.unwrap();
    first.cut_over("orders").await.unwrap();
    let mut seen = HashSet::new();
    for task in their_tasks {
        let (allocated, ended) = task.await.unwrap();
        let refused = ["out of range", "no rows returned"].iter().any(|word| ended.contains(word));
        assert!(refused, "their servers fail: {ended}");
        assert!(allocated.iter().all(|id| *id <= highest));
        assert!(allocated.into_iter().all(|id| seen.insert(id)), "theirs are unique");
    }
    stop.store(true, Ordering::SeqCst);
    let (mut before, mut after) = (0, 0);
    for task in our_tasks {
        for id in task.await.unwrap() {
            assert!(seen.insert(id), "{id} came twice");
            *(if id <= highest { &mut before } else { &mut after }) += 1;
        }
    }
    assert!(before > 0, "ours drew from there");
    let new = first.source("orders").await.unwrap();
    let numbers = ours(&new).await;
    after += numbers.len();
    assert!(numbers.iter().all(|id| *id > highest && seen.insert(*id)), "{highest} {numbers:?}");
    assert!(after > 0 && seen.iter().all(|id| *id > 1000), "nothing that was handed out before");

    // Repeating the cutover succeeds, and changes nothing.
    let again = table.freeze("orders").await.unwrap();
    assert_eq!(again.highest(), None);
    again.end().await.unwrap();
    assert!(first.cut_over("orders").await.is_ok(), "nothing is lowered");
    assert!(ours(&first.source("orders").await.unwrap()).await.iter().all(|id| seen.insert(*id)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn leaf_and_snowmint_allocate_from_one_table_until_cut_over() {
    both_serve(LegacySystem::Leaf).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tinyid_and_snowmint_allocate_from_one_table_until_cut_over() {
    both_serve(LegacySystem::Tinyid).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cosid_and_snowmint_allocate_from_one_table_until_cut_over() {
    both_serve(LegacySystem::Cosid).await;
}

/// Callers of the source did nothing wrong.
#[tokio::test]
async fn unusable_row_of_an_upstream_is_unavailable() {
    let server = Mysql::start(&[]);
    server.run(TABLES);
    server.run("UPDATE tiny_id_info SET delta = 2; UPDATE cosid SET last_max_id = -1;");
    for (legacy_system, key, part) in [
        (LegacySystem::Leaf, "bills", "no key \"bills\""),
        (LegacySystem::Tinyid, "orders", "has a stripe"),
        (LegacySystem::Cosid, "orders", "last_max_id = -1 is negative"),
    ] {
        let table = UpstreamTable::open(legacy_system, &server.url()).unwrap();
        let refused = table.allocate(key, 10).await.unwrap_err();
        assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
        assert_eq!(refused.retry(), Retry::Never, "{refused:?}");
        assert!(refused.to_string().contains(part), "{part}: {refused}");
    }
}

#[tokio::test]
async fn node_without_the_upstream_does_not_mint() {
    let store = snowmint_stores::open("memory:", "default").await.unwrap();
    let server = Mysql::start(&[]);
    let knows = node(&store, LegacySystem::Leaf, &server.url()).await;
    let spec = SourceSpec::from_json(r#"{"kind":"segment","upstream":"old:orders"}"#).unwrap();
    knows.define("orders", &spec).await.unwrap();
    let without =
        Node::open(Arc::clone(&store), NodeSettings::default(), Platform::system()).await.unwrap();
    let refused = without.source("orders").await.unwrap_err();
    assert_eq!(refused.kind().code(), "unsupported", "{refused}");
    assert!(refused.to_string().contains("[upstreams]"), "{refused}");
}
