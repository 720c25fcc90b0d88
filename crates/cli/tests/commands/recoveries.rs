//! Recoveries with stopped servers: values of segment sources, journals of several directories, and
//! journals that may be old copies.

use std::collections::BTreeSet;
use std::path::Path;

use snowmint_coord::Mark;
use snowmint_coord::journal::{DataDir, Journal, Record};
use snowmint_core::{Clock as _, Rfc3339, SystemClock};
use tempfile::TempDir;

use crate::common::{Ran, run};

/// One store, and the data directories of its servers.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(config: &str) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), config)
    }

    fn in_folder(folder: TempDir, config: &str) -> Self {
        std::fs::write(folder.path().join("snowmint.toml"), config).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs a command with the data directory of a server.
    fn run(&self, server: &str, args: &[&str]) -> Ran {
        let (config, dir) = (self.path("snowmint.toml"), self.path(server));
        let store = format!("sqlite:{}", self.path("ids.db"));
        let at = ["--config", &config, "--data-dir", &dir, "--store", &store];
        run(&[args, &at].concat())
    }

    fn mint(&self, server: &str, source: &str, count: u32) -> Vec<String> {
        let minted = self.run(server, &["mint", source, "--count", &count.to_string()]).ok();
        minted.lines().map(str::to_owned).collect()
    }

    /// Moves the store forward on the server `a`, with the journals of others.
    fn fast_forward(&self, server: &str, others: &[&str], more: &[&str]) -> Ran {
        let dirs: Vec<_> = others.iter().map(|other| self.path(other)).collect();
        let journals = dirs.iter().flat_map(|dir| ["--journal", dir]);
        let args = ["worker", "fast-forward"].into_iter().chain(journals);
        self.run(server, &args.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    /// Replaces the store by a copy of it, or deletes it.
    fn restore(&self, copy: Option<&Path>) {
        for end in ["", "-wal", "-shm"] {
            std::fs::remove_file(self.path(&format!("ids.db{end}"))).ok();
        }
        if let Some(copy) = copy {
            std::fs::copy(copy, self.path("ids.db")).unwrap();
        }
    }
}

const NUMBERS: &str = "[sources.bills]\nkind = \"segment\"\n\
    [sources.striped]\nkind = \"segment\"\noffset = 2\nincrement = 3\n";

#[test]
fn store_continues_after_the_highest_known_ids() {
    let place = Place::new(NUMBERS);
    let highest = ["bills", "striped"].map(|source| {
        let minted = place.mint("a", source, 100);
        (source, minted.iter().map(|id| id.parse::<u64>().unwrap()).max().unwrap())
    });
    place.restore(None);
    std::fs::remove_dir_all(place.path("a")).unwrap();
    let values = highest.map(|(source, id)| format!("{source}=id:{id}"));
    let values = ["--segment", &values[0], "--segment", &values[1]];
    let refused = place.fast_forward("a", &[], &values);
    assert_eq!(refused.code, 3, "{}", refused.err);
    place.fast_forward("a", &[], &[&values[..], &["--counters-above", "0"]].concat()).ok();
    for (source, id) in highest {
        let next: u64 = place.mint("a", source, 1)[0].parse().unwrap();
        assert!(next > id && next < id + 10, "{source}: {next} after {id}");
    }
}

/// The digits of a serial are a number in no period, from which the source could not mint.
#[test]
fn serial_names_where_its_source_continues() {
    let place = Place::new(
        "[sources.bills]\nkind = \"segment\"\n\
         [sources.bills.serial]\nprefix = \"INV-\"\ndate = \"yyyyMMdd\"\nwidth = 6\n",
    );
    let last = place.mint("a", "bills", 5).pop().unwrap();
    place.restore(None);
    std::fs::remove_dir_all(place.path("a")).unwrap();
    let digits = format!("bills={}", last.trim_start_matches("INV-"));
    for more in [&["--dry-run"][..], &[]] {
        let refused = place.fast_forward("a", &[], &[&["--segment", &digits], more].concat());
        assert_eq!(refused.code, 2, "{more:?}: {}", refused.err);
        assert!(refused.err.contains("is in no period of its serials"), "{}", refused.err);
    }
    let text = format!("bills={last}");
    place.fast_forward("a", &[], &["--segment", &text, "--counters-above", "0"]).ok();
    let next = place.mint("a", "bills", 1).pop().unwrap();
    assert!(next > last, "{next} after {last}");
}

/// All know the same lost store, and the journals of the others were read.
#[test]
fn servers_whose_journals_were_read_start_on_a_replaced_store() {
    let place = Place::new(NUMBERS);
    let mut ids = BTreeSet::new();
    let mut mint = |server: &str| {
        for id in place.mint(server, "bills", 50) {
            assert!(ids.insert(id.clone()), "{server}: {id} twice");
        }
    };
    for server in ["a", "b", "c"] {
        mint(server);
    }
    place.restore(None);
    let moved = place.fast_forward("a", &["b", "c"], &[]).ok();
    assert_eq!(moved.matches("journal: set aside as ").count(), 3, "{moved}");
    for server in ["a", "b", "c"] {
        mint(server);
    }
}

/// The command that it names can be followed, though the other journals were set aside.
#[test]
fn server_that_was_left_out_of_a_replaced_store_returns() {
    let place = Place::new(NUMBERS);
    for server in ["a", "b", "c"] {
        place.mint(server, "bills", 50);
    }
    place.restore(None);
    place.fast_forward("a", &["b"], &[]).ok();
    let before = place.mint("a", "bills", 50).pop().unwrap();
    place.mint("b", "bills", 50);
    let rejected = place.run("c", &["mint", "bills"]);
    assert_eq!(rejected.code, 3, "{}", rejected.err);
    let unread = place.fast_forward("c", &[], &[]);
    assert_eq!(unread.code, 3, "no other journal was read: {}", unread.out);
    place.fast_forward("c", &["a", "b"], &[]).ok();
    let [before, after] = [before, place.mint("c", "bills", 1).pop().unwrap()];
    assert!(after.parse::<u64>().unwrap() > before.parse().unwrap(), "{after} after {before}");
}

/// The old state lists a journal that the first recovery has set aside.
#[test]
fn same_backup_is_restored_a_second_time() {
    let place = Place::new(NUMBERS);
    for server in ["a", "b"] {
        place.mint(server, "bills", 50);
    }
    let copy = place.folder.path().join("copy.db");
    std::fs::copy(place.path("ids.db"), &copy).unwrap();
    let mut last = 0;
    for round in 0..3 {
        for server in ["a", "b"] {
            let minted = place.mint(server, "bills", 1_500);
            let lowest = minted.iter().map(|id| id.parse::<u64>().unwrap()).min().unwrap();
            assert!(lowest > last, "{round}, {server}: {lowest} after {last}");
            last = minted.iter().map(|id| id.parse::<u64>().unwrap()).max().unwrap().max(last);
        }
        place.restore(Some(&copy));
        let moved = place.fast_forward("a", &["b"], &[]).ok();
        assert_eq!(moved.matches("journal: set aside as ").count(), 1, "{moved}");
    }
}

/// The primary store's node defines the sources of a secondary store.
#[test]
fn secondary_store_is_moved_by_its_own_directory() {
    let place = Place::new("");
    let url = |name: &str| format!("sqlite:{}", place.path(name));
    let config = format!(
        "[sources.bills]\nkind = \"segment\"\nstores = \"one,two\"\n[stores]\none = \"{}\"\n\
         two = \"{}\"\n",
        url("one.db"),
        url("two.db")
    );
    std::fs::write(place.path("snowmint.toml"), config).unwrap();
    let before: BTreeSet<_> = place.mint("a", "bills", 3_000).into_iter().collect();
    for end in ["", "-wal", "-shm"] {
        std::fs::remove_file(place.path(&format!("one.db{end}"))).ok();
    }
    let (file, dir) = (place.path("snowmint.toml"), place.path("a/stores/one"));
    let args = ["worker", "fast-forward", "--config", &file, "--data-dir", &dir];
    let moved = run(&[&args[..], &["--store", &url("one.db")]].concat()).ok();
    assert_eq!(moved.matches("journal: set aside as ").count(), 1, "{moved}");
    let after = place.mint("a", "bills", 3_000);
    let twice: Vec<_> = after.iter().filter(|id| before.contains(*id)).collect();
    assert_eq!((after.len(), twice), (3_000, Vec::new()));
}

/// Replaces a data directory by a copy of it, as new files.
fn restore_directory(copy: &str, to: &str) {
    std::fs::remove_dir_all(to).ok();
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(copy).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), Path::new(to).join(entry.file_name())).unwrap();
    }
}

/// Servers `a` and `c` and their store, of which a backup lacks the last numbers.
struct Backup {
    place: Place,
    dir: String,
    store: std::path::PathBuf,
    lost: BTreeSet<u64>,
}

impl Backup {
    /// The journal of `c` shows the loss, and knows nothing of the numbers of `a`.
    fn new() -> Self {
        let place = Place::new(NUMBERS);
        let (dir, store) = (place.path("a.backup"), place.folder.path().join("backup.db"));
        place.mint("c", "bills", 100);
        place.mint("a", "bills", 100);
        restore_directory(&place.path("a"), &dir);
        std::fs::copy(place.path("ids.db"), &store).unwrap();
        let lost =
            [("c", 100), ("a", 500)].map(|(server, count)| place.mint(server, "bills", count));
        let lost = numbers(&lost.concat());
        Self { place, dir, store, lost }
    }

    fn highest(&self) -> String {
        format!("bills=id:{}", self.lost.last().unwrap())
    }

    /// Checks that the server mints, and no lost number.
    fn repeats_nothing(&self, server: &str) {
        let minted = numbers(&self.place.mint(server, "bills", 1_000));
        assert_eq!(minted.len(), 1_000);
        let twice = minted.intersection(&self.lost).count();
        assert_eq!(twice, 0, "{minted:?} and {:?}", self.lost);
    }
}

fn numbers(minted: &[String]) -> BTreeSet<u64> {
    minted.iter().map(|id| id.parse().unwrap()).collect()
}

#[track_caller]
fn needs_values(ran: &Ran, sources: &[&str]) {
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.out.contains(": read here, perhaps an old copy"), "{}", ran.out);
    for source in sources {
        assert!(ran.err.contains(&format!("--segment {source}=id:ID")), "{source}: {}", ran.err);
    }
    assert!(ran.err.contains("--journal-is-complete"), "{}", ran.err);
}

/// The steps that the message of the start names, and recover-a-store.md.
#[test]
fn restored_data_directory_repeats_no_number() {
    let backup = Backup::new();
    let place = &backup.place;
    restore_directory(&backup.dir, &place.path("a"));
    place.restore(Some(&backup.store));
    let refused = place.run("a", &["mint", "bills"]);
    assert_eq!(refused.code, 3, "{}", refused.err);
    for part in ["journal is a copy", "snowmint worker fast-forward --data-dir DIR"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    let highest = backup.highest();
    let values = ["--segment", &highest, "--segment", "striped=1", "--segment", "numbers=1"];
    let forward = |more: &[&str]| place.fast_forward("a", &["c"], more);
    needs_values(&forward(&["--dry-run"]), &["bills", "striped", "numbers"]);
    needs_values(&forward(&[]), &["bills", "striped", "numbers"]);
    needs_values(&forward(&values[..4]), &["numbers"]);
    let plan = forward(&[&values[..], &["--dry-run"]].concat());
    assert!(plan.code == 0 && plan.out.contains("an old copy"), "{} {}", plan.out, plan.err);
    let moved = forward(&values).ok();
    assert!(moved.contains("journal: set aside as "), "{moved}");
    for server in ["a", "c"] {
        backup.repeats_nothing(server);
    }
}

/// The server of the copied directory is lost.
#[test]
fn old_copy_of_a_lost_journal_repeats_no_number() {
    let backup = Backup::new();
    let place = &backup.place;
    std::fs::remove_dir_all(place.path("a")).unwrap();
    place.restore(Some(&backup.store));
    let forward = |more: &[&str]| place.fast_forward("c", &["a.backup"], more);
    needs_values(&forward(&[]), &["bills", "striped", "numbers"]);
    // The same while servers may run, once the store is in doubt.
    let [own, copy] = ["c", "a.backup"].map(|dir| place.path(dir));
    assert_eq!(place.run("c", &["mint", "bills"]).code, 3);
    let recover = ["worker", "recover", "--journal", &own, "--journal", &copy];
    needs_values(&place.run("other", &recover), &["bills", "striped", "numbers"]);
    let highest = backup.highest();
    forward(&["--segment", &highest, "--segment", "striped=1", "--segment", "numbers=1"]).ok();
    backup.repeats_nothing("c");
}

/// An operator confirms that no server ran on the original since.
#[test]
fn complete_copy_of_a_directory_continues() {
    let backup = Backup::new();
    let place = &backup.place;
    restore_directory(&place.path("a"), &place.path("copy"));
    let refused = place.run("copy", &["mint", "bills"]);
    assert_eq!(refused.code, 3, "{}", refused.err);
    let forward = |more: &[&str]| place.fast_forward("copy", &["c"], more);
    needs_values(&forward(&[]), &["bills"]);
    forward(&["--journal-is-complete"]).ok();
    let trail = std::fs::read_to_string(place.path("copy/audit.log")).unwrap();
    assert!(trail.contains("worker fast-forward --journal-is-complete"), "{trail}");
    backup.repeats_nothing("copy");
}

/// The store has lost nothing, and is not in the directory.
#[test]
fn journal_is_moved_away_from_an_intact_store() {
    let backup = Backup::new();
    let dir = backup.place.path("a");
    restore_directory(&backup.dir, &dir);
    assert_eq!(backup.place.run("a", &["mint", "bills"]).code, 3);
    std::fs::rename(format!("{dir}/journal"), backup.place.path("journal.away")).unwrap();
    backup.repeats_nothing("a");
}

/// It is the file that the server wrote last, which needs no word.
#[test]
fn journal_of_a_moved_directory_is_complete() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let device = folder.path().metadata().unwrap().dev();
    let place = Place::in_folder(folder, NUMBERS);
    for server in ["a", "c"] {
        place.mint(server, "bills", 50);
    }
    std::fs::rename(place.path("a"), place.path("moved")).unwrap();
    place.restore(None);
    let ran = place.fast_forward("c", &["moved"], &[]);
    // Without a device (major number 0), a snapshot looks the same.
    match (device >> 8) & 0xfff {
        0 => assert_eq!(ran.code, 3, "{ran:?}"),
        _ => assert!(!ran.ok().contains("an old copy")),
    }
}

/// The count of recoveries, by which counters move, is lost each time.
#[test]
fn counters_of_a_store_lost_twice_with_journals_do_not_repeat() {
    let place = Place::new("[sources.clicks]\nkind = \"counter\"\n");
    let mut seen = BTreeSet::new();
    for loss in 0..3 {
        for id in
            place.run("a", &["mint", "clicks", "--key", "home", "--count", "500"]).ok().lines()
        {
            assert!(seen.insert(id.parse::<u64>().unwrap()), "{loss}: {id} twice");
        }
        place.restore(None);
        std::fs::remove_dir_all(place.path("a")).unwrap();
        let refused = place.fast_forward("a", &[], &[]);
        assert_eq!(refused.code, 3, "{}", refused.err);
        assert!(refused.err.contains("--counters-above"), "{}", refused.err);
        let highest = seen.last().unwrap().to_string();
        place.fast_forward("a", &[], &["--counters-above", &highest]).ok();
    }
}

/// Writes a mark into a journal as a clock does that is five years ahead. Returns the mark.
fn mark_ahead(dir: &str) -> String {
    let opened = Journal::open(DataDir::lock(dir.as_ref()).unwrap());
    let (mut journal, past) = opened.unwrap();
    let far = SystemClock.unix_ms().saturating_add(5 * 365 * 86_400_000);
    journal.write(&Record { mark: Mark::from(far), ..past.unwrap().record }).unwrap();
    Rfc3339(far).to_string()
}

/// Nothing lowers the marks of a store again.
#[test]
fn journals_mark_far_ahead_moves_a_store_only_by_a_word() {
    let place = Place::new(NUMBERS);
    for server in ["a", "b"] {
        place.mint(server, "bills", 50);
    }
    let far = mark_ahead(&place.path("b"));
    for more in [&["--dry-run"][..], &[]] {
        let refused = place.fast_forward("a", &["b"], more);
        assert_eq!(refused.code, 3, "{}", refused.err);
        for part in [&*far, "--far-ahead", "--no-ids-ahead"] {
            assert!(refused.err.contains(part), "{part}: {}", refused.err);
        }
        assert!(
            refused.out.contains(&format!(": read here, worker mark {far}")),
            "{}",
            refused.out
        );
    }
    place.mint("a", "default", 1);
    let accepted = place.fast_forward("a", &["b"], &["--mark", &far, "--far-ahead", "--dry-run"]);
    assert_eq!(accepted.code, 0, "{}", accepted.err);
    assert!(accepted.out.contains(&format!("worker marks: at least {far}")), "{}", accepted.out);
    let moved =
        place.fast_forward("a", &["b"], &["--no-ids-ahead", "--mark", "2026-01-01T00:00:00Z"]).ok();
    assert!(!moved.contains(&format!("at least {far}")), "{moved}");
    assert_eq!(moved.matches("journal: set aside as ").count(), 2, "{moved}");
    for server in ["a", "b"] {
        place.mint(server, "bills", 50);
    }
}

#[test]
fn journal_of_another_store_or_namespace_is_named() {
    let (place, other) = (Place::new(NUMBERS), Place::new(NUMBERS));
    place.mint("a", "bills", 50);
    other.mint("o", "bills", 3_000);
    let foreign = other.path("o");
    let plan = place.fast_forward("a", &[], &["--journal", &foreign, "--dry-run"]);
    assert_eq!(plan.code, 0, "{}", plan.err);
    assert!(plan.out.contains(": read here, of another store"), "{}", plan.out);
    // Its own directory as well: its namespace's recovery needs that journal.
    let args = ["worker", "fast-forward", "--namespace", "south", "--journal", &foreign];
    for (dir, args) in [("a2", &args[..]), ("a", &args[..4])] {
        let refused = place.run(dir, args);
        assert_eq!(refused.code, 2, "{}", refused.err);
        assert!(refused.err.contains("belongs to namespace \"default\""), "{}", refused.err);
    }
}
