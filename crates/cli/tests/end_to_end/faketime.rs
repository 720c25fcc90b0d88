//! The system clock steps while the server runs, by libfaketime.
//!
//! Wall time (`CLOCK_REALTIME`) is faked: the standard library reads it through the C library,
//! where libfaketime replaces it. The times in the IDs prove it below. Elapsed time is not faked:
//! the server reads `CLOCK_BOOTTIME` without the C library. `CLOCK_MONOTONIC`, by which the server
//! paces held clocks and detects steps, is left unchanged by `FAKETIME_DONT_FAKE_MONOTONIC`. A step
//! of a real clock is the same: wall time moves, elapsed time does not.

use std::path::Path;
use std::time::{Duration, Instant};

use snowmint_testkit::servers::FakeClock;

use super::server::{Folder, SNOWMINT, Server, WAIT_MAX, cleaned, until};

/// Starts `serve` with this clock.
pub(crate) fn serve(clock: &FakeClock, data_dir: &Path, environment: &[(&str, &str)]) -> Server {
    let mut command = cleaned(clock.command(SNOWMINT));
    // Each request that the clock holds up fails after this time.
    command.env(WAIT_MAX, "1s").envs(environment.iter().copied());
    Server::run(command, &["--data-dir", data_dir.to_str().unwrap()]).unwrap_or_else(|output| {
        panic!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))
    })
}

/// Result of one call for 100 IDs.
enum MintResult {
    Ids(Vec<u64>),
    Refused(String),
}

fn mint(server: &Server) -> MintResult {
    let (status, body) = server.get("/v1/ids/default?count=100");
    if status != "200" {
        assert_eq!(status, "503", "{body}");
        return MintResult::Refused(body["error"]["code"].as_str().unwrap().to_owned());
    }
    let ids = body["ids"].as_array().unwrap();
    assert_eq!(ids.len(), 100);
    MintResult::Ids(ids.iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect())
}

/// All minted IDs, which must increase.
#[derive(Default)]
struct Seen(Vec<u64>);

impl Seen {
    fn take(&mut self, ids: &[u64]) {
        for &id in ids {
            assert!(self.0.last().is_none_or(|&last| last < id), "{id} after {:?}", self.0.last());
            self.0.push(id);
        }
    }

    /// Mints ten times, never held up by the clock. The disk may cause delays on a busy machine.
    fn mint(&mut self, server: &Server, when: &str) {
        for _ in 0..10 {
            until(when, || match mint(server) {
                MintResult::Ids(ids) => {
                    self.take(&ids);
                    true
                }
                MintResult::Refused(code) => {
                    assert!(["window_spent", "unavailable"].contains(&&*code), "{when}: {code}");
                    false
                }
            });
        }
    }

    /// Mints until it succeeds: a window may have to be moved first.
    fn mint_soon(&mut self, server: &Server, when: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            match mint(server) {
                MintResult::Ids(ids) => return self.take(&ids),
                MintResult::Refused(code) => {
                    assert!(Instant::now() < until, "{when}: {code}: {}", server.printed());
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    /// Returns the seconds by which the last ID's time is ahead of the system's own clock.
    fn ahead_seconds(&self, server: &Server) -> i64 {
        let id = self.0.last().unwrap();
        let (_, decoded) = server.get(&format!("/v1/decode/{id}?source=default"));
        let time: jiff::Timestamp = decoded["time"].as_str().unwrap().parse().unwrap();
        time.as_second() - jiff::Timestamp::now().as_second()
    }
}

/// The default policy: no ID comes twice, and each is greater than the one before, whatever the
/// clock does.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs libfaketime: --features real-servers")]
fn ids_increase_while_the_clock_steps() {
    let folder = Folder::new("faketime");
    let (data_dir, clock) = (folder.join("data"), FakeClock::new(folder.join("clock")));
    let server = serve(&clock, &data_dir, &[]);
    server.ready();
    let mut seen = Seen::default();
    seen.mint(&server, "at the start");
    assert!(seen.ahead_seconds(&server).abs() < 30);

    // A step ahead within the limit: the IDs follow, which proves that the clock is faked at all.
    clock.set(300);
    seen.mint_soon(&server, "five minutes ahead");
    let ahead = seen.ahead_seconds(&server);
    assert!((240..=330).contains(&ahead), "{ahead} s ahead");

    // A step back within the default lead has no visible effect.
    for offset in [299, 298, 297] {
        clock.set(offset);
        seen.mint(&server, "a second back");
    }
    // A much larger step back causes an error that names it, never an ID out of order; the server
    // becomes ready again by itself.
    for offset in [0, -3_600, -86_400, -300_000_000] {
        clock.set(offset);
        for _ in 0..10 {
            match mint(&server) {
                MintResult::Ids(ids) => panic!("{ids:?} with the clock {offset} s off"),
                MintResult::Refused(code) => assert_eq!(code, "clock_behind", "{offset}"),
            }
        }
        clock.set(300);
        seen.mint_soon(&server, "the clock is right again");
    }
    let printed = server.printed();
    for part in ["the clock stepped ahead by", "the clock stepped back by", "hold"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }

    // A crash with the clock an hour back: the IDs differ, but are smaller.
    server.kill();
    clock.set(-3_300);
    let server = serve(&clock, &data_dir, &[]);
    server.ready();
    let mut after = Seen::default();
    after.mint(&server, "after the crash");
    assert!(after.0.iter().all(|id| !seen.0.contains(id)));
    assert_eq!(server.stop(), 0);
}

/// No other clock confirms SQLite's only server: `clock.jump_max` limits a step ahead.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs libfaketime: --features real-servers")]
fn forward_clock_step_is_trusted_up_to_the_limit() {
    let folder = Folder::new("faketime-jump");
    let (data_dir, clock) = (folder.join("data"), FakeClock::new(folder.join("clock")));
    let server = serve(&clock, &data_dir, &[]);
    server.ready();
    let mut seen = Seen::default();
    seen.mint(&server, "at the start");
    clock.set(3_600);
    server.not_ready(&["clock jumped ahead by", "limit 600000 ms"]);
    assert!(matches!(mint(&server), MintResult::Refused(_)));
    clock.set(0);
    server.ready();
    seen.mint_soon(&server, "the clock is right again");
    assert!(seen.ahead_seconds(&server).abs() < 30);
    server.kill();

    let server = serve(&clock, &data_dir, &[("SNOWMINT_CLOCK__JUMP_MAX", "2h")]);
    server.ready();
    seen.mint_soon(&server, "after the restart");
    clock.set(3_600);
    seen.mint_soon(&server, "an hour ahead");
    assert!(seen.ahead_seconds(&server) > 3_000);
    server.ready();
}

/// SQLite has no clock, and to a wrong clock all other members look expired: their writes show that
/// they continue.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs libfaketime: --features real-servers")]
fn clock_contradicted_by_most_members_is_rejected() {
    let folder = Folder::new("faketime-members");
    let url = format!("sqlite:{}", folder.join("shared.db").display());
    let environment = [("SNOWMINT_STORE__URL", url.as_str())];
    let others = ["one", "other"].map(|name| {
        let data_dir = folder.join(name);
        Server::start(&["--data-dir", data_dir.to_str().unwrap()], &environment)
    });
    others.iter().for_each(Server::ready);
    for offset in [3_600, -3_600] {
        let (data_dir, clock) = (folder.join("third"), FakeClock::new(folder.join("clock")));
        clock.set(offset);
        let server = serve(&clock, &data_dir, &environment);
        server.not_ready(&["most members' clocks"]);
        assert!(matches!(mint(&server), MintResult::Refused(_)), "{offset}");
        clock.set(0);
        server.ready();
        let mut seen = Seen::default();
        seen.mint_soon(&server, "the clock is right");
        clock.set(offset);
        server.not_ready(&["most members' clocks"]);
        clock.set(0);
        server.ready();
        seen.mint_soon(&server, "the clock is right again");
        assert!(seen.ahead_seconds(&server).abs() < 30, "no mark was moved");
        assert_eq!(server.stop(), 0);
    }
    for server in others {
        server.ready();
        assert_eq!(server.stop(), 0);
    }
}
