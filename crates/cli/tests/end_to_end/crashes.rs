//! `kill -9` under load, with the clock set back between the rounds.

use std::fmt::Write as _;
use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::server::{Folder, Resp, Server, snowmint};

/// Twitter's layout: its epoch (2010) lies before all times that the clock is set back to.
const CONFIG: &str = r#"
[sources.tweets]
kind = "snowflake"
layout = "twitter"
"#;

/// Backward steps of the clock, from a millisecond to ten years.
const STEPS_BACK_MS: [i64; 10] =
    [1, 7, 450, 2_000, 29_000, 61_000, 3_600_000, 86_400_000, 31_536_000_000, 315_360_000_000];

#[test]
fn no_round_of_kills_and_clock_steps_repeats_an_id() {
    let folder = Folder::new("kills");
    let (config, log) = (folder.join("config.toml"), folder.join("ids"));
    fs::write(&config, CONFIG).unwrap();
    let mut all = String::new();
    // Every third round has the true clock; each step occurs once at both other places of a cycle.
    for round in 0..30 {
        let offset_ms = match round % 3 {
            0 => 0,
            _ => -STEPS_BACK_MS[(round * 7) % STEPS_BACK_MS.len()],
        };
        let server = Server::start(
            &["--data-dir", folder.path().to_str().unwrap(), "--config", config.to_str().unwrap()],
            &[("SNOWMINT_TEST_CLOCK_OFFSET_MS", &offset_ms.to_string())],
        );
        server.ready();
        let minted = under_load(server);
        let of_snowflake = minted.iter().filter(|(source, _)| *source == "tweets").count();
        assert!(of_snowflake > 0, "round {round}: nothing was minted at {offset_ms} ms");
        for (source, id) in minted {
            // Two sources may share numbers: only the IDs of one source must differ.
            let salt = if source == "numbers" { 1_u128 << 64 } else { 0 };
            let _ = writeln!(all, "{}", salt + u128::from(id));
        }
    }
    let (numbers, tweets): (Vec<_>, Vec<_>) =
        all.lines().map(|line| line.parse::<u128>().unwrap()).partition(|id| *id >= 1 << 64);
    for ids in [numbers, tweets] {
        let text: String = ids.iter().fold(String::new(), |mut text, id| {
            let _ = writeln!(text, "{}", id & u128::from(u64::MAX));
            text
        });
        fs::write(&log, text).unwrap();
        let output = snowmint().arg("verify").arg(&log).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Mints from two sources, and kills the server a moment after the first snowflake IDs have
/// arrived. Returns the received IDs.
fn under_load(server: Server) -> Vec<(&'static str, u64)> {
    let address = server.resp.clone();
    let (first, arrived) = mpsc::channel();
    let clients: Vec<_> = ["tweets", "numbers", "tweets"]
        .into_iter()
        .map(|source| {
            let (address, first) = (address.clone(), first.clone());
            thread::spawn(move || {
                let mut ids = Vec::new();
                if let Ok(mut connection) = Resp::connect(&address) {
                    while connection.incr(source, 50, &mut ids).is_ok() {
                        if source == "tweets" && !ids.is_empty() {
                            // After the first message the receiver is gone.
                            let _ = first.send(());
                        }
                    }
                }
                ids.into_iter().map(|id| (source, id)).collect::<Vec<_>>()
            })
        })
        .collect();
    drop(first);
    // The caller reports an error if no ID arrives.
    let _ = arrived.recv_timeout(Duration::from_secs(60));
    thread::sleep(Duration::from_millis(60));
    server.kill();
    clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
}
