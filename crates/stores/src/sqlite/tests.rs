use std::path::PathBuf;

use snowmint_coord::verbs::{Access, Backend as _, Rows as _};
use snowmint_coord::{
    ClaimRequest, Definition, Doubt, ErrorKind, Evidence, FastForward, JournalInfo, Known, Mark,
    Member, NewDefinition, Presence, Proof, Recalled, Reserve, Segment, SourceState, StoreIdentity,
    random,
};
use snowmint_core::UnixMillis;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions as _, Connection as _};

use super::*;
use crate::sql::Session as _;

/// A folder that is removed with its contents.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("snowmint-{}", random::incarnation().unwrap());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("ids.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn opened(folder: &Folder) -> BackendStore<File> {
    open_with(&folder.file(), "default", Settings::default(), identity).await.unwrap()
}

fn source(name: &str, spec: &str) -> NewDefinition {
    NewDefinition { name: name.into(), spec: spec.into(), identity: "{}".into(), enabled: None }
}

async fn reserve_ten(store: &BackendStore<File>, source: &Definition) -> Result<Segment> {
    let definition_version = source.version;
    let reserve =
        Reserve { source: source.name.clone(), length: 10, definition_version, within: None };
    store.reserve(&reserve).await
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
    result.expect_err("an error").kind().code()
}

#[test]
fn the_docs_show_the_capabilities() {
    assert!(CAPABILITIES.shown_in(include_str!("mod.rs")));
}

#[tokio::test]
async fn acknowledged_writes_survive_a_reopen() {
    let folder = Folder::new();
    let store = opened(&folder).await;
    let orders = store.define(&source("orders", "{}")).await.unwrap();
    reserve_ten(&store, &orders).await.unwrap();
    let identity = store.identity().await.unwrap();
    store.close().await.unwrap();
    assert!(!folder.0.join("ids.db-wal").exists(), "a closed file is one file");
    let again = opened(&folder).await;
    assert_eq!(again.identity().await.unwrap(), identity);
    assert_eq!(reserve_ten(&again, &orders).await.unwrap().first, 11);
}

#[tokio::test]
async fn impossible_paths_are_refused() {
    let folder = Folder::new();
    for path in ["", ":memory:", "a\0b"] {
        assert_eq!(
            code(open(Path::new(path), "default", Settings::default()).await),
            "invalid",
            "{path}"
        );
    }
    let missing = folder.0.join("nowhere/ids.db");
    let refused = open(&missing, "default", Settings::default()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_read_only");
    assert!(refused.to_string().contains("nowhere/ids.db"), "{refused}");
    assert_eq!(
        code(open(&folder.0, "default", Settings::default()).await),
        "store_read_only",
        "a folder"
    );
    #[cfg(target_os = "linux")]
    assert_eq!(
        code(open(Path::new("/proc/ids.db"), "default", Settings::default()).await),
        "store_read_only"
    );
}

/// SQLite's own layer without locks stands for a file system without shared memory.
#[tokio::test]
async fn file_without_a_write_ahead_log_is_unsafe() {
    let folder = Folder::new();
    let without: Adjust = |options| options.vfs("unix-none");
    for is_made in [false, true] {
        if is_made {
            opened(&folder).await.close().await.unwrap();
            // As a copy by VACUUM INTO has it: a log that is there stays.
            let options = SqliteConnectOptions::new().filename(folder.file());
            let other = options.journal_mode(SqliteJournalMode::Delete).connect().await.unwrap();
            other.close().await.unwrap();
        }
        let refused = open_with(&folder.file(), "default", Settings::default(), without).await;
        let refused = refused.map(drop).unwrap_err();
        assert_eq!(refused.kind().code(), "unsafe_store", "{refused}");
        assert!(refused.to_string().contains("journal_mode = delete"), "{refused}");
    }
    opened(&folder).await.close().await.unwrap();
}

#[tokio::test]
async fn full_disk_is_reported_and_loses_nothing() {
    let folder = Folder::new();
    let small: Adjust = |options| options.pragma("max_page_count", "30");
    let store = open_with(&folder.file(), "default", Settings::default(), small).await.unwrap();
    let orders = store.define(&source("orders", "{}")).await.unwrap();
    let bulk = "x".repeat(8_000);
    let mut kept = 0;
    let refused = loop {
        match store.define(&source(&format!("bulk-{kept}"), &bulk)).await {
            Ok(_) => kept += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.kind().code(), "storage_full", "{refused:?}");
    let list = store.list().await.unwrap();
    assert_eq!(list.definitions.len(), kept + 1, "the refused one left nothing behind");
    assert_eq!(
        reserve_ten(&store, &orders).await.unwrap().first,
        1,
        "what needs no room continues"
    );
    store.close().await.unwrap();
    let roomy = opened(&folder).await;
    roomy.define(&source("one-more", &bulk)).await.unwrap();
    assert_eq!(reserve_ten(&roomy, &orders).await.unwrap().first, 11);
}

#[tokio::test]
async fn damaged_files_are_refused_and_left_alone() {
    let folder = Folder::new();
    let store = opened(&folder).await;
    for number in 0..40 {
        store.define(&source(&format!("s{number}"), &"x".repeat(2000))).await.unwrap();
    }
    store.close().await.unwrap();
    let good = std::fs::read(folder.file()).unwrap();

    let mut overwritten = good.clone();
    overwritten[..16].copy_from_slice(b"not a sqlite fil");
    let mut torn = good.clone();
    torn[8192..40_000].fill(0xa5);
    let cut = good[..good.len() / 2].to_vec();
    for (what, damaged) in [("header", overwritten), ("pages", torn), ("length", cut)] {
        std::fs::write(folder.file(), &damaged).unwrap();
        let refused = open(&folder.file(), "default", Settings::default()).await.unwrap_err();
        assert_eq!(refused.kind().code(), "corrupt", "{what}: {refused:?}");
        assert!(refused.to_string().contains("ids.db"), "{refused}");
        assert_eq!(std::fs::read(folder.file()).unwrap(), damaged, "{what}: left alone");
    }
    std::fs::write(folder.file(), &good).unwrap();
    assert_eq!(opened(&folder).await.list().await.unwrap().definitions.len(), 40);
}

#[tokio::test]
async fn a_newer_file_is_refused() {
    let folder = Folder::new();
    let store = opened(&folder).await;
    let mut rows = store.backend().begin(Access::Write).await.unwrap();
    let newer = "UPDATE snowmint_schema SET version = 99";
    rows.session.run(newer.into(), Vec::new()).await.unwrap();
    rows.commit().await.unwrap();
    store.close().await.unwrap();
    let refused = open(&folder.file(), "default", Settings::default()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unsupported");
    assert!(refused.to_string().contains("version 99"), "{refused}");
}

/// Two versions at once: a running one, and a newer one started next to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_server_continues_while_a_newer_one_migrates() {
    const NEWER: crate::sql::making::Steps = &[
        schema::STEPS[0],
        schema::STEPS[1],
        schema::STEPS[2],
        &[
            "ALTER TABLE snowmint_source ADD COLUMN note TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE snowmint_member ADD COLUMN version TEXT",
            "CREATE TABLE snowmint_new (only_one INTEGER PRIMARY KEY) STRICT",
        ],
    ];
    assert_eq!(NEWER.len(), schema::STEPS.len() + 1, "the new step comes after all that there are");
    let folder = Folder::new();
    let older = Arc::new(opened(&folder).await);
    let numbers = older.define(&source("numbers", "{}")).await.unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let load = tokio::spawn({
        let (older, numbers) = (Arc::clone(&older), numbers.clone());
        async move {
            let mut reserved = Vec::new();
            while !*stopped.borrow() {
                let segment = reserve_ten(&older, &numbers).await.unwrap();
                reserved.push((segment.first, segment.last));
                let name = format!("source-{}", reserved.len());
                older.define(&source(&name, "{}")).await.unwrap();
            }
            reserved
        }
    });
    let wait_for = async |count: usize| {
        while older.list().await.unwrap().definitions.len() < count {
            tokio::task::yield_now().await;
        }
    };
    wait_for(20).await;
    let options = SqliteConnectOptions::new().filename(folder.file());
    let mut newer =
        options.busy_timeout(std::time::Duration::from_secs(30)).connect().await.unwrap();
    let id = || random::incarnation().unwrap().to_string();
    schema::prepare(&mut newer, "ids.db", id(), NEWER).await.ok().unwrap();
    // A second call changes nothing.
    schema::prepare(&mut newer, "ids.db", id(), NEWER).await.ok().unwrap();
    let seen = older.list().await.unwrap().definitions.len();
    wait_for(seen + 20).await;
    stop.send_replace(true);
    let reserved = load.await.unwrap();
    assert!(reserved.is_sorted_by(|before, next| before.1 < next.0), "{reserved:?}");

    // No older process can start any more; a running one continues until it is stopped.
    let refused = open(&folder.file(), "default", Settings::default()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unsupported");
    for part in ["version 4", "maximum 3", "update this program", "ids.db"] {
        assert!(refused.to_string().contains(part), "{part}: {refused}");
    }
    // The newer version's steps left the older version's rows unchanged.
    assert_eq!(older.get("numbers").await.unwrap().spec, "{}");
    newer.close().await.unwrap();
    older.close().await.unwrap();
}

#[tokio::test]
async fn restored_file_is_rejected_until_recovery() {
    let folder = Folder::new();
    let store = opened(&folder).await;
    let orders = store.define(&source("orders", "{}")).await.unwrap();
    let backup = folder.0.join("backup.db");
    store.close().await.unwrap();
    std::fs::copy(folder.file(), &backup).unwrap();

    let store = opened(&folder).await;
    reserve_ten(&store, &orders).await.unwrap();
    let seen = store.identity().await.unwrap();
    for extension in ["db-wal", "db-shm"] {
        let _ = std::fs::remove_file(folder.file().with_extension(extension));
    }
    std::fs::rename(&backup, folder.file()).unwrap();
    let refused = reserve_ten(&store, &orders).await.unwrap_err();
    let ErrorKind::StoreRolledBack { seen: before, found, .. } = refused.kind() else {
        panic!("{refused:?}")
    };
    assert!(*before == seen.writes && *found < seen.writes);
    assert_eq!(code(store.identity().await), "store_rolled_back");
    let forward =
        FastForward { segments: vec![("orders".into(), Mark::new(11))], ..FastForward::default() };
    let moved = store.fast_forward(&forward).await.unwrap();
    assert!(moved.writes > seen.writes);
    assert_eq!(reserve_ten(&store, &orders).await.unwrap().first, 11);
}

/// Returns the state after a kill and a careless restore: the old file, and the log of changes after
/// a checkpoint that the old file lacks. The source `orders` has lost numbers, and `bills` has not.
async fn mixed(folder: &Folder) -> [Definition; 2] {
    let [backup, log] = ["backup.db", "log"].map(|name| folder.0.join(name));
    let store = opened(folder).await;
    let bills = store.define(&source("bills", "{}")).await.unwrap();
    // Enough rows between the two sources that each is on a separate page, and no page is split
    // later.
    for number in 0..60 {
        store.define(&source(&format!("filler-{number}"), &"x".repeat(300))).await.unwrap();
    }
    let orders = store.define(&source("orders", "{}")).await.unwrap();
    let shop = open(&folder.file(), "shop", Settings::default()).await.unwrap();
    shop.define(&source("orders", "{}")).await.unwrap();
    shop.close().await.unwrap();
    store.close().await.unwrap();
    std::fs::copy(folder.file(), &backup).unwrap();

    let store = opened(folder).await;
    reserve_ten(&store, &orders).await.unwrap();
    store.close().await.unwrap();
    let store = opened(folder).await;
    reserve_ten(&store, &bills).await.unwrap();
    std::fs::copy(folder.file().with_extension("db-wal"), &log).unwrap();
    store.close().await.unwrap();

    std::fs::rename(&backup, folder.file()).unwrap();
    std::fs::rename(&log, folder.file().with_extension("db-wal")).unwrap();
    [bills, orders]
}

const NOTHING: StoreIdentity = StoreIdentity { id: String::new(), writes: 0 };

#[tokio::test]
async fn old_rows_under_a_newer_log_are_noticed() {
    let folder = Folder::new();
    let [bills, orders] = mixed(&folder).await;
    let mixed = opened(&folder).await;
    assert_eq!(code(mixed.recall("it", &NOTHING).await), "store_rolled_back");
    assert_eq!(code(reserve_ten(&mixed, &orders).await), "store_rolled_back");
    let journal = JournalInfo { id: "j".into(), ..JournalInfo::default() };
    assert_eq!(code(mixed.report(&journal, None).await), "store_rolled_back", "not in doubt");
    // Who plans the recovery reads what is left.
    let newest = mixed.identity().await.unwrap();
    assert_eq!(mixed.standing().await.unwrap().doubt, None);
    assert_eq!(mixed.list().await.unwrap().definitions.len(), 62);
    let forward =
        FastForward { segments: vec![("orders".into(), Mark::new(11))], ..FastForward::default() };
    let raised = FastForward { values_only: true, ..forward.clone() };
    assert_eq!(code(mixed.fast_forward(&raised).await), "store_rolled_back", "no recovery");
    assert!(mixed.fast_forward(&forward).await.unwrap().writes > newest.writes);
    assert_eq!(reserve_ten(&mixed, &orders).await.unwrap().first, 11);
    assert_eq!(reserve_ten(&opened(&folder).await, &bills).await.unwrap().first, 11);
}

/// Counts do not tell which of its rows are old.
#[tokio::test]
async fn recovery_of_mixed_rows_excuses_no_other_namespace() {
    let folder = Folder::new();
    mixed(&folder).await;
    let store = open(&folder.file(), "default", Settings::default()).await.unwrap();
    let shop = open(&folder.file(), "shop", Settings::default()).await.unwrap();
    let seen = StoreIdentity { writes: 1, ..store.identity().await.unwrap() };
    store.fast_forward(&FastForward::default()).await.unwrap();
    let doubt = shop.standing().await.unwrap().doubt.unwrap();
    assert!(doubt.evidence.starts_with("change count of the rows"), "{doubt:?}");
    assert_eq!(code(shop.define(&source("more", "{}")).await), "store_rolled_back");
    shop.fast_forward(&FastForward::default()).await.unwrap();
    shop.define(&source("more", "{}")).await.unwrap();
    let fresh = open(&folder.file(), "fresh", Settings::default()).await.unwrap();
    assert_eq!(fresh.recall("it", &NOTHING).await.unwrap(), Recalled::Same);
    for store in [store, shop] {
        assert_eq!(store.recall("it", &NOTHING).await.unwrap(), Recalled::Same);
        // It has written little, and long before: all of it may be lost.
        assert_eq!(store.recall("it", &seen).await.unwrap(), Recalled::Recovered);
        let now = store.identity().await.unwrap();
        assert_eq!(store.recall("it", &now).await.unwrap(), Recalled::Same);
    }
}

/// The first process that finds it reports for all.
#[tokio::test]
async fn mixed_rows_are_put_in_doubt_once() {
    let folder = Folder::new();
    mixed(&folder).await;
    let store = opened(&folder).await;
    let found = store.identity().await.unwrap();
    let evidence = Evidence { proof: Proof::Comparison, ..Evidence::of_operator(found.id.clone()) };
    let refused = store.recall("it", &NOTHING).await.unwrap_err();
    let doubt = Doubt::of(refused.kind(), "it").unwrap();
    store.doubt(&doubt, &evidence).await.unwrap();
    for namespace in ["default", "shop"] {
        let store = open(&folder.file(), namespace, Settings::default()).await.unwrap();
        assert_eq!(store.standing().await.unwrap().doubt.as_ref(), Some(&doubt));
        let journal = JournalInfo { id: "j".into(), ..JournalInfo::default() };
        store.report(&journal, Some(&Known::default())).await.unwrap();
        assert!(store.standing().await.unwrap().journals[0].has_reported);
        assert_eq!(code(store.define(&source("more", "{}")).await), "store_rolled_back");
    }
    store.fast_forward(&FastForward::default()).await.unwrap();
    store.define(&source("more", "{}")).await.unwrap();
    assert_eq!(store.recall("it", &found).await.unwrap(), Recalled::Recovered);
}

/// An operator has to recover each of them, and none of its servers may run.
#[tokio::test]
async fn other_namespaces_in_doubt_are_named_up_to_a_limit() {
    let folder = Folder::new();
    let at =
        async |namespace: &str| open(&folder.file(), namespace, Settings::default()).await.unwrap();
    for number in 1..=17 {
        let journal = JournalInfo { id: "j".into(), ..JournalInfo::default() };
        at(&format!("shop-{number:02}")).await.report(&journal, None).await.unwrap();
    }
    let store = at("default").await;
    let found = store.identity().await.unwrap();
    let seen = StoreIdentity { writes: found.writes + 1, ..found.clone() };
    let evidence = Evidence { seen, proof: Proof::Comparison, ..Evidence::of_operator(found.id) };
    let doubt = Doubt { evidence: "a member".into(), seen: 2, found: 1 };
    store.doubt(&doubt, &evidence).await.unwrap();
    let named = async || store.standing().await.unwrap().others_in_doubt.to_string();
    assert!(named().await.starts_with("shop-01, shop-02, "), "{}", named().await);
    assert!(named().await.ends_with(", shop-16 and more"), "{}", named().await);
    at("shop-01").await.fast_forward(&FastForward::default()).await.unwrap();
    assert!(named().await.ends_with(", shop-17"), "{}", named().await);
}

/// The totals that reveal old rows stay equal under every verb.
#[tokio::test]
async fn a_file_opens_again_after_every_verb() {
    let folder = Folder::new();
    let now = UnixMillis::new(1_000_000);
    let store = opened(&folder).await;
    let member = Member {
        incarnation: random::incarnation().unwrap(),
        owner: "orders".into(),
        host: String::new(),
        process: 1,
        address: String::new(),
    };
    let presence = Presence { sample: now, renewals: 0, ttl_ms: 1000 };
    store.join(&member, presence, now).await.unwrap();
    let orders = store.define(&source("orders", "{}")).await.unwrap();
    reserve_ten(&store, &orders).await.unwrap();
    store.alter(&source("orders", "[]"), None).await.unwrap();
    store.set_state("orders", SourceState::Deleted).await.unwrap();
    for reuse in [snowmint_coord::Reuse::Recycle, snowmint_coord::Reuse::Never] {
        for round in 0..300 {
            let request = ClaimRequest {
                pool: snowmint_coord::Pool {
                    name: format!("{reuse:?}"),
                    slots: 1000,
                    group: 1,
                    reuse,
                },
                member: member.incarnation,
                owner: member.owner.clone(),
                count: 1,
                preference: snowmint_coord::Preference::LastOfOwner,
                supersedes: None,
                mark_at_most: Mark::MAX,
                request: round + 1,
            };
            let lease = store.claim(&request, now).await.unwrap().remove(0);
            store.release(&lease.unused(), now).await.unwrap();
        }
    }
    store.fast_forward(&FastForward::default()).await.unwrap();
    store.leave(member.incarnation, now).await.unwrap();
    assert!(opened(&folder).await.identity().await.is_ok());
}

#[tokio::test]
async fn missing_file_is_not_created_again() {
    let folder = Folder::new();
    let store = opened(&folder).await;
    let orders = store.define(&source("orders", "{}")).await.unwrap();
    std::fs::remove_file(folder.file()).unwrap();
    for _ in 0..2 {
        let refused = reserve_ten(&store, &orders).await.unwrap_err();
        assert_eq!(refused.kind().code(), "unavailable");
        assert!(refused.to_string().contains("is missing"), "{refused}");
    }
    assert!(!folder.file().exists());
}

/// A path that cannot be looked up does not show that the file is gone.
#[tokio::test]
async fn unreachable_file_is_reported_with_its_reason() {
    let folder = Folder::new();
    let store = opened(&folder).await;
    let orders = store.define(&source("orders", "{}")).await.unwrap();
    let aside = folder.0.join("aside.db");
    std::fs::rename(folder.file(), &aside).unwrap();
    std::os::unix::fs::symlink(folder.file(), folder.file()).unwrap();
    let refused = reserve_ten(&store, &orders).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable");
    assert!(!refused.to_string().contains("is missing"), "{refused}");
    assert!(std::error::Error::source(&refused).is_some(), "{refused:?}");
    std::fs::rename(&aside, folder.file()).unwrap();
    reserve_ten(&store, &orders).await.unwrap();
}

#[tokio::test]
async fn abandoned_step_blocks_no_other() {
    let folder = Folder::new();
    let store = opened(&folder).await;
    let other = opened(&folder).await;
    let orders = store.define(&source("orders", "{}")).await.unwrap();
    for _ in 0..20 {
        let mut rows = store.backend().begin(Access::Write).await.unwrap();
        let far = "UPDATE snowmint_source SET mark = 1000000";
        rows.session.run(far.into(), Vec::new()).await.unwrap();
        drop(rows);
        reserve_ten(&other, &orders).await.unwrap();
        reserve_ten(&store, &orders).await.unwrap();
    }
    assert_eq!(store.get("orders").await.unwrap().segment.mark, Mark::new(401));
}
