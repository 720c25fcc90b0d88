//! `[worker]` and `[clock]`: the configuration reaches the node.

use std::time::{Duration, Instant};

use serde_json::Value;

use snowmint_testkit::servers::Postgres;

use super::server::{Folder, Server, until};

const HOUR_MS: i64 = 3_600_000;
const CLOCK: &str = "SNOWMINT_TEST_CLOCK_OFFSET_MS";

fn serve(folder: &Folder, environment: &[(&str, &str)]) -> Server {
    Server::start(&["--data-dir", folder.path().to_str().unwrap()], environment)
}

/// Mints one ID, and decodes it.
fn mint(server: &Server) -> Minted {
    let (status, body) = server.get("/v1/ids/default");
    assert_eq!(status, "200", "{body}");
    let id = body["ids"][0].as_str().unwrap();
    let (_, decoded) = server.get(&format!("/v1/decode/{id}?source=default"));
    Minted {
        id: id.parse().unwrap(),
        worker: decoded["worker"].as_u64().unwrap(),
        ahead_ms: ahead_ms(&decoded["time"]),
    }
}

struct Minted {
    id: u64,
    worker: u64,
    /// Milliseconds by which its time is ahead of the system's clock.
    ahead_ms: i64,
}

/// Returns the milliseconds by which a response's time is ahead of the system's clock.
fn ahead_ms(time: &Value) -> i64 {
    let time: jiff::Timestamp = time.as_str().unwrap().parse().unwrap();
    time.as_millisecond() - jiff::Timestamp::now().as_millisecond()
}

/// Returns the slots that a server holds.
fn own(server: &Server) -> Vec<Value> {
    let (_, body) = server.get("/v1/workers");
    let workers = body["workers"].as_array().unwrap();
    workers.iter().filter(|worker| worker["own"] == true).cloned().collect()
}

/// Starts a server with a clock an hour ahead, mints, and kills it.
fn crash_an_hour_ahead(folder: &Folder) -> Minted {
    let server = serve(folder, &[(CLOCK, &HOUR_MS.to_string())]);
    server.ready();
    let minted = mint(&server);
    assert!(minted.ahead_ms > HOUR_MS / 2, "{}", minted.ahead_ms);
    server.kill();
    minted
}

#[test]
fn after_a_crash_another_number_is_claimed_unless_configured() {
    let folder = Folder::new("other-worker");
    let before = crash_an_hour_ahead(&folder);
    let server = serve(&folder, &[]);
    server.ready();
    let after = mint(&server);
    assert_ne!(after.worker, before.worker);
    assert!(after.ahead_ms < 60_000, "{}", after.ahead_ms);
}

#[test]
fn after_a_crash_the_number_is_waited_for_where_configured() {
    let folder = Folder::new("wait");
    let before = crash_an_hour_ahead(&folder);
    let wait = ("SNOWMINT_WORKER__AFTER_CRASH", "wait");
    let server = serve(&folder, &[wait]);
    let until = Instant::now() + Duration::from_secs(60);
    let held = loop {
        if let [held] = own(&server).as_slice() {
            break held.clone();
        }
        assert!(Instant::now() < until, "no number is held: {}", server.printed());
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(held["number"], before.worker);
    assert_eq!(server.get("/v1/ids/default").0, "503");
    assert_eq!(server.get("/readyz").0, "503");
    server.kill();
    // The clock has passed the mark.
    let server = serve(&folder, &[wait, (CLOCK, &(2 * HOUR_MS).to_string())]);
    server.ready();
    let after = mint(&server);
    assert_eq!(after.worker, before.worker);
    assert!(after.id > before.id);
}

#[test]
fn after_a_crash_ids_lead_the_clock_where_configured() {
    let folder = Folder::new("lead");
    let before = crash_an_hour_ahead(&folder);
    let lead = ("SNOWMINT_WORKER__AFTER_CRASH", "lead");
    let server = serve(&folder, &[lead, ("SNOWMINT_WORKER__LEAD_MAX", "2h")]);
    server.ready();
    let after = mint(&server);
    assert_eq!(after.worker, before.worker);
    assert!(after.id > before.id);
    assert!(after.ahead_ms > HOUR_MS / 2, "{}", after.ahead_ms);
    server.kill();
    // A lead of an hour exceeds the default.
    let server = serve(&folder, &[lead]);
    server.ready();
    let after = mint(&server);
    assert_ne!(after.worker, before.worker);
    assert!(after.ahead_ms < 60_000, "{}", after.ahead_ms);
}

#[test]
fn after_a_crash_a_server_does_not_start_where_configured() {
    let folder = Folder::new("refuse");
    let before = crash_an_hour_ahead(&folder);
    let refuse = ("SNOWMINT_WORKER__AFTER_CRASH", "refuse");
    let arguments = ["--data-dir", folder.path().to_str().unwrap()];
    for _ in 0..2 {
        let Err(output) = Server::try_start(&arguments, &[refuse]) else { panic!("it starts") };
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{printed}");
        for part in ["after_crash", "source default", "behind"] {
            assert!(printed.contains(part), "{part}: {printed}");
        }
    }
    // With the correct clock, it starts.
    let server = serve(&folder, &[refuse, (CLOCK, &(2 * HOUR_MS).to_string())]);
    server.ready();
    assert!(mint(&server).id > before.id);
}

#[test]
fn the_window_is_as_long_as_configured() {
    for (window, at_least_ms, at_most_ms) in [("30s", 0, 45_000), ("20m", 600_000, 1_500_000)] {
        let folder = Folder::new(&format!("window-{window}"));
        let server = serve(&folder, &[("SNOWMINT_WORKER__WINDOW", window)]);
        server.ready();
        mint(&server);
        let ahead_ms = ahead_ms(&own(&server)[0]["mark"]);
        assert!((at_least_ms..at_most_ms).contains(&ahead_ms), "{window}: {ahead_ms} ms ahead");
    }
}

/// PostgreSQL has a clock, with which every server's clock is compared.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs PostgreSQL: --features real-servers")]
fn clock_off_the_store_clock_beyond_the_limit_is_rejected() {
    let postgres = Postgres::start(&[]);
    let start = |name: &str, environment: &[(&str, &str)]| {
        let folder = Folder::new(name);
        let (dir, url) = (folder.path().to_str().unwrap(), postgres.url());
        (Server::start(&["--data-dir", dir, "--store", &url], environment), folder)
    };
    for (offset_ms, side) in [("60000", "ahead"), ("-60000", "behind")] {
        let name = format!("skew-{side}");
        let (wrong, _folder) = start(&name, &[(CLOCK, offset_ms)]);
        wrong.not_ready(&[side, "the store's clock", "limit 10000 ms"]);
        assert_eq!(wrong.get("/v1/ids/default").0, "503");
        wrong.kill();
        let allowed = ("SNOWMINT_CLOCK__SKEW_MAX", "5m");
        let (tolerant, _folder) = start(&name, &[(CLOCK, offset_ms), allowed]);
        tolerant.ready();
        let off_ms = mint(&tolerant).ahead_ms - offset_ms.parse::<i64>().unwrap();
        assert!((-30_000..30_000).contains(&off_ms), "{off_ms} ms from the clock, which is {side}");
        assert_eq!(tolerant.stop(), 0);
    }
}

/// SQLite has no clock: each server judges by its own whether the others renew.
#[test]
fn server_with_a_clock_within_the_limit_is_listed_as_live() {
    let folder = Folder::new("skew-listed");
    let config = "[counters]\nlease = \"3s\"\n";
    let right = Server::sharing(&folder, 1, config);
    let path = |name: &str| folder.join(name).display().to_string();
    let (file, data, store) =
        (path("config.toml"), path("slow"), format!("sqlite:{}", path("ids.db")));
    let arguments = ["--config", &file, "--store", &store, "--data-dir", &data];
    let slow = Server::start(&arguments, &[(CLOCK, "-8000")]);
    slow.ready();
    mint(&slow);
    for server in [&right, &slow] {
        until("lists show both as live", || {
            let (_, list) = server.get("/v1/servers");
            let servers = list["servers"].as_array().unwrap();
            let (_, list) = server.get("/v1/workers");
            let workers = list["workers"].as_array().unwrap();
            let are_live = [servers, workers].into_iter().flatten().all(|row| row["live"] == true);
            let are_ready = servers.iter().all(|row| row["report"]["ready"] == true);
            (servers.len(), workers.len()) == (2, 2) && are_live && are_ready
        });
    }
}
