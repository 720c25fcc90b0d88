//! `config` and `doctor`, as people run them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod common;

use common::{Ran, json, run, snowmint};

#[test]
fn the_printed_file_is_a_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("snowmint.toml");
    std::fs::write(&file, run(&["config"]).ok()).unwrap();
    let ran = run(&["doctor", "--config", file.to_str().unwrap(), "--json"]);
    // The default ports may be in use here; nothing may be wrong.
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert!(ran.out.lines().map(json).any(|finding| finding["about"] == "layout"));
}

#[test]
fn a_wrong_key_is_named_with_its_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("snowmint.toml");
    std::fs::write(&file, "[server]\nhtpp = \"x\"\n").unwrap();
    let ran = run(&["doctor", "--config", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    for part in ["snowmint.toml, line 2", "server.htpp", "server.http?"] {
        assert!(ran.err.contains(part), "{}", ran.err);
    }
    assert_eq!(run(&["doctor", "--config", "/nonexistent.toml"]).code, 2);
    let ran: Ran =
        snowmint(&["doctor"]).env("SNOWMINT_SERVER__DATADIR", "x").output().unwrap().into();
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("SNOWMINT_SERVER__DATADIR"), "{}", ran.err);
}

#[test]
fn what_is_wrong_ends_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let ran: Ran =
        snowmint(&["doctor"]).env("SNOWMINT_SERVER__DATA_DIR", &file).output().unwrap().into();
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("is not a directory"), "{}", ran.out);
    let ran: Ran = snowmint(&["doctor"])
        .env("SNOWMINT_SOURCES__OLD__LAYOUT", "baidu,epoch=2018-01-01T00:00:00Z")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("The layout of old"), "{}", ran.out);
}
