//! The SQLite store keeps the contract, also between processes and after `kill -9`.
//!
//! The processes are this same program, started again for one of its tests, which then finds
//! [`CHILD_FILE`] set and runs the child's part.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::{
    BootTimer, ClaimRequest, Extend, Mark, Member, NewDefinition, Pool, Preference, Presence,
    Reserve, Reuse, Store, Timer, random,
};
use snowmint_core::UnixMillis;
use snowmint_stores::Settings;
use snowmint_testkit::contract::{
    self, Factory, LostWrites, every_verb_is_refused_by_an_older_state,
    every_verb_is_refused_by_another_store, recovery_checks_the_server,
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::opening;

/// Environment variable with the file that a child process works on.
const CHILD_FILE: &str = "SNOWMINT_TEST_CHILD_FILE";
/// Environment variable with the wall clock of a child process.
const CHILD_NOW_MS: &str = "SNOWMINT_TEST_CHILD_NOW_MS";

/// A folder that is removed with its contents.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = random::incarnation().unwrap().to_string();
        let path = std::env::temp_dir().join(format!("snowmint-{name}"));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.0.join("ids.db").display())
    }

    /// Runs statements in the file, as another process does.
    async fn run(&self, statements: impl IntoIterator<Item = &'static str>) {
        let options = SqliteConnectOptions::new().filename(self.0.join("ids.db"));
        let mut connection = options.connect().await.unwrap();
        for statement in statements {
            sqlx::query(statement).execute(&mut connection).await.unwrap();
        }
        connection.close().await.unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn open(url: &str, namespace: &str) -> Arc<dyn Store> {
    snowmint_stores::open(url, namespace).await.unwrap()
}

struct Sqlite(Folder);

#[async_trait]
impl Factory for Sqlite {
    fn name(&self) -> String {
        "sqlite".into()
    }

    async fn open(&self, namespace: &str) -> Arc<dyn Store> {
        open(&self.0.url(), namespace).await
    }

    async fn pass_ms(&self, _: u64) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_keeps_the_contract() {
    contract::run(Sqlite(Folder::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_first_openers_agree_on_one_store() {
    let folder = Folder::new();
    let url = folder.url();
    let openers: Vec<_> = (0..16)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { open(&url, "default").await.identity().await.unwrap().id })
        })
        .collect();
    let mut ids = BTreeSet::new();
    for opener in openers {
        ids.insert(opener.await.unwrap());
    }
    assert_eq!(ids.len(), 1);
}

#[tokio::test]
async fn read_only_open_creates_no_store() {
    let folder = Folder::new();
    let file = folder.0.join("ids.db");
    let look = Settings { create_if_missing: false, ..Settings::default() };
    let looked = async || snowmint_stores::open_with(&folder.url(), "default", look).await;
    assert_eq!(looked().await.unwrap_err().kind().code(), "not_found");
    assert!(!file.exists());
    std::fs::write(&file, "").unwrap();
    assert_eq!(looked().await.unwrap_err().kind().code(), "not_found");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 0);
    let made = open(&folder.url(), "default").await;
    assert_eq!(looked().await.unwrap().identity().await.unwrap(), made.identity().await.unwrap());
}

/// A copy by `VACUUM INTO`, and some tools, leave a file without a write-ahead log.
#[tokio::test]
async fn file_in_another_journal_mode_gets_a_write_ahead_log() {
    /// Offset of the file's format in its header: 1 with a rollback journal, 2 with a log.
    const FORMAT: usize = 18;
    let folder = Folder::new();
    let format = || std::fs::read(folder.0.join("ids.db")).unwrap()[FORMAT];
    open(&folder.url(), "default").await.close().await.unwrap();
    folder.run(["PRAGMA journal_mode = delete"]).await;
    assert_eq!(format(), 1);
    let store = open(&folder.url(), "default").await;
    store.define(&numbers()).await.unwrap();
    assert_eq!(format(), 2);
    assert!(folder.0.join("ids.db-wal").exists(), "the write is in the log");
}

/// Statements that drop all tables.
const TABLES: [&str; 8] = [
    "DROP TABLE snowmint_schema",
    "DROP TABLE snowmint_store",
    "DROP TABLE snowmint_namespace",
    "DROP TABLE snowmint_member",
    "DROP TABLE snowmint_pool",
    "DROP TABLE snowmint_slot",
    "DROP TABLE snowmint_source",
    "DROP TABLE snowmint_note",
];

#[tokio::test]
async fn tables_that_were_dropped_are_another_store() {
    let folder = Folder::new();
    let drop = async || folder.run(TABLES).await;
    opening::is_another_when_emptied(&folder.url(), drop).await;
}

#[tokio::test]
async fn tables_of_an_older_version_are_named() {
    let folder = Folder::new();
    let make_older = async || folder.run(opening::TO_VERSION_2).await;
    opening::says_that_tables_are_older(&folder.url(), make_older).await;
}

/// A dump may be loaded statement by statement, into a new file under running handles or into the
/// old one. What is missing meanwhile makes it another store, neither a damaged one nor a bug.
#[tokio::test]
async fn a_file_in_the_middle_of_the_load_of_a_dump_is_another_store() {
    let (folder, other) = (Folder::new(), Folder::new());
    let store = open(&folder.url(), "default").await;
    store.define(&numbers()).await.unwrap();
    let refused = async || {
        for _ in 0..2 {
            for refused in [
                store.list().await.unwrap_err(),
                store.define(&numbers()).await.unwrap_err(),
                store.identity().await.unwrap_err(),
            ] {
                assert_eq!(refused.kind().code(), "store_mismatch", "{refused:?}");
            }
        }
    };
    // One of the tables is missing, then the store's row.
    folder.run([TABLES[2]]).await;
    refused().await;
    folder.run(["DELETE FROM snowmint_store"]).await;
    refused().await;
    // A new file without tables.
    for name in ["ids.db", "ids.db-wal", "ids.db-shm"] {
        let _ = std::fs::remove_file(folder.0.join(name));
    }
    std::fs::write(other.0.join("ids.db"), "").unwrap();
    std::fs::rename(other.0.join("ids.db"), folder.0.join("ids.db")).unwrap();
    refused().await;
}

fn start_child(test: &str, url: &str, now_ms: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("sqlite::{test}"), "--nocapture", "--test-threads=1"])
        .env(CHILD_FILE, url)
        .env(CHILD_NOW_MS, now_ms.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the numbers that a child acknowledged under `word`, from its whole lines.
fn acknowledged(output: &str, word: &str) -> Vec<u64> {
    let whole = output.rfind('\n').map_or("", |end| &output[..end]);
    let of_line = |line: &str| line.strip_prefix(word)?.strip_prefix(' ')?.parse().ok();
    whole.lines().filter_map(of_line).collect()
}

/// Prints each number on a separate line, though the test harness may have begun one.
fn say(word: &str, number: u64) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{word} {number}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn numbers() -> NewDefinition {
    NewDefinition {
        name: "numbers".into(),
        spec: "{}".into(),
        identity: "{}".into(),
        enabled: None,
    }
}

fn workers() -> Pool {
    Pool { name: "workers".into(), slots: 1, group: 1, reuse: Reuse::Recycle }
}

async fn take(store: &dyn Store, length: u64, definition_version: u64) -> snowmint_coord::Segment {
    let reserve = Reserve { source: "numbers".into(), length, definition_version, within: None };
    store.reserve(&reserve).await.unwrap()
}

/// Prints each number that it took, as soon as the store has replied.
async fn reserve_as_child(url: &str) {
    let store = open(url, "default").await;
    let version = store.define(&numbers()).await.unwrap().version;
    for _ in 0..100 {
        let segment = take(&*store, 3, version).await;
        (segment.first..=segment.last).for_each(|number| say("took", number));
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn processes_share_one_file() {
    if let Ok(url) = std::env::var(CHILD_FILE) {
        return reserve_as_child(&url).await;
    }
    let folder = Folder::new();
    let children: Vec<Child> =
        (0..4).map(|_| start_child("processes_share_one_file", &folder.url(), 1)).collect();
    let mut reserved = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output.status);
        reserved.extend(acknowledged(&String::from_utf8(output.stdout).unwrap(), "took"));
    }
    reserved.sort_unstable();
    let every_one_once = reserved.iter().copied().eq(1..=1200);
    assert!(every_one_once, "{} numbers, or one twice", reserved.len());
}

/// Moves marks until it is killed, and prints each as soon as the store has replied.
async fn extend_as_child(url: &str) {
    let now_ms: u64 = std::env::var(CHILD_NOW_MS).unwrap().parse().unwrap();
    let now = UnixMillis::new(now_ms);
    let store = open(url, "default").await;
    let version = store.define(&numbers()).await.unwrap().version;
    let incarnation = random::incarnation().unwrap();
    let member = Member {
        incarnation,
        owner: "child".into(),
        host: String::new(),
        process: 0,
        address: String::new(),
    };
    let presence = Presence { sample: now, renewals: 0, ttl_ms: 1000 };
    store.join(&member, presence, now).await.unwrap();
    let claim = ClaimRequest {
        pool: workers(),
        member: incarnation,
        owner: member.owner,
        count: 1,
        preference: Preference::Any,
        supersedes: None,
        mark_at_most: Mark::MAX,
        request: random::request().unwrap(),
    };
    let lease = store.claim(&claim, now).await.unwrap().remove(0);
    say("term", lease.term.get());
    let mut mark = lease.mark;
    // Ends by itself if the parent is gone; the parent is far quicker.
    for _ in 0..100_000 {
        let item = Extend {
            pool: lease.pool.clone(),
            slot: lease.slot,
            term: lease.term,
            holder: lease.holder,
            from: mark,
            to: Mark::new(mark.get() + 1),
            request: random::request().unwrap(),
            ahead_max_ms: None,
        };
        let moved = store.extend(&[item], now).await.unwrap().remove(0).unwrap();
        mark = moved.mark;
        say("mark", mark.get());
        say("writes", moved.writes);
        say("took", take(&*store, 1, version).await.last);
    }
}

/// Each round kills the process that works on the file, in the middle of its work.
#[tokio::test]
async fn no_acknowledged_mark_is_lost_by_kill_nine() {
    const ROUNDS: u64 = 10;
    if let Ok(url) = std::env::var(CHILD_FILE) {
        return extend_as_child(&url).await;
    }
    let folder = Folder::new();
    let mut reserved = Vec::new();
    let mut marks = 0;
    for round in 1..=ROUNDS {
        // The presence of the previous process has expired.
        let now_ms = round * 1_000_000;
        let mut child =
            start_child("no_acknowledged_mark_is_lost_by_kill_nine", &folder.url(), now_ms);
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut output = String::new();
        while acknowledged(&output, "mark").len() < 3 {
            assert!(lines.read_line(&mut output).unwrap() > 0, "the child ended: {output}");
        }
        BootTimer.sleep_ms(10 + random::number().unwrap() % 100).await;
        child.kill().unwrap();
        child.wait().unwrap();
        while lines.read_line(&mut output).unwrap() > 0 {}

        let store = open(&folder.url(), "default").await;
        let last = |word| *acknowledged(&output, word).last().unwrap();
        let slot = &store.workers(UnixMillis::new(now_ms)).await.unwrap()[0];
        assert!(slot.mark.get() >= last("mark"), "round {round}: {} is lost", last("mark"));
        assert!(slot.mark.get() <= last("mark") + 1, "round {round}: {}", slot.mark);
        assert_eq!(slot.term.get(), last("term"));
        assert!(store.identity().await.unwrap().writes >= last("writes"));
        reserved.extend(acknowledged(&output, "took"));
        assert!(store.get("numbers").await.unwrap().segment.mark.get() > *reserved.last().unwrap());
        marks += acknowledged(&output, "mark").len();
        store.close().await.unwrap();
    }
    assert!(reserved.is_sorted_by(|one, next| one < next), "a number was handed out twice");
    eprintln!("{ROUNDS} rounds, {marks} marks and {} numbers acknowledged", reserved.len());
}

/// Covers a folder that is mounted, or linked, in the place of another.
#[tokio::test]
async fn other_file_is_rejected_by_every_verb() {
    for other_writes_more in [true, false] {
        let folder = Folder::new();
        let at = |name: &str| folder.0.join(name);
        let (one, two, current) = (at("one"), at("two"), at("current"));
        for made in [&one, &two] {
            std::fs::create_dir(made).unwrap();
        }
        std::os::unix::fs::symlink(&one, &current).unwrap();
        let url = |folder: &Path| format!("sqlite:{}", folder.join("ids.db").display());
        let (store, other) =
            (open(&url(&current), "default").await, open(&url(&two), "default").await);
        let swap = async || {
            std::fs::remove_file(&current).unwrap();
            std::os::unix::fs::symlink(&two, &current).unwrap();
        };
        every_verb_is_refused_by_another_store(store, other, swap, other_writes_more).await;
    }
}

/// Covers a copy of the folder, mounted or linked in its place.
#[tokio::test]
async fn restored_file_is_rejected_by_every_verb() {
    for lost in LostWrites::ALL {
        let folder = Folder::new();
        let at = |name: &str| folder.0.join(name);
        let (one, copy, current) = (at("one"), at("copy"), at("current"));
        std::fs::create_dir(&one).unwrap();
        std::os::unix::fs::symlink(&one, &current).unwrap();
        let url = format!("sqlite:{}", current.join("ids.db").display());
        every_verb_is_refused_by_an_older_state(
            open(&url, "default").await,
            async || open(&url, "default").await,
            async || {
                // Copied by another process: a process that closes a file releases all its locks on
                // it.
                let copied = Command::new("cp").arg("-a").args([&one, &copy]).status().unwrap();
                assert!(copied.success());
            },
            async || {
                std::fs::remove_file(&current).unwrap();
                std::os::unix::fs::symlink(&copy, &current).unwrap();
            },
            lost,
        )
        .await;
    }
}

/// SQLite has no server: a copy of the folder, on whatever machine, cannot be distinguished.
#[tokio::test]
async fn recovery_of_a_copied_file_needs_no_acceptance() {
    let folder = Folder::new();
    let at = |name: String| folder.0.join(name);
    let current = at("current".into());
    let link = |copy: usize| {
        let _ = std::fs::remove_file(&current);
        std::os::unix::fs::symlink(at(format!("copy-{copy}")), &current).unwrap();
    };
    std::fs::create_dir(at("copy-0".into())).unwrap();
    link(0);
    let url = format!("sqlite:{}", current.join("ids.db").display());
    let mut copies = 0;
    let take_over = async || {
        let (from, to) = (at(format!("copy-{copies}")), at(format!("copy-{}", copies + 1)));
        // Copied by another process: a process that closes a file releases all its locks on it.
        let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
        assert!(copied.success());
        copies += 1;
        link(copies);
    };
    recovery_checks_the_server(async || open(&url, "default").await, take_over, false).await;
}
