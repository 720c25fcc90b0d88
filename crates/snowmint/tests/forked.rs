//! A process that forks: every inherited handle rejects the child.
#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "library/common/mod.rs"]
mod common;

use common::TempDir;
use fork::{Fork, fork, waitpid};
use snowmint::{Layout, Snowflake, open_blocking};

/// Exit code of the child on success; any failure has another code.
const REFUSED: i32 = 42;

#[test]
fn forked_child_gets_errors_and_its_parent_continues() {
    let dir = TempDir::new();
    let named = Snowflake::builder().layout(Layout::TWITTER).worker(7).data_dir(dir.path());
    let named = named.build().unwrap();
    let url = format!("sqlite:{}/ids.db", dir.path().display());
    let mint = open_blocking(&url).unwrap();
    let (orders, bills) = (mint.snowflake("orders").unwrap(), mint.segment("bills").unwrap());
    let pages = mint.counter("pages").unwrap();
    let (mut lane, mut own_lane) = (bills.lane(100).unwrap(), named.lane(100));
    let mut all = || {
        let mut batch = [0; 3];
        [
            named.try_mint(),
            own_lane.try_mint(),
            orders.try_mint(),
            orders.try_fill(&mut batch).map(|()| batch[0]).map_err(|short| short.error),
            bills.next(),
            lane.try_next(),
            bills.take(2).map(|numbers| numbers[0]),
            pages.next("home"),
            mint.uuid("sessions").and_then(|ids| ids.next()).map(|_| 0),
        ]
    };
    for minted in all() {
        minted.unwrap();
    }
    match fork().unwrap() {
        Fork::Child => {
            let code = |error: snowmint::Error| error.kind().code();
            let refused = all().map(|minted| minted.map_err(code)).iter().all(is_refused);
            let opened = open_blocking(&url).map_err(code);
            let right = refused && is_refused(&opened);
            // Nothing of the test is dropped here: it belongs to the parent.
            std::process::exit(if right { REFUSED } else { 1 });
        }
        Fork::Parent(child) => {
            let status = waitpid(child).unwrap();
            assert_eq!(status >> 8, REFUSED, "status {status:#x}");
        }
    }
    for minted in all() {
        minted.unwrap();
    }
    mint.close().unwrap();
    named.close().unwrap();
}

fn is_refused<T>(outcome: &Result<T, &'static str>) -> bool {
    matches!(outcome, Err("unsupported"))
}
