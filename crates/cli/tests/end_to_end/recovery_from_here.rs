//! `worker recover` with the data directory of a server that no longer runs.

use std::fs;
use std::path::Path;

use super::recovery::{Shop, refuses, text};
use super::server::{Folder, until};

/// Copies the closed file and its log.
pub(super) fn copied(from: &Path, to: &Path) {
    for end in ["db", "db-wal", "db-shm"] {
        let (from, to) = (from.with_extension(end), to.with_extension(end));
        let _ = fs::remove_file(&to);
        if from.exists() {
            fs::copy(from, to).unwrap();
        }
    }
}

#[test]
fn journal_of_a_lost_server_is_read_in_place() {
    let folder = Folder::new("recovery-from-here");
    let (file, copy) = (folder.join("ids.db"), folder.join("copy.db"));
    let mut shop = Shop::new("from-here", &format!("sqlite:{}", file.display()));
    let servers = [1, 2].map(|number| shop.start(number));
    for server in &servers {
        server.ready();
        shop.mint(server, "invoices", 60);
    }
    servers.into_iter().for_each(|server| assert_eq!(server.stop(), 0));
    copied(&file, &copy);
    // Only the second server has seen all of this, and it is killed.
    let servers = [1, 2].map(|number| shop.start(number));
    servers.iter().for_each(|server| server.ready());
    shop.mint(&servers[1], "invoices", 1_000);
    shop.mint(&servers[1], "numbers", 500);
    shop.mint(&servers[0], "numbers", 10);
    let [first, second] = servers;
    second.kill();
    assert_eq!(first.stop(), 0);
    copied(&copy, &file);

    let first = shop.start(1);
    until("the first puts it in doubt", || refuses(&first));
    let lost = shop.data(2);
    let mut plan = None;
    until("the second is missed", || {
        let output = plan.insert(shop.plan(None));
        text(output).contains("reported")
    });
    let plan = plan.unwrap();
    assert_eq!(plan.status.code(), Some(3), "{}", text(&plan));
    assert!(text(&plan).contains("MISSING"), "{}", text(&plan));
    let refused = shop.recover(None, &[]);
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    // The first may report once more meanwhile.
    let mut done = None;
    until("no report comes between the plan and the move", || {
        let output = done.insert(shop.recover(None, &["--journal", &lost]));
        !text(output).contains("store changed since")
    });
    let done = done.unwrap();
    assert!(done.status.success(), "{}", text(&done));
    assert!(text(&done).contains("read here"), "{}", text(&done));
    // The server with that journal finds the store moved past all of it.
    let second = shop.start(2);
    for server in [&first, &second] {
        shop.mint(server, "invoices", 1_000);
        shop.mint(server, "numbers", 500);
    }
    for server in [first, second] {
        assert_eq!(server.stop(), 0);
    }
}
