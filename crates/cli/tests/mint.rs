//! `mint`, as people run it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod common;

use common::run;

#[test]
fn nobody_there_is_not_available() {
    // Port 1 is nobody's.
    for args in [
        &["mint", "--server", "127.0.0.1:1"][..],
        &["source", "list", "--server", "http://127.0.0.1:1"],
        &["worker", "list", "--server", "snowmint://127.0.0.1:1,127.0.0.1:2"],
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (4, ""), "{args:?}");
        assert!(ran.err.contains("127.0.0.1:1"), "{}", ran.err);
    }
}

#[test]
fn wrong_usage_is_said_before_anything_is_asked() {
    for args in [
        &["mint", "-n", "0"][..],
        &["mint", "-n", "-1"],
        &["mint", "-n", "1e18"],
        &["mint", "--format", "base64"],
        &["mint", "--server", "ftp://h"],
        &["source", "define"],
        &["source", "define", "x", "--layuot", "twitter"],
        &["source", "define", "x", "--offset", "-1"],
        &["source", "define", "x", "--on_rollback", "panic"],
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {}", ran.err);
        assert!(!ran.err.is_empty(), "{args:?}");
    }
}
