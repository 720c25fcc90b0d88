//! Recoveries with stopped servers: values of segment sources, and journals of several directories.

use std::collections::BTreeSet;
use std::path::Path;

use tempfile::TempDir;

use crate::common::{Ran, run};

/// One store, and the data directories of its servers.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
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
    place.fast_forward("a", &[], &["--segment", &values[0], "--segment", &values[1]]).ok();
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
    place.fast_forward("a", &[], &["--segment", &text]).ok();
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
