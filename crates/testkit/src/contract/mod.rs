//! The contract that every store must keep, as small named cases over any [`Store`](snowmint_coord::Store).
//!
//! A requested store runs all cases or fails; none are skipped, except those for features that a
//! store behind servers lacks. Each case gets its own namespace. [`run`] continues after a failure
//! and names all failed cases at the end.

mod by_clock;
mod case;
mod catalog;
mod claims;
mod exclude;
mod exclusive;
mod extends;
mod history;
mod joined_holder;
mod largest;
mod lost;
mod members;
mod moved;
mod other_server;
mod reclaim;
mod reference;
mod segments;
mod stripes;
mod whole;

use std::sync::Arc;

use snowmint_coord::random;

use case::CaseFuture;

pub use case::{Case, Factory};
pub use history::{LostWrites, every_verb_is_refused_by_an_older_state};
pub use largest::largest_steps_are_carried_out;
pub use lost::every_verb_is_refused_by_another_store;
pub use other_server::recovery_checks_the_server;

/// Runs every case, one after the other, and reports on stderr.
///
/// # Panics
/// When a case fails; the message names all failed cases.
pub async fn run(factory: impl Factory) {
    run_all(Arc::new(factory)).await;
}

/// Returns a future of one type: the cases are compiled here, not in each program that runs them.
fn run_all(factory: Arc<dyn Factory>) -> CaseFuture {
    Box::pin(run_each(factory))
}

async fn run_each(factory: Arc<dyn Factory>) {
    let is_behind_servers = joined_holder::is_behind_servers(&*factory.open("looked-at").await);
    let rooms = [
        members::CASES,
        claims::CASES,
        exclude::CASES,
        exclusive::CASES,
        extends::CASES,
        segments::CASES,
        by_clock::CASES,
        stripes::CASES,
        catalog::CASES,
        whole::CASES,
        reference::CASES,
        // An operator recovers a store at its own URL, or by another call of its servers.
        if is_behind_servers { &[] } else { moved::CASES },
        // Servers do not reveal what they know of their store's history.
        if is_behind_servers { &[] } else { history::CASES },
        // An operator lowers marks at the store itself.
        if is_behind_servers { &[] } else { reclaim::CASES },
    ];
    let run = random::number().expect("randomness for the names of namespaces");
    let mut failed = Vec::new();
    let mut passed = 0;
    for (name, case_fn) in rooms.into_iter().flatten() {
        let namespace = format!("{run:016x}-{}", passed + failed.len());
        // Shown with a failure, or when a case hangs.
        eprintln!("{name}");
        let case = Case::open(Arc::clone(&factory), namespace).await;
        match tokio::spawn(case_fn(case)).await {
            Ok(()) => passed += 1,
            Err(_) => failed.push(*name),
        }
    }
    eprintln!("contract of {}: {passed} cases kept, {} broken", factory.name(), failed.len());
    assert!(failed.is_empty(), "{} breaks the contract: {failed:?}", factory.name());
}
