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
