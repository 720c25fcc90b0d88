//! `GET` of one ID over 32 connections, compared with hyper that returns the same bytes.

use std::io::Write as _;
use std::process::Command;

use snowmint_bench_servers::{Plan, Process, Snowmint, WIDE, connect, rounds, start_floor};

use crate::table::{Sample, Table, Wanted};
use crate::talk::{Talk, read_some};

/// Path of the requests.
const PATH: &str = "/v1/ids/wide";
/// Thread counts of `wrk`: its default of two; and one, which leaves the server more of two shared
/// processors, and lets the scheduler decide more.
const WRK_THREADS: [usize; 2] = [2, 1];

pub fn run(plan: &Plan, table: &mut Table) {
    let ours = Snowmint::start(&plan.binary, WIDE);
    let (floor, floor_port) = start_floor("http");
    let servers = [(&*ours, ours.http), (&floor, floor_port)];
    assert_eq!(shape(ours.http), shape(floor_port), "both responses have one shape");
    let all_threads = if plan.apart { &[plan.threads][..] } else { &WRK_THREADS };
    for &threads in all_threads {
        let found =
            rounds(plan.much(15, 1), &servers, |&(server, port)| wrk(plan, server, port, threads));
        let name = format!("HTTP GET, wrk -c 32 -t {threads}, over bare hyper");
        table.compare(&name, [&found[0], &found[1]], Wanted::Least(0.95));
    }
}

fn wrk(plan: &Plan, server: &Process, port: u16, threads: usize) -> Sample {
    let mut command = Command::new("wrk");
    command.args(["-t", &threads.to_string(), "-c", "32", "-d", plan.much("3", "1")]);
    command.arg(format!("http://127.0.0.1:{port}{PATH}"));
    let cpu = server.cpu();
    let output = command.output().expect("wrk is there: ci/setup installs it");
    let cpu = server.cpu().saturating_sub(cpu);
    let output_text = String::from_utf8_lossy(&output.stdout);
    let after = |name: &str| {
        let rest = output_text.split_once(name)?.1;
        rest.split_whitespace().next()?.parse::<f64>().ok()
    };
    let rate = after("Requests/sec:").unwrap_or_else(|| panic!("wrk printed: {output_text}"));
    assert!(
        !output_text.contains("Non-2xx") && !output_text.contains("Socket errors"),
        "wrk printed: {output_text}"
    );
    let line = output_text.lines().find(|line| line.contains(" requests in ")).expect("wrk counts");
    let count: f64 = line.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a count");
    Sample { rate, cpu_us: crate::table::micros(cpu) / count }
}

/// Returns a response with every digit set to 0, its head sorted, and without its date.
fn shape(port: u16) -> Vec<String> {
    let mut stream = connect(port);
    stream.write_all(Talk::Http.request()).expect("the server reads");
    let mut bytes = Vec::new();
    while Talk::Http.read(&bytes).is_none() {
        read_some(&mut stream, &mut bytes);
    }
    let text = String::from_utf8(bytes).expect("text");
    let text = text.replace(|character: char| character.is_ascii_digit(), "0");
    let lines = text.lines().filter(|line| !line.starts_with("date:")).map(str::to_owned);
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}
