//! Speed and steadiness of a server's responses over HTTP, gRPC and RESP, compared in turn, round
//! after round, with bare responders on the same libraries. Also the latency for its callers while
//! its store is frozen, or while servers are killed.
//!
//! `cargo build --profile dist --bin snowmint && cd bench && cargo run --release -p
//! snowmint-bench-serve`. Options: `-- --only NAME` (http, grpc, outstanding, frozen, idle, three)
//! measures one thing, `-- --test` everything once, small. `-- --seconds 60` shortens a measurement
//! of ten minutes; `-- --snowmint PATH` takes another binary. `wrk` loads HTTP: ci/setup installs
//! it.

mod floor;
mod frozen;
mod grpc;
mod http_rows;
mod idle;
mod outstanding;
mod table;
mod talk;
mod three;

use snowmint_bench_servers::{Plan, floor_to_be};
use table::Table;

/// Function that measures one thing and prints its rows.
type Measure = fn(&Plan, &mut Table);

/// Measurements by name.
const ALL: [(&str, Measure); 6] = [
    ("http", http_rows::run),
    ("grpc", grpc::run),
    ("outstanding", outstanding::run),
    ("idle", idle::run),
    ("frozen", frozen::run),
    ("three", three::run),
];

fn main() {
    if let Some(name) = floor_to_be() {
        return floor::serve(&name);
    }
    let plan = Plan::of_arguments();
    let only = plan.value("--only");
    assert!(
        only.is_none_or(|only| ALL.iter().any(|(name, _)| *name == only)),
        "there is no {only:?} here"
    );
    let mut table = Table::begin();
    for (_, run) in ALL.iter().filter(|(name, _)| only.is_none_or(|only| only == *name)) {
        run(&plan, &mut table);
    }
}
