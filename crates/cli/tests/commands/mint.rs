//! `mint` as users run it.

use crate::common::{self, Ran, run, run_with, snowmint};

#[test]
fn unreachable_server_is_reported_as_unavailable() {
    // No process listens on port 1.
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
fn wrong_usage_is_reported_before_any_request() {
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

/// Texts of the language's parsers mean nothing to users.
#[test]
fn wrong_values_are_explained_in_plain_words() {
    for (args, wanted) in [
        (
            &["layout", "--workers", "x", "--rate", "1", "--years", "1"][..],
            "invalid value 'x' for '--workers <N>': expected a whole number [bad_request]",
        ),
        (
            &["layout", "--workers", "1", "--rate", "1", "--years", "99999999999"],
            "invalid value '99999999999' for '--years <Y>': expected 0 to 4294967295 [bad_request]",
        ),
        (
            &["source", "define", "x", "--kind", "bogus"],
            "kind = \"bogus\" is not possible: it takes one of snowflake, segment, counter, uuid, ulid",
        ),
        (
            &["source", "define", "x", "--uuid.version", "four"],
            "uuid.version = \"four\" is not possible: it takes a whole number of at least 0",
        ),
    ] {
        let ran = run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(wanted), "{args:?}: {}", ran.err);
    }
}

/// An ignored option would yield another ID than requested.
#[test]
fn option_without_effect_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("ids.db").display());
    let worker = ["--worker", "7", "--data-dir", directory.path().to_str().unwrap()];
    let of_worker = [
        &["orders"][..],
        &["default"],
        &["uuid:v7"],
        &["ulid"],
        &["--key", "alice"],
        &["--config", "snowmint.toml"],
        &["--namespace", "shop"],
        &["--in", "dns", "--name", "example.com"],
    ];
    let of_worker = of_worker.iter().map(|more| [&worker[..], more].concat());
    let others = [
        vec!["uuid:v7", "--server", "127.0.0.1:1"],
        vec!["uuid:v7", "--store", &store],
        vec!["uuid:v7", "--key", "alice"],
        vec!["ulid", "--key", "alice"],
        vec!["orders", "--in", "dns", "--name", "example.com", "--store", &store],
    ];
    for args in of_worker.chain(others) {
        let ran = run(&[&["mint"][..], &args].concat());
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {}", ran.err);
    }
    run(&[&["mint"][..], &worker].concat()).ok();
    // With a server or a store, it is the name of a source.
    let unreached = run(&["mint", "ulid", "--server", "127.0.0.1:1"]);
    assert_eq!(unreached.code, 4, "{unreached:?}");
    let config = directory.path().join("snowmint.toml");
    std::fs::write(&config, "[sources.ulid]\nkind = \"segment\"\n").unwrap();
    let config = ["--config", config.to_str().unwrap(), "--store", &store];
    let data_dir = &worker[2..];
    assert_eq!(run(&[&["mint", "ulid"][..], &config, data_dir].concat()).ok(), "1\n");
}

/// The default data directory belongs to the default store; a given one has the journal of the given
/// store. Without a journal no process knows that the store is older than it was.
#[test]
fn journal_in_a_given_data_directory_finds_an_older_store() {
    let directory = tempfile::tempdir().unwrap();
    let (file, copy) = (directory.path().join("ids.db"), directory.path().join("copy.db"));
    let (store, data) = (format!("sqlite:{}", file.display()), directory.path().join("data"));
    let mint = |count: &str, more: &[&str]| {
        run(&[&["mint", "numbers", "-n", count, "--store", &store][..], more].concat())
    };
    let kept = ["--data-dir", data.to_str().unwrap()];
    mint("5", &kept).ok();
    std::fs::copy(&file, &copy).unwrap();
    mint("5000", &kept).ok();
    for log in ["ids.db-wal", "ids.db-shm"] {
        assert!(!directory.path().join(log).exists(), "{log}: the copy is not whole");
    }
    std::fs::copy(&copy, &file).unwrap();
    let refused = mint("5", &kept);
    assert_eq!((refused.code, refused.out.as_str()), (3, ""), "{}", refused.err);
    assert!(refused.err.contains("recover"), "{}", refused.err);
}

#[test]
fn many_commands_with_one_named_worker_make_no_duplicate() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let args = ["mint", "--layout", "twitter", "--worker", "7", "-n", "1000", "--data-dir", dir];
    let children: Vec<_> = (0..100)
        .map(|_| snowmint(&args).stdout(std::process::Stdio::piped()).spawn().unwrap())
        .collect();
    let mut all = String::new();
    for child in children {
        all.push_str(&Ran::from(child.wait_with_output().unwrap()).ok());
    }
    assert_eq!(run_with(&["verify"], &all).ok(), "100000 IDs, all different\n");
}

#[test]
fn store_assigns_the_worker_number_without_a_server() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("ids.db").display());
    let mint = |args: &[&str]| run(&[&["mint", "--store", &store], args].concat());
    let all = mint(&["-n", "20000"]).ok() + &mint(&["default", "-n", "5"]).ok();
    assert_eq!(run_with(&["verify", "--increasing"], &all).code, 0);
    assert_eq!(mint(&["numbers", "-n", "2"]).ok(), "1\n2\n");
    assert_eq!(mint(&["nothing"]).code, 1);
    assert_eq!(mint(&["--format", "friendly"]).ok().trim().split('-').count(), 3);
}

#[test]
fn uuids_and_ulids_need_no_server() {
    for version in [1, 4, 6, 7, 8] {
        let ids = run(&["mint", &format!("uuid:v{version}"), "-n", "100"]).ok();
        assert_eq!(run_with(&["verify"], &ids).ok(), "100 IDs, all different\n");
        let first = run(&["decode", ids.lines().next().unwrap(), "--json"]).ok();
        assert_eq!(common::json(&first)["uuid_version"], version);
        assert_ne!(common::json(&first)["mac_shows"], true);
    }
    // RFC 9562, appendices A.2 and A.4, in the namespace for DNS.
    for (version, id) in
        [(3, "5df41881-3aed-3515-88a7-2f4a814cf09e"), (5, "2ed6657d-e927-568b-95e1-2665a8aea6a2")]
    {
        let source = format!("uuid:v{version}");
        let minted = run(&["mint", &source, "--in", "dns", "--name", "www.example.com"]).ok();
        assert_eq!(minted.trim(), id);
    }
    assert_eq!(run_with(&["verify"], &run(&["mint", "ulid", "-n", "1000"]).ok()).code, 0);
    for args in [
        &["mint", "uuid:v2"][..],
        &["mint", "uuid:v5"],
        &["mint", "uuid:v5", "--in", "dns"],
        &["mint", "uuid:v4", "--format", "hex"],
    ] {
        assert_eq!(run(args).code, 2, "{args:?}");
    }
}

/// The output has the form of the HTTP response, so that one parser reads both.
#[test]
fn json_output_is_one_object() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let store = format!("sqlite:{dir}/ids.db");
    for (args, count) in [
        (&["mint", "numbers", "--store", &store, "-n", "20001"][..], 20_001),
        (&["mint", "--worker", "7", "--data-dir", dir], 1),
        (&["mint", "uuid:v7", "-n", "3"], 3),
    ] {
        let out = run(&[args, &["--json"]].concat()).ok();
        assert_eq!(out.lines().count(), 1, "{args:?}");
        let body = common::json(&out);
        let ids: Vec<&str> =
            body["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        assert_eq!(ids.len(), count, "{args:?}");
        assert_eq!(run_with(&["verify"], &(ids.join("\n") + "\n")).code, 0, "{args:?}");
    }
    // Without an ID, nothing is printed that looks like a result.
    let ran = run(&["mint", "nothing", "--store", &store, "--json"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
}
