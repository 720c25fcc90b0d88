//! Effects on a process that embeds the library. The test starts itself again, alone in a process,
//! and counts its threads.

use std::process::Command;

use crate::common::{Seen, TempDir};
use snowmint::core::{Clock as _, Pause as _, SystemClock, UnixMillis};
use snowmint::open_blocking;

/// Longer than anything takes, even on a busy machine.
const BOUND_MS: u64 = 60_000;

/// Waits until the condition holds.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = SystemClock.read().elapsed();
    while !is_so() {
        assert!(SystemClock.read().elapsed().since(begun) < BOUND_MS, "{what} is seen");
        SystemClock.pause_until(UnixMillis::MAX, 1);
    }
}

/// Set in the process that is started again.
const ALONE: &str = "SNOWMINT_TEST_ALONE";

#[test]
fn no_surprise_in_the_embedding_process() {
    if std::env::var_os(ALONE).is_some() {
        return embed();
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["embedding::no_surprise_in_the_embedding_process", "--exact", "--nocapture"]);
    let output = again.env(ALONE, "1").output().unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output_text.contains("1 passed"), "{output:?}");
}

fn embed() {
    let dir = TempDir::new();
    let named = || {
        let names = std::fs::read_dir("/proc/self/task")
            .into_iter()
            .flatten()
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "snowmint").count()
    };
    let url = format!("sqlite:{}/ids.db", dir.path().display());
    let mint = open_blocking(&url).unwrap();
    // A thread names itself once it runs. The names are visible on Linux only.
    if cfg!(target_os = "linux") {
        until("a thread of ours", || named() > 0);
    }
    let orders = mint.snowflake("orders").unwrap();
    let mut seen = Seen::default();
    for _ in 0..1_000 {
        seen.add(orders.mint().unwrap());
    }
    let invoices = mint.segment("invoices").unwrap();
    assert_eq!((invoices.next().unwrap(), invoices.take(2).unwrap()), (1, vec![2, 3]));
    assert_eq!(mint.uuid("requests").unwrap().next().unwrap().len(), 36);
    // The handle of a source keeps everything that it needs running.
    drop(mint);
    seen.add(orders.mint().unwrap());
    drop(invoices);
    drop(orders);
    // The system lists a thread for a moment after it was joined.
    until("no thread of ours", || named() == 0);
    let again = open_blocking(&url).unwrap();
    let orders = again.snowflake("orders").unwrap();
    for _ in 0..1_000 {
        seen.add(orders.mint().unwrap());
    }
    again.close().unwrap();
}
