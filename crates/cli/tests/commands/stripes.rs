//! Deployments that share nothing but a scheme: each has a stripe of the numbers.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crate::common::{Ran, json, run, until};
use crate::server::{Server, serve};

/// Starts a deployment: a store and a server of its own, with a source that has this stripe.
fn deployment(place: &tempfile::TempDir, number: usize, keys: &str) -> Server {
    let dir = place.path().join(format!("deployment-{number}"));
    let server = Server::start(serve(&dir, &[]));
    let define = ["source", "define", "orders", "--kind", "segment", "--server", &server.http];
    let keys: Vec<_> = keys.split_whitespace().collect();
    run(&[&define[..], &keys].concat()).ok();
    server
}

/// A client that requests IDs until it is stopped.
struct Drawing {
    times: Arc<AtomicUsize>,
    drawn: JoinHandle<Vec<u64>>,
}

impl Drawing {
    /// Starts a client that requests `at_once` IDs at a time.
    fn from(server: &Server, at_once: &'static str, stop: &Arc<AtomicBool>) -> Self {
        let (http, stop) = (server.http.clone(), Arc::clone(stop));
        let times = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&times);
        let drawn = std::thread::spawn(move || {
            let mut drawn = Vec::new();
            while !stop.load(Ordering::SeqCst) {
                let ids = run(&["mint", "orders", "-n", at_once, "--server", &http]).ok();
                drawn.extend(ids.lines().map(|id| id.parse::<u64>().unwrap()));
                counted.fetch_add(1, Ordering::SeqCst);
            }
            drawn
        });
        Self { times, drawn }
    }

    /// Waits until it has made one more whole request.
    #[track_caller]
    fn check_continues(&self) {
        // A request may be in flight now.
        let enough = self.times.load(Ordering::SeqCst) + 2;
        until("it draws on", || self.times.load(Ordering::SeqCst) >= enough);
    }
}

fn restripe(increment: &str, stripes: &[(u64, &str)]) -> Ran {
    let stripes: Vec<_> = stripes.iter().map(|(offset, url)| format!("{offset}={url}")).collect();
    let mut args = vec!["source", "restripe", "orders", "--json", "--increment", increment];
    for stripe in &stripes {
        args.extend(["--stripe", stripe]);
    }
    run(&args)
}

fn assert_unique(drawn: impl IntoIterator<Item = Vec<u64>>) {
    let mut seen = HashSet::new();
    for id in drawn.into_iter().flatten() {
        assert!(seen.insert(id), "{id} came twice");
    }
}

#[test]
fn two_deployments_become_three_under_load_without_repeats() {
    let place = tempfile::tempdir().unwrap();
    let one = deployment(&place, 1, "--offset 1 --increment 2");
    let two = deployment(&place, 2, "--offset 2 --increment 2");
    let three = deployment(&place, 3, "--step.rule fixed --step.size 5");
    let stop = Arc::new(AtomicBool::new(false));
    let mut drawing_all: Vec<_> =
        [&one, &one, &two, &two].map(|server| Drawing::from(server, "700", &stop)).into();
    drawing_all.iter().for_each(Drawing::check_continues);
    let changed = restripe("3", &[(3, &one.http), (1, &two.http), (2, &three.http)]).ok();
    let firsts: Vec<_> = changed
        .lines()
        .zip([3, 1, 2])
        .map(|(line, offset)| {
            let source = json(line);
            assert_eq!((&source["offset"], &source["increment"]), (&offset.into(), &3.into()));
            assert!(source.get("until").is_none(), "{source}");
            source["first"].as_u64().unwrap_or(offset)
        })
        .collect();
    assert_eq!(firsts.len(), 3);
    // Every five numbers cost a disk write, and a request waits for all of its own.
    drawing_all.push(Drawing::from(&three, "20", &stop));
    drawing_all.iter().for_each(Drawing::check_continues);
    stop.store(true, Ordering::SeqCst);
    let drawn: Vec<_> =
        drawing_all.into_iter().map(|drawing| drawing.drawn.join().unwrap()).collect();
    for (drawn, (first, residue)) in
        drawn.iter().zip([(firsts[0], 0), (firsts[0], 0), (firsts[1], 1), (firsts[1], 1)])
    {
        assert!(drawn.iter().any(|id| *id < first) && drawn.iter().any(|id| *id >= first));
        assert!(drawn.iter().filter(|id| **id >= first).all(|id| id % 3 == residue));
    }
    assert!(!drawn[4].is_empty());
    assert!(drawn[4].iter().all(|id| *id >= firsts[2] && id % 3 == 2));
    assert_unique(drawn);
    // The same command again succeeds and changes nothing.
    let again = restripe("3", &[(3, &one.http), (1, &two.http), (2, &three.http)]).ok();
    assert_eq!(again.lines().count(), 3);
}

#[test]
fn restripe_changes_nothing_if_a_deployment_is_unreachable() {
    let place = tempfile::tempdir().unwrap();
    let one = deployment(&place, 1, "--offset 1 --increment 2");
    let before = run(&["source", "show", "orders", "--server", &one.http]).ok();
    let unreached = "127.0.0.1:1";
    let refused = restripe("3", &[(1, &one.http), (2, unreached)]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.err.contains("nothing was changed"), "{}", refused.err);
    let shown = |text: &str| {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    let after = run(&["source", "show", "orders", "--server", &one.http]).ok();
    assert_eq!(shown(&after), shown(&before));
    for (stripes, word) in [
        (&[(0, one.http.as_str())][..], "outside 1 to 3"),
        (&[(4, &one.http)], "outside 1 to 3"),
        (&[(1, &one.http), (1, unreached)], "given twice"),
        (&[(1, &one.http), (2, &one.http)], "given twice"),
    ] {
        let refused = restripe("3", stripes);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(word), "{}", refused.err);
    }
}

/// A command that is interrupted between two stores leaves this state.
#[test]
fn interrupted_restripe_is_finished_by_another() {
    let place = tempfile::tempdir().unwrap();
    let one = deployment(&place, 1, "--offset 1 --increment 2");
    let two = deployment(&place, 2, "--offset 2 --increment 2 --until 1001");
    let cut_off = restripe("3", &[(1, &one.http), (2, &two.http)]);
    assert_eq!(cut_off.code, 0, "no holder had a new stripe yet: {cut_off:?}");

    let three = deployment(&place, 3, "--offset 1 --increment 3 --first 1000");
    let four = deployment(&place, 4, "--offset 2 --increment 2 --until 1000");
    let before = run(&["mint", "orders", "-n", "450", "--server", &four.http]).ok();
    assert_eq!(before.lines().last(), Some("900"));
    restripe("3", &[(1, &three.http), (2, &four.http)]).ok();
    let after = run(&["mint", "orders", "-n", "2", "--server", &four.http]).ok();
    assert_eq!(after, "1001\n1004\n");

    let five = deployment(&place, 5, "--offset 2 --increment 2");
    let refused = restripe("3", &[(1, &three.http), (2, &five.http)]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.err.contains("numbers could repeat"), "{}", refused.err);
}

#[test]
fn single_deployment_is_restriped_by_its_own_mark() {
    let place = tempfile::tempdir().unwrap();
    let one = deployment(&place, 1, "--step.rule fixed --step.size 10");
    run(&["mint", "orders", "-n", "10", "--server", &one.http]).ok();
    let args = ["source", "restripe", "orders", "--increment", "16", "--offset", "5"];
    run(&[&args[..], &["--server", &one.http]].concat()).ok();
    let ids = run(&["mint", "orders", "-n", "3", "--server", &one.http]).ok();
    let ids: Vec<u64> = ids.lines().map(|id| id.parse().unwrap()).collect();
    // The number of prefetched IDs depends on the consumption rate.
    assert!(ids[0] > 10 && ids[0] < 1_000, "{ids:?}");
    assert!(ids.iter().all(|id| id % 16 == 5) && ids[1] == ids[0] + 16, "{ids:?}");
}

/// A deployment replaces a lost one. The lost numbers end where the other deployments have come to,
/// or at `--first`.
#[test]
fn replacing_deployment_begins_above_all_issued_numbers() {
    let place = tempfile::tempdir().unwrap();
    let one = deployment(&place, 1, "--offset 1 --increment 2 --step.rule fixed --step.size 10");
    let two = deployment(&place, 2, "--offset 2 --increment 2 --step.rule fixed --step.size 10");
    let mut drawn = vec![minted(&one, "700"), minted(&two, "700")];
    two.kill();
    let config = place.path().join("snowmint.toml").display().to_string();
    std::fs::write(&config, format!("[server]\ndata_dir = {:?}\n", place.path())).unwrap();
    for (file, first) in [("three.db", None), ("four.db", Some("9000"))] {
        let store = format!("sqlite:{}", place.path().join(file).display());
        let stripes = [format!("1={}", one.http), format!("2={store}")];
        let mut args = vec!["source", "restripe", "orders", "--json", "--increment", "2"];
        args.extend(["--stripe", &stripes[0], "--stripe", &stripes[1], "--config", &config]);
        args.extend(first.iter().flat_map(|first| ["--first", *first]));
        run(&args).ok();
        let ids = run(&["mint", "orders", "-n", "700", "--store", &store]).ok();
        let ids: Vec<u64> = ids.lines().map(|id| id.parse().unwrap()).collect();
        assert!(ids.iter().all(|id| id % 2 == 0) && (first.is_none() || ids[0] >= 9_000));
        drawn.push(ids);
    }
    assert_unique(drawn);
    // No server was called: its log would have the change.
    let trail = std::fs::read_to_string(place.path().join("audit.log")).unwrap();
    let [three, four] = trail.lines().collect::<Vec<_>>()[..] else { panic!("{trail}") };
    for (line, store) in [(three, "three.db"), (four, "four.db")] {
        let parts = ["source orders defined in sqlite:", store, "before=none after=version"];
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }
}

#[test]
fn password_on_the_command_line_is_reported() {
    let refused = restripe("2", &[(1, "memory://me:secret@host")]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("can read the password in --stripe"), "{refused:?}");
    assert!(!refused.err.contains("secret"), "{refused:?}");
}

/// If no deployment gets another stripe, no number marks the end of the one that leaves.
#[test]
fn deployment_leaves_only_if_other_stripes_change() {
    let place = tempfile::tempdir().unwrap();
    let one = deployment(&place, 1, "--offset 1 --increment 2");
    let two = deployment(&place, 2, "--offset 2 --increment 2");
    let stripe = format!("1={}", one.http);
    let leave = |increment: &str| {
        let args = ["source", "restripe", "orders", "--increment", increment, "--stripe", &stripe];
        run(&[&args[..], &["--remove", &two.http]].concat())
    };
    let refused = leave("2");
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.err.contains("another number of stripes first"), "{}", refused.err);
    leave("1").ok();
    // The same command again succeeds.
    leave("1").ok();
}

fn minted(server: &Server, count: &str) -> Vec<u64> {
    let ids = run(&["mint", "orders", "-n", count, "--server", &server.http]).ok();
    ids.lines().map(|id| id.parse().unwrap()).collect()
}

#[test]
fn stripe_begins_at_the_given_first_number() {
    let place = tempfile::tempdir().unwrap();
    let one = deployment(&place, 1, "--step.rule fixed --step.size 10");
    minted(&one, "10");
    let from = |increment: &str, offset: &str, first: &str| {
        let stripe = ["--increment", increment, "--offset", offset, "--first", first];
        run(&[&["source", "restripe", "orders", "--server", &one.http][..], &stripe].concat())
    };
    from("16", "5", "5000").ok();
    assert_eq!(minted(&one, "2"), [5013, 5029]);
    // The same command again changes nothing: no number is lost.
    from("16", "5", "5000").ok();
    assert_eq!(minted(&one, "1"), [5045]);
    // The stripe may stay and only begin further up, but never below issued numbers.
    from("16", "5", "6000").ok();
    assert_eq!(minted(&one, "1"), [6005]);
    let refused = from("1", "1", "6000");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("first = 6000 is below "), "{refused:?}");
}

#[test]
fn deployments_begin_at_the_given_first_number() {
    let place = tempfile::tempdir().unwrap();
    let one = deployment(&place, 1, "--offset 1 --increment 2");
    let two = deployment(&place, 2, "--offset 2 --increment 2");
    let drawn = minted(&one, "700");
    let from = |increment: &str, first: &str| {
        let stripes = [format!("2={}", one.http), format!("1={}", two.http)];
        let args = ["source", "restripe", "orders", "--json", "--increment", increment];
        let stripes = ["--stripe", &stripes[0], "--stripe", &stripes[1], "--first", first];
        run(&[&args[..], &stripes].concat())
    };
    let low = from("2", "900");
    assert_eq!(low.code, 2, "{low:?}");
    for part in ["--first 900 is too low", "nothing was changed"] {
        assert!(low.err.contains(part), "{part}: {low:?}");
    }
    for server in [&one, &two] {
        let shown = run(&["source", "show", "orders", "--json", "--server", &server.http]).ok();
        assert!(json(shown.trim()).get("until").is_none(), "{shown}");
    }
    from("2", "100000").ok();
    assert_eq!(
        (minted(&one, "2"), minted(&two, "2")),
        (vec![100_000, 100_002], vec![100_001, 100_003])
    );
    // With unchanged stripes, only deployments below the start move up.
    from("2", "200001").ok();
    assert_eq!((minted(&one, "1"), minted(&two, "1")), (vec![200_002], vec![200_001]));
    assert!(drawn.iter().all(|id| *id < 100_000));
}

/// An end set by hand, without a check of the issued numbers.
#[test]
fn end_below_issued_numbers_is_rejected_and_starts_nothing() {
    let place = tempfile::tempdir().unwrap();
    let one = deployment(&place, 1, "--step.rule fixed --step.size 10");
    let two = deployment(&place, 2, "--offset 1 --increment 2 --first 5");
    run(&["mint", "orders", "-n", "25", "--server", &one.http]).ok();
    let restripe_to =
        |until: &str| run(&["source", "alter", "orders", "--until", until, "--server", &one.http]);
    let refused = restripe_to("5");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("until = 5 is below"), "{}", refused.err);
    // The other deployment has its stripe from that number on: finishing this command would issue
    // the same numbers twice.
    let refused = restripe("2", &[(1, &two.http), (2, &one.http)]);
    assert_eq!(refused.code, 3, "{refused:?}");
    restripe_to("1000").ok();
    let shown = run(&["source", "show", "orders", "--json", "--server", &one.http]).ok();
    assert_eq!(json(shown.trim())["until"], 1_000, "{shown}");
}
