//! A SQLite file that was restored next to the log of another state: some of its rows are older than
//! others, and no count tells which.

use std::fs;

use super::recovery::{Shop, refuses, text};
use super::recovery_from_here::copied;
use super::server::{Folder, snowmint, until};

/// Returns servers' store after a kill and a careless restore: the file lacks numbers that a later
/// checkpoint wrote, and its log begins after that.
fn mixed(name: &str) -> (Folder, Shop) {
    let folder = Folder::new(&format!("mixed-{name}"));
    let (file, copy, log) = (folder.join("ids.db"), folder.join("copy.db"), folder.join("log"));
    let mut shop = Shop::new(&format!("mixed-{name}"), &format!("sqlite:{}", file.display()));
    let server = shop.start(1);
    server.ready();
    shop.mint(&server, "invoices", 60);
    assert_eq!(server.stop(), 0);
    copied(&file, &copy);
    let server = shop.start(1);
    shop.mint(&server, "invoices", 1_000);
    assert_eq!(server.stop(), 0);
    let server = shop.start(1);
    server.ready();
    server.signal("-STOP");
    fs::copy(file.with_extension("db-wal"), &log).unwrap();
    server.kill();
    copied(&copy, &file);
    fs::rename(&log, file.with_extension("db-wal")).unwrap();
    (folder, shop)
}

#[test]
fn servers_on_mixed_rows_refuse_and_continue_after_recovery() {
    let (_folder, mut shop) = mixed("running");
    let servers = [1, 2].map(|number| shop.start(number));
    for server in &servers {
        server.not_ready(&["change count of the rows", "worker recover"]);
        assert!(refuses(server));
    }
    until("the first has reported", || shop.plan(Some(&servers[1])).status.success());
    let done = shop.recover(Some(&servers[1]), &[]);
    assert!(done.status.success(), "{}", text(&done));
    for server in &servers {
        shop.mint(server, "invoices", 1_000);
        shop.mint(server, "numbers", 500);
    }
    for server in servers {
        assert_eq!(server.stop(), 0);
    }
}

#[test]
fn mixed_rows_are_moved_forward_without_a_server() {
    let (folder, mut shop) = mixed("stopped");
    let (file, data) = (folder.join("ids.db"), shop.data(1));
    let store = format!("sqlite:{}", file.display());
    let words = |more: &[&str]| {
        let place = ["worker", "fast-forward", "--store", &store, "--data-dir", &data];
        snowmint().args(place).args(more).output().unwrap()
    };
    let looked = words(&["--dry-run"]);
    assert!(looked.status.success() && text(&looked).contains("invoices"), "{}", text(&looked));
    let doctor = shop.operator(&["doctor"]);
    assert!(text(&doctor).contains("change count of the rows"), "{}", text(&doctor));
    let moved = words(&[]);
    assert!(moved.status.success(), "{}", text(&moved));
    let server = shop.start(1);
    shop.mint(&server, "invoices", 1_000);
    shop.mint(&server, "numbers", 500);
    assert_eq!(server.stop(), 0);
}
