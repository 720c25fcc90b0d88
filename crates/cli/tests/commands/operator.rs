//! Recovery as an operator runs it.

use snowmint_core::{Clock as _, Rfc3339, SystemClock};

use crate::common::{Ran, json, run, snowmint, until};
use crate::server::{Server, serve};

/// Operator's word that no counter has counted.
const NONE: &str = "--counters-above=0";

#[test]
fn fast_forward_moves_a_store_and_reports_how_far() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let missing = run(&["worker", "fast-forward", "--data-dir", dir]);
    assert_eq!((missing.code, missing.out.as_str()), (2, ""), "{}", missing.err);
    assert!(!directory.path().join("snowmint.db").exists());

    // An empty file is an unused store.
    std::fs::write(directory.path().join("snowmint.db"), "").unwrap();
    // Nothing is known of lost counters.
    let lost = run(&["worker", "fast-forward", "--data-dir", dir]);
    assert_eq!(lost.code, 3, "{}", lost.err);
    assert!(lost.err.contains("--counters-above"), "{}", lost.err);
    assert_eq!(std::fs::metadata(directory.path().join("snowmint.db")).unwrap().len(), 0);
    let args = ["worker", "fast-forward", "--data-dir", dir, NONE, "--segment", "invoices=500"];
    // The plan does not promise impossible steps.
    for more in [&[][..], &["--dry-run"]] {
        let refused = run(&[&args[..], more].concat());
        assert_eq!(refused.code, 1, "{more:?}: {}", refused.err);
        assert!(refused.err.contains("source \"invoices\" (to continue at"), "{}", refused.err);
    }
    let args = ["worker", "fast-forward", "--data-dir", dir, NONE, "--segment", "numbers=500"];
    let dry = run(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert!(dry.out.contains("next number of numbers: at least 500"), "{}", dry.out);
    assert!(dry.out.contains("minting by worker numbers can begin at "), "{}", dry.out);
    assert!(dry.err.contains("nothing was changed"), "{}", dry.err);
    assert_eq!(std::fs::metadata(directory.path().join("snowmint.db")).unwrap().len(), 0);

    // A typing error in a year would end worker numbers for good.
    for more in [&["--dry-run"][..], &[]] {
        let slip = run(&[&args[..5], &["--mark", "9999-12-31T00:00:00Z"], more].concat());
        assert_eq!(slip.code, 2, "{slip:?}");
        for part in ["mark 9999-12-31T00:00:00.000Z is ", "days ahead", "--far-ahead"] {
            assert!(slip.err.contains(part), "{part}: {}", slip.err);
        }
    }

    let done = run(&[
        "worker",
        "fast-forward",
        "--data-dir",
        dir,
        NONE,
        "--mark",
        "2099-01-01T00:00:00Z",
        "--far-ahead",
    ])
    .ok();
    assert!(done.contains("worker marks: at least 2099-01-01T00:00:00.000Z"), "{done}");
    assert!(done.contains("store: "), "{done}");
    let dry = run(&[&args[..], &["--dry-run", "--json"]].concat());
    let dry = json(dry.out.trim());
    assert_eq!(
        (&dry["done"], &dry["segments"]["numbers"]),
        (&false.into(), &"500".into()),
        "{dry}"
    );
    // The trail shows the user of each change; a dry run changes nothing.
    let trail = std::fs::read_to_string(directory.path().join("audit.log")).unwrap();
    assert_eq!(trail.lines().count(), 1, "{trail}");
    for part in [" audit: worker fast-forward who=uid ", "before=store ", "at least 2099-01-01"] {
        assert!(trail.contains(part), "{part} is not in {trail}");
    }
    let again = json(run(&[&args[..5], &["--json"]].concat()).ok().trim());
    assert!(again["done"] == true && again["store"]["writes"].is_string(), "{again}");
    assert!(again["marks_at_least"].is_string() && again["journal_set_aside"].is_null(), "{again}");
    // The store itself was moved, and its numbers continue there.
    run(&args).ok();
    let store = format!("sqlite:{}", directory.path().join("snowmint.db").display());
    let minted = run(&["mint", "numbers", "--store", &store]).ok();
    assert!(minted.trim().parse::<u64>().unwrap() >= 500, "{minted}");
    let workers = run(&["mint", "--store", &store]);
    assert_ne!(workers.code, 0, "marks are in 2099: {workers:?}");
    for wrong in [
        &["--segment", "x"][..],
        &["--segment", "a/b=5"],
        &["--segment", "a=-5"],
        &["--mark", "soon"],
        &["--counters-above", "-1"],
    ] {
        assert_eq!(run(&[&args[..5], wrong].concat()).code, 2, "{wrong:?}");
    }
}

/// The state after a recovery: all numbers are free, and the clock reaches the marks by itself.
#[test]
fn log_states_the_time_when_the_clock_reaches_the_marks() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    std::fs::write(directory.path().join("snowmint.db"), "").unwrap();
    // The mark lies later than the end of this test, and no later than a recovery may move marks.
    let ahead = Rfc3339(SystemClock.unix_ms().saturating_add(300_000)).to_string();
    run(&["worker", "fast-forward", "--data-dir", dir, NONE, "--mark", &ahead]).ok();
    let server = Server::start(serve(directory.path(), &[]));
    let (status, body) = server.get("/v1/ids/default");
    assert_eq!(status, 503, "{body}");
    let continues = "by itself, as after a recovery; no action is needed";
    server.says(&[
        "INFO",
        "no worker number can be claimed yet",
        "minting continues at ",
        continues,
    ]);
    until("a later attempt has failed", || {
        let (_, page) = server.get("/metrics");
        let claims = r#"snowmint_store_call_seconds_count{verb="claim"} "#;
        let count = page.lines().find_map(|line| line.strip_prefix(claims));
        count.is_some_and(|count| count.parse::<f64>().unwrap() >= 3.0)
    });
    server.signal("-TERM");
    let (_, log) = server.wait();
    // A failed request is a warning of its own.
    let of_node = log.lines().filter(|line| !line.contains("throttled_log"));
    let warnings = of_node.filter(|line| line.contains(" WARN ") && line.contains(continues));
    assert_eq!(warnings.count(), 0, "{log}");
    let attempts = log.lines().filter(|line| line.contains("claimed yet"));
    assert_eq!(attempts.count(), 1, "{log}");
}

/// docs/how-to/back-up-and-restore.md describes this for a lost store: nothing exists but the
/// configuration.
#[test]
fn lost_store_is_created_and_moved_before_the_first_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (file, data) = (path("snowmint.toml"), path("data"));
    let text = "[sources.invoices]\nkind = \"segment\"\n[sources.by_store]\nmint = \"store\"\nworker = 7\n";
    std::fs::write(&file, text).unwrap();
    let args = ["worker", "fast-forward", "--config", &file, "--data-dir", &data, NONE];
    let moving = [
        &args[..],
        &["--segment", "invoices=500", "--mark", "2030-01-01T00:00:00Z", "--far-ahead"],
    ]
    .concat();
    let dry = run(&[&moving[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert!(!directory.path().join("data").exists(), "a look makes nothing");
    for more in [&["--dry-run"][..], &[]] {
        let typo = run(&[&args[..], &["--segment", "invoice=500"], more].concat());
        assert_eq!(typo.code, 1, "{}", typo.err);
        assert!(typo.err.contains("source \"invoice\" (to continue at"), "{}", typo.err);
    }
    let moved = run(&moving).ok();
    assert!(moved.contains("next number of invoices: at least 500"), "{moved}");
    // IDs that the lost store may have minted ahead of its clock do not come again either.
    assert!(moved.contains("next number of by_store: at least "), "{moved}");
    // The move itself has defined the sources.
    let trail = std::fs::read_to_string(directory.path().join("data/audit.log")).unwrap();
    assert!(trail.contains("source invoices defined"), "{trail}");
    let minted = run(&["mint", "invoices", "--config", &file, "--data-dir", &data]).ok();
    assert!(minted.trim().parse::<u64>().unwrap() >= 500, "{minted}");
}

/// The backup is older than the source, and the configuration does not name the source.
#[test]
fn source_known_only_to_the_journal_blocks_no_recovery() {
    let directory = tempfile::tempdir().unwrap();
    let (database, backup) = (directory.path().join("ids.db"), directory.path().join("backup.db"));
    let data = directory.path().join("data");
    let store = format!("sqlite:{}", database.display());
    let start = || Server::start(serve(&data, &["--store", &store]));
    let define = |server: &Server| {
        run(&["source", "define", "orders", "--kind", "segment", "--server", &server.http]).ok();
    };
    let mint = |server: &Server| server.mint(&["orders"]);
    let stop = |server: Server| {
        server.signal("-TERM");
        assert_eq!(server.wait().0, 0);
    };

    stop(start());
    std::fs::copy(&database, &backup).unwrap();
    let server = start();
    define(&server);
    let before: u64 = mint(&server).ok().trim().parse().unwrap();
    stop(server);
    std::fs::rename(&backup, &database).unwrap();
    let server = start();
    let refused = server.mint(&["numbers"]);
    assert_eq!(refused.code, 3, "{}", refused.err);
    stop(server);

    let data = data.to_str().unwrap();
    let args = ["worker", "fast-forward", "--data-dir", data, "--store", &store];
    for more in [&["--dry-run"][..], &[]] {
        let moved = run(&[&args[..], more].concat());
        assert_eq!(moved.code, 0, "{}", moved.err);
        assert!(moved.err.contains("\"orders\", which neither the store nor"), "{}", moved.err);
        assert!(moved.out.contains("next number of orders: at least "), "{}", moved.out);
    }
    let server = start();
    assert_eq!(mint(&server).code, 1, "it is not defined");
    define(&server);
    let after: u64 = mint(&server).ok().trim().parse().unwrap();
    assert!(after > before, "{after} after {before}");
}

/// The store was moved past everything that the journal knew, and no process returns with it.
#[test]
fn journal_set_aside_is_not_missed_in_later_recoveries() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    for _ in 0..2 {
        let server = Server::start(serve(directory.path(), &[]));
        server.mint(&["numbers"]).ok();
        server.signal("-TERM");
        assert_eq!(server.wait().0, 0);
        let moved = run(&["worker", "fast-forward", "--data-dir", data]);
        assert_eq!(moved.code, 0, "{}{}", moved.out, moved.err);
        assert!(!moved.out.contains("MISSING"), "{}", moved.out);
    }
    for number in 1..=2 {
        assert!(directory.path().join(format!("journal.aside-{number}")).exists(), "{number}");
    }
}

/// Any user can set these names.
#[test]
fn audit_log_has_the_user_name_of_the_machine() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("snowmint.db"), "").unwrap();
    let ran: Ran = snowmint(&["worker", "fast-forward", NONE, "--data-dir"])
        .arg(directory.path())
        .env("SUDO_USER", "mallory")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, 0, "{}", ran.err);
    let trail = std::fs::read_to_string(directory.path().join("audit.log")).unwrap();
    let who = std::process::Command::new("id").arg("-un").output().unwrap();
    let who = String::from_utf8(who.stdout).unwrap();
    let expected = format!(" ({:?}), claims to be \"mallory\" ", who.trim());
    assert!(trail.contains(&expected), "{expected} is not in {trail}");
}

#[test]
fn fast_forward_covers_all_that_serve_may_have_minted() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("ids.db"), "").unwrap();
    let file = path("snowmint.toml");
    let text = format!(
        "[server]\ndata_dir = {:?}\n[store]\nurl = \"sqlite:{}\"\n[worker]\nwindow = \"10m\"\n\
         [clock]\nskew_max = \"1s\"\n[sources.slow]\nlead_max = \"20s\"\n",
        path(""),
        path("ids.db")
    );
    std::fs::write(&file, text).unwrap();
    let ahead = |more: &[(&str, &str)], args: &[&str]| {
        let now = jiff::Timestamp::now();
        let mut command =
            snowmint(&[&["worker", "fast-forward", NONE, "--config", &file][..], args].concat());
        let ran: Ran = command.envs(more.iter().copied()).output().unwrap().into();
        assert_eq!(ran.code, 0, "{}", ran.err);
        let mark = ran.out.lines().find_map(|line| line.strip_prefix("worker marks: at least "));
        mark.unwrap().parse::<jiff::Timestamp>().unwrap().duration_since(now).as_secs()
    };
    // Two windows, the lead, the skew of both clocks, and the age of the time that they are
    // compared with.
    let usual = 1200 + 20 + 1 + 1 + 10;
    let some_time = 30;
    let close = |found: i64, expected: i64| (expected - 1..expected + some_time).contains(&found);
    let found = ahead(&[], &["--dry-run"]);
    assert!(close(found, usual), "{found}");
    let found = ahead(&[("SNOWMINT_WORKER__WINDOW", "1s")], &["--dry-run"]);
    assert!(close(found, usual - 1200 + 2), "{found}");
    let lead = [("SNOWMINT_WORKER__AFTER_CRASH", "lead"), ("SNOWMINT_WORKER__LEAD_MAX", "5m")];
    let found = ahead(&lead, &["--dry-run"]);
    assert!(close(found, usual - 20 + 300), "{found}");

    // Settings of the store's sources count, too.
    let other = path("other.toml");
    std::fs::write(&other, "[sources.slow]\nlead_max = \"2m\"\n").unwrap();
    let url = format!("sqlite:{}", path("ids.db"));
    run(&["mint", "slow", "--config", &other, "--store", &url, "--data-dir", &path("")]).ok();
    std::fs::write(&other, "").unwrap();
    let ran: Ran = snowmint(&["worker", "fast-forward", NONE, "--config", &other, "--dry-run"])
        .env("SNOWMINT_STORE__URL", &url)
        .env("SNOWMINT_SERVER__DATA_DIR", path(""))
        .output()
        .unwrap()
        .into();
    let mark = ran.out.lines().find_map(|line| line.strip_prefix("worker marks: at least "));
    let mark = mark.unwrap_or_else(|| panic!("{}", ran.err)).parse::<jiff::Timestamp>().unwrap();
    let found = mark.duration_since(jiff::Timestamp::now()).as_secs();
    let expected = usual - 20 + 120 - 1200 + 60 + 18;
    assert!((expected - some_time..=expected).contains(&found), "{found}");
}

/// A link to itself stands for a directory that this user may not enter: root may enter any.
#[test]
fn unreadable_directory_blocks_fast_forward() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("ids.db"), "").unwrap();
    let (unreadable, missing) = (path("loop"), path("missing"));
    std::os::unix::fs::symlink(&unreadable, &unreadable).unwrap();
    let store = format!("sqlite:{}", path("ids.db"));
    let args = ["worker", "fast-forward", "--store", &store];
    let own = ["--data-dir", &unreadable];
    let other = ["--data-dir", &missing, "--journal", &unreadable];
    for dirs in [&own[..], &other] {
        for more in [&["--dry-run"][..], &[]] {
            let refused = run(&[&args[..], dirs, more].concat());
            assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{}", refused.err);
            let shown = format!("{unreadable:?} ");
            for part in [shown.as_str(), "cannot be read: ", "check path and permissions"] {
                assert!(refused.err.contains(part), "{part}: {}", refused.err);
            }
        }
    }
    assert_eq!(std::fs::metadata(path("ids.db")).unwrap().len(), 0, "nothing was moved");

    let doctor = run(&["doctor", "--store", &store, "--data-dir", &unreadable]);
    assert_eq!(doctor.code, 1, "{}", doctor.out);
    let finding = format!("journal in {unreadable} cannot be read: ");
    assert!(doctor.out.contains(&finding), "{}", doctor.out);
}

#[test]
fn a_directory_in_use_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("snowmint.db"), "").unwrap();
    let _lock = snowmint_coord::journal::DataDir::lock(directory.path()).unwrap();
    let ran = run(&["worker", "fast-forward", "--data-dir", directory.path().to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    assert!(ran.err.contains("is used by another process"), "{}", ran.err);
}

#[test]
fn an_accepted_lead_lets_a_full_pool_mint() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let missing = run(&["worker", "accept-lead", "--data-dir", dir]);
    assert_eq!((missing.code, missing.out.as_str()), (2, ""), "{}", missing.err);
    std::fs::write(directory.path().join("snowmint.db"), "").unwrap();
    run(&[
        "worker",
        "fast-forward",
        "--data-dir",
        dir,
        NONE,
        "--mark",
        "2030-01-01T00:00:00Z",
        "--far-ahead",
    ])
    .ok();

    let server = Server::start(serve(directory.path(), &[]));
    let full = server.mint(&["-n", "1"]);
    assert_eq!(full.code, 4, "{}", full.err);
    assert!(full.err.contains("accept-lead"), "{}", full.err);

    let shown = run(&["worker", "accept-lead", "--data-dir", dir]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    assert!(shown.err.contains("nothing was changed"), "{}", shown.err);
    // No number was ever claimed, so none is listed; the common mark is shown.
    let expected =
        "all numbers without a holder so far, of each pool: mark 2030-01-01T00:00:00.000Z, ";
    assert!(shown.out.contains(expected), "{}", shown.out);
    let shown = json(run(&["worker", "accept-lead", "--data-dir", dir, "--json"]).out.trim());
    assert!(shown["until"].is_null() && shown["ahead"] == serde_json::json!([]), "{shown}");
    let floor = &shown["never_used"];
    assert_eq!(
        (&floor["mark"], &floor["accepted"]),
        (&"2030-01-01T00:00:00.000Z".into(), &false.into())
    );
    let accept = |until| run(&["worker", "accept-lead", "--data-dir", dir, "--until", until]);
    assert_eq!(accept("soon").code, 2);
    assert!(accept("2030-01-02T00:00:00Z").ok().contains("accepted: marks up to 2030-01-02"));
    let trail = std::fs::read_to_string(directory.path().join("audit.log")).unwrap();
    assert!(trail.contains("worker accept-lead who=uid "), "{trail}");
    assert_eq!(trail.lines().count(), 2, "{trail}");
    // The server checks again by itself within seconds.
    let mut minted = server.mint(&["-n", "2"]);
    until("the server takes what was accepted", || {
        minted = server.mint(&["-n", "2"]);
        minted.code == 0
    });
    let minted = minted.ok();
    let decoded = run(&[
        &["decode", "--json", "--layout", "time=41,worker=10,sequence=12"][..],
        &minted.split_whitespace().collect::<Vec<_>>(),
    ]
    .concat())
    .ok();
    for line in decoded.lines() {
        let time = json(line)["time"].as_str().unwrap().to_owned();
        assert!(time.starts_with("2030-01-01T00:00:0"), "{time}");
    }
}
