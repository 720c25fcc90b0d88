//! Codes of errors, from the error to its explanation.

use crate::common::{json, run, snowmint};

/// Returns the code that ends the only line of an error.
fn code_of(err: &str) -> &str {
    let line = err.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n'), "{err}");
    let (_, code) =
        line.strip_suffix(']').unwrap_or_else(|| panic!("{err}")).rsplit_once(" [").unwrap();
    code
}

#[test]
fn error_ends_with_a_code_that_explain_explains() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    for (args, code, exit) in [
        (&["decode", "no-id", "--format", "decimal", "--layout", "nonsense!"][..], "", 2),
        (&["layout", "--workers", "0", "--rate", "1", "--years", "1"], "bad_request", 2),
        (&["man", "nothing"], "not_found", 1),
        // No program listens on port 9 of this address of the loopback network.
        (&["health", "--server", "127.9.9.9:9"], "unavailable", 4),
        (&["worker", "reclaim", "workers-10", "3", "--data-dir", dir], "", 2),
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (exit, ""), "{args:?}: {}", ran.err);
        if code.is_empty() {
            assert!(ran.err.contains(" [bad_request]\n"), "{args:?}: {}", ran.err);
            continue;
        }
        assert_eq!(code_of(&ran.err), code, "{args:?}");
        let explained = run(&["explain", code]).ok();
        assert!(explained.starts_with(&format!("{code}\n")), "{explained}");
        assert!(explained.contains(&format!("exit code {exit}.")), "{explained}");
    }
}

#[test]
fn explain_prints_the_reference_of_a_code() {
    let out = run(&["explain", "store_rolled_back"]).ok();
    for part in
        ["\n  The store shows an older state", "\n  Causes: ", "\n  Remedy: ", "HTTP 503, gRPC"]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    let page = include_str!("../../../../docs/reference/errors.md");
    let all = run(&["explain", "--json"]).ok();
    assert!(all.lines().count() > 30, "{all}");
    for line in all.lines() {
        let one = json(line);
        let row = format!(
            "| [`{0}`](#{0}) | {1} | `{2}` | `-{3}` | {4} |",
            one["code"].as_str().unwrap(),
            one["http"],
            one["grpc"].as_str().unwrap(),
            one["resp"].as_str().unwrap(),
            one["exit"]
        );
        assert!(page.contains(&row), "{row}");
    }
    let list = run(&["explain"]).ok();
    assert_eq!(list.lines().count(), all.lines().count() + 1, "{list}");

    let ran = run(&["explain", "storage_ful"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("did you mean storage_full?"), "{}", ran.err);
}

/// A pipe has colour only by force, and never against NO_COLOR.
#[test]
fn colour_is_the_users_choice() {
    let ran = |name: &str, value: &str| {
        let out = snowmint(&["explain"]).env("CLICOLOR_FORCE", "1").env(name, value).output();
        let err = snowmint(&["explain", "x"]).env("CLICOLOR_FORCE", "1").env(name, value).output();
        [out.unwrap().stdout, err.unwrap().stderr].map(|text| text.contains(&0x1b))
    };
    assert_eq!(ran("ANYTHING", "1"), [true, true], "forced");
    assert_eq!(ran("NO_COLOR", "1"), [false, false]);
    let plain = run(&["explain"]).ok();
    assert!(!plain.contains('\u{1b}'), "{plain}");
}
