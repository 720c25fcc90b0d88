//! What the stores cost, on real servers that this program starts: an extend against the bare
//! statement that it comes down to, the time from nothing to the first ID, a thousand claims at once,
//! and minting while the store stands still.
//!
//! `cargo run --profile stores -p snowmint-bench-stores`; `-- --test` runs everything once, small;
//! `-- --only NAME` takes one store.

mod bare;
mod claims;
mod extends;
mod first;
mod frozen;
mod place;

use place::Place;

/// How much of everything.
struct Plan {
    rounds: usize,
    claims: u64,
    first: usize,
    frozen_s: u64,
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let only = arguments.iter().position(|argument| argument == "--only");
    let only = only.and_then(|at| arguments.get(at + 1));
    let plan = if arguments.iter().any(|argument| argument == "--test") {
        Plan { rounds: 5, claims: 32, first: 1, frozen_s: 1 }
    } else {
        Plan { rounds: 300, claims: 1024, first: 20, frozen_s: 10 }
    };
    println!(
        "| store | extend, us | bare statement, us | ratio | claim to first ID, ms | {} claims at once, s |",
        plan.claims
    );
    println!("|---|---|---|---|---|---|");
    for place in Place::all() {
        if only.is_some_and(|only| only != place.name) {
            continue;
        }
        let running = (place.start)();
        let extends = extends::run(&running, plan.rounds).await;
        let first_ms = first::run(&running, plan.first).await;
        let claims_s = claims::run(&running, plan.claims).await;
        println!(
            "| {} | {:.0} | {:.0} | {:.2} | {first_ms:.0} | {claims_s:.1} |",
            place.name, extends.ours_us, extends.bare_us, extends.ratio
        );
    }
    frozen::run(plan.frozen_s).await;
}
