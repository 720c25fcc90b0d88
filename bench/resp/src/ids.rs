//! One ID per request, and many: `INCR` and `MINT` of a snowflake source.

use snowmint_bench_servers::{Snowmint, WIDE, median, ratio, rounds, served, start_floor};
use snowmint_testkit::servers::Redis;

use crate::floor::{WAITING, WITHOUT_REST};
use crate::{Much, benchmark, port};

/// Prints the rates of `INCR`, compared with redis-server, and of `MINT`, which redis-server lacks.
pub fn speed(much: &Much, binary: &str) {
    let ours = Snowmint::start(binary, WIDE);
    let redis = served(|| Redis::start(&["--appendonly", "no"]));
    let [(_waiting, waiting), (_restless, restless)] = [WAITING, WITHOUT_REST].map(start_floor);
    let ports = [ours.resp, port(&redis), waiting, restless];
    println!(
        "| INCR of a snowflake, 50 connections | snowmint, 1/s | redis-server, 1/s | ratio | \
              bare responder over redis-server, waiting | without a rest |"
    );
    println!("|---|---|---|---|---|---|");
    // With several threads, redis-benchmark checks for its end only every 250 ms.
    let times = if much.threads > 1 { 8 } else { 1 };
    let (few, many) = ((much.requests / 5).to_string(), (much.requests * times).to_string());
    let threads = much.threads.to_string();
    // redis-benchmark without `--threads` runs a different loop than with it.
    let threads = if much.threads > 1 { vec!["--threads", &threads] } else { Vec::new() };
    for pipeline in ["1", "16", "64"] {
        let how = ["-c", "50", "-P", pipeline];
        let how = match pipeline {
            "1" => [&how[..], &["-n", &few]].concat(),
            _ => [&how[..], &["-n", &many], &threads].concat(),
        };
        let how = [&how[..], &["INCR", "wide"]].concat();
        let rates = rounds(much.rounds, &ports, |&port| benchmark(port, &how, "INCR wide"));
        let (one, other) = (median(rates[0].clone()), median(rates[1].clone()));
        let [ours, waiting, restless] = [0, 2, 3].map(|at: usize| ratio(&rates[at], &rates[1]));
        println!(
            "| {pipeline} in a pipeline | {one:.0} | {other:.0} | {ours:.2} | {waiting:.2} | {restless:.2} |"
        );
    }
    let requests = (much.requests / 50).max(100).to_string();
    // One thread of redis-benchmark reads at most 16 M numbers per second.
    let how = ["-c", "8", "--threads", "2", "-n", &requests, "MINT", "wide", "1000"];
    let rates = rounds(much.rounds, &ports[..1], |&port| benchmark(port, &how, "MINT wide 1000"));
    println!(
        "\nMINT wide 1000, 8 connections, 2 threads of the client: {:.1} M IDs/s\n",
        median(rates[0].clone()) / 1e3
    );
}
