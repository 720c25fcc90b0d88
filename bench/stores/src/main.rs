//! Cost of the stores, on real servers that this program starts: an extend compared with the bare
//! statement that it comes down to, and the time from nothing to the first ID. Also a thousand
//! claims at once, the store calls of a minting process, and minting while the stores are frozen.
//!
//! `cargo run --profile stores -p snowmint-bench-stores`; `-- --test` runs everything once, small;
//! `-- --only NAME` takes one store. Exits with 1 when a row misses its limit, except with
//! `--test`, whose numbers mean nothing.

mod bare;
mod claims;
mod extends;
mod first;
mod frozen;
mod place;
mod traffic;

use std::process::ExitCode;

use place::Place;

/// Amount of each measurement.
struct Plan {
    rounds: usize,
    claims: u64,
    first: usize,
    traffic_s: u64,
    frozen_s: u64,
    frozen_rounds: usize,
}

/// A number, and its upper limit.
struct Row {
    store: &'static str,
    what: String,
    reached: f64,
    wanted: f64,
    more: String,
}

impl Row {
    fn is_reached(&self) -> bool {
        self.reached <= self.wanted
    }

    fn print(&self) {
        let Self { store, what, reached, wanted, more } = self;
        let verdict = if self.is_reached() { "reached" } else { "**not reached**" };
        println!("| {store} | {what} | {reached:.2} | {wanted} | {verdict}{more} |");
    }
}

async fn measure(place: &Place, plan: &Plan) -> Vec<Row> {
    let running = (place.start)();
    let row = |what: &str, reached, wanted, more| {
        let row = Row { store: place.name, what: what.to_owned(), reached, wanted, more };
        row.print();
        row
    };
    let extends = extends::run(&running, plan.rounds).await;
    let more = format!(": {:.0} us, {:.0} us", extends.ours_us, extends.bare_us);
    let mut rows = vec![row("an extend over the bare statement", extends.ratio, 1.5, more)];
    let first_ms = first::run(&running, plan.first).await;
    let what = "claim to first ID, ms";
    rows.push(row(what, first_ms, place.first_ms_max, String::new()));
    let claims_s = claims::run(&running, plan.claims).await;
    let what = format!("{} claims at once, s", plan.claims);
    rows.push(row(&what, claims_s, 10.0, String::new()));
    // The start and the end of counting cut through a period each.
    let traffic = traffic::run(&running, plan.traffic_s).await;
    let once = if plan.traffic_s < 20 { 2.0 } else { 1.1 };
    rows.push(row("renewals a period", traffic.renews, once, String::new()));
    rows.push(row("extends a pool and half window", traffic.extends, once, String::new()));
    let tails = frozen::run(&running, plan.frozen_s, plan.frozen_rounds).await;
    let more = format!(": {:.1} us, {:.1} us", tails.frozen_us, tails.free_us);
    let what =
        format!("p99.99 of mint() with the store frozen for {} s, over without", plan.frozen_s);
    rows.push(row(&what, tails.ratio, 1.5, more));
    rows
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let only = arguments.iter().position(|argument| argument == "--only");
    let only = only.and_then(|at| arguments.get(at + 1));
    let is_test = arguments.iter().any(|argument| argument == "--test");
    let plan = if is_test {
        Plan { rounds: 5, claims: 32, first: 1, traffic_s: 3, frozen_s: 1, frozen_rounds: 1 }
    } else {
        Plan { rounds: 300, claims: 1024, first: 20, traffic_s: 30, frozen_s: 10, frozen_rounds: 3 }
    };
    println!("| store | row | reached | at most | |");
    println!("|---|---|---|---|---|");
    let mut missed = 0;
    for place in Place::all() {
        if only.is_none_or(|only| only == place.name) {
            let rows = measure(&place, &plan).await;
            missed += rows.iter().filter(|row| !row.is_reached()).count();
        }
    }
    if is_test || missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
