//! A store that was restored while its server was stopped, and that a new server used before the
//! first one returned.

use super::recovery::{Shop, refuses};
use super::recovery_from_here::copied;
use super::server::{Folder, Resp, Server, curl, until};

/// Count of numbers that the first server takes after the copy: more than it has prefetched before,
/// so the restored store lacks most of them.
const LOST: usize = 1_000;
/// Count of numbers that the new server takes. Each 50 cost a write, so the store passes the write
/// count and the end of the numbers that the first server's journal knows.
const TAKEN_SINCE: usize = 4_000;

fn mint(server: &Server, count: usize) -> Vec<u64> {
    let mut connection = Resp::connect(&server.resp).unwrap();
    let mut ids = Vec::new();
    until("all numbers are minted", || {
        connection.incr("invoices", (count - ids.len()).min(100), &mut ids).unwrap();
        ids.len() == count
    });
    ids
}

/// The new server's journal begins with the restored store, so this server repeats what was lost.
/// The first server still finds its own writes missing, however far the store is by then.
#[test]
fn journal_notices_a_restore_that_a_new_server_overtook() {
    let folder = Folder::new("unnoticed-store");
    let (file, copy) = (folder.join("ids.db"), folder.join("copy.db"));
    let shop = Shop::new("unnoticed", &format!("sqlite:{}", file.display()));
    let first = shop.start(1);
    first.ready();
    mint(&first, 60);
    assert_eq!(first.stop(), 0);
    copied(&file, &copy);
    let first = shop.start(1);
    let lost = mint(&first, LOST);
    assert_eq!(first.stop(), 0);
    copied(&copy, &file);

    let new = shop.start(2);
    let since = mint(&new, TAKEN_SINCE);
    let (last, begin) = (lost[LOST - 1], since[0]);
    assert!(since.contains(&last), "the store was not restored: {begin} follows {last}");
    let first = shop.start(1);
    until("the first server finds the store rolled back", || {
        assert!(refuses(&first), "{}", first.printed());
        first.get("/readyz").1["codes"].to_string().contains("store_rolled_back")
    });
    // Its next renewal shows the doubt to the new server, with numbers left or not.
    until("the new server refuses", || refuses(&new));
    let response = curl(&[&new.url("/v1/ids/invoices")]);
    assert!(response.contains("store_rolled_back"), "{response}");
    assert!(refuses(&first), "{}", first.printed());
}
