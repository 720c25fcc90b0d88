//! Cost of an idle server, and the time from its start to its first response.

use std::time::{Duration, Instant};

use snowmint_bench_servers::{Client, Plan, Snowmint, median};

use crate::table::{Table, Wanted};

pub fn run(plan: &Plan, table: &mut Table) {
    let ours = Snowmint::start(&plan.binary, "");
    first_id(&ours);
    // The server is idle after 10 s; the thread that wrote the journal until then ends 10 s later.
    std::thread::sleep(Duration::from_secs(plan.much(30, 1)));
    let (before, begun) = (ours.wake_ups(), Instant::now());
    std::thread::sleep(Duration::from_secs(plan.much(60, 1)));
    let rate = ours.wake_ups().since(&before) as f64 / begun.elapsed().as_secs_f64();
    table.row("idle: wake-ups a second", rate, format!("{rate:.1}"), Wanted::Most(5.0), "");
    let megabytes = ours.resident_bytes() as f64 / 1e6;
    let shown = format!("{megabytes:.1} MB");
    table.row("idle: resident memory", megabytes, shown, Wanted::Most(25.0), " MB");
    drop(ours);

    let starts = (0..plan.much(21, 1)).map(|_| {
        let begun = Instant::now();
        first_id(&Snowmint::start(&plan.binary, ""));
        begun.elapsed().as_secs_f64() * 1e3
    });
    let starts: Vec<f64> = starts.collect();
    let (worst, middle) = (starts.iter().copied().fold(0.0, f64::max), median(starts));
    let shown = format!("{middle:.0} ms, at worst {worst:.0} ms");
    table.row("cold start to the first ID, SQLite", middle, shown, Wanted::Most(100.0), " ms");
}

fn first_id(server: &Snowmint) {
    let mut ids = Vec::new();
    Client::to(server.resp).incr(["default"].into_iter(), &mut ids);
    assert_eq!(ids.len(), 1, "an ID");
}
