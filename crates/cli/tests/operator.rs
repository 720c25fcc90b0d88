//! The ways out, as an operator runs them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod common;
#[path = "common/server.rs"]
mod server;

use common::{json, run};
use server::{Server, serve};

#[test]
fn fast_forward_moves_a_store_and_says_how_far() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let missing = run(&["worker", "fast-forward", "--data-dir", dir]);
    assert_eq!((missing.code, missing.out.as_str()), (2, ""), "{}", missing.err);
    assert!(!directory.path().join("snowmint.db").exists());

    // An empty file is a store that nobody has used.
    std::fs::write(directory.path().join("snowmint.db"), "").unwrap();
    let args = ["worker", "fast-forward", "--data-dir", dir, "--segment", "invoices=500"];
    let dry = run(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert!(dry.out.contains("next number of invoices: at least 500"), "{}", dry.out);
    assert!(dry.err.contains("nothing was changed"), "{}", dry.err);
    assert_eq!(std::fs::metadata(directory.path().join("snowmint.db")).unwrap().len(), 0);

    let done =
        run(&["worker", "fast-forward", "--data-dir", dir, "--mark", "2099-01-01T00:00:00Z"]).ok();
    assert!(done.contains("worker marks: at least 2099-01-01T00:00:00.000Z"), "{done}");
    assert!(done.contains("store: "), "{done}");
    for wrong in [
        &["--segment", "x"][..],
        &["--segment", "a/b=5"],
        &["--segment", "a=-5"],
        &["--mark", "soon"],
    ] {
        assert_eq!(run(&[&args[..4], wrong].concat()).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_directory_in_use_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("snowmint.db"), "").unwrap();
    let _lock = snowmint_coord::journal::DataDir::lock(directory.path()).unwrap();
    let ran = run(&["worker", "fast-forward", "--data-dir", directory.path().to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    assert!(ran.err.contains("locked"), "{}", ran.err);
}

#[test]
fn an_accepted_lead_lets_a_full_pool_mint() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let missing = run(&["worker", "accept-lead", "--data-dir", dir]);
    assert_eq!((missing.code, missing.out.as_str()), (2, ""), "{}", missing.err);
    std::fs::write(directory.path().join("snowmint.db"), "").unwrap();
    run(&["worker", "fast-forward", "--data-dir", dir, "--mark", "2030-01-01T00:00:00Z"]).ok();

    let server = Server::start(serve(directory.path(), &[]));
    let full = server.mint(&["-n", "1"]);
    assert_eq!(full.code, 4, "{}", full.err);
    assert!(full.err.contains("accept-lead"), "{}", full.err);

    let shown = run(&["worker", "accept-lead", "--data-dir", dir]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    assert!(shown.err.contains("nothing was changed"), "{}", shown.err);
    let accept = |until| run(&["worker", "accept-lead", "--data-dir", dir, "--until", until]);
    assert_eq!(accept("soon").code, 2);
    assert!(accept("2030-01-02T00:00:00Z").ok().contains("accepted: marks up to 2030-01-02"));
    let minted = server.mint(&["-n", "2"]).ok();
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
