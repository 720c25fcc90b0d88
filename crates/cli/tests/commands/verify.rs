//! `verify` as users run it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use crate::common::{json, run, run_with, snowmint};

fn lines(numbers: impl Iterator<Item = u64>) -> String {
    let mut text = String::new();
    for number in numbers {
        writeln!(text, "{number}").unwrap();
    }
    text
}

#[test]
fn different_ids_pass_and_a_duplicate_is_named_with_its_lines() {
    let fine = run_with(&["verify"], &lines((0..1_000).map(|n| n * 7_919 % 1_009))).ok();
    assert_eq!(fine, "1000 IDs, all different\n");

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ids.txt");
    std::fs::write(&file, "5\n7\n5\n\n9\n5\n").unwrap();
    let ran = run(&["verify", file.to_str().unwrap()]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.out,
        "duplicate 5 occurs 3 times, on lines 1, 3, 6\n5 IDs, 2 repeat an earlier one\n"
    );
    assert_eq!(ran.err, "");
    let report = json(&run(&["verify", file.to_str().unwrap(), "--json"]).out);
    assert_eq!(report["duplicates"][0]["lines"], serde_json::json!([1, 3, 6]));
    assert_eq!(report["repeated"], 2);
}

#[test]
fn decrease_is_reported_only_with_the_increasing_flag() {
    assert_eq!(run_with(&["verify", "-"], "3\n2\n1\n").ok(), "3 IDs, all different\n");
    let ran = run_with(&["verify", "--increasing"], "1\n3\n2\n");
    assert_eq!(ran.code, 1);
    assert_eq!(ran.out, "not increasing: line 3 has 2 after 3\n3 IDs, all different\n");
    // IDs are compared as numbers, not as texts.
    let ran = run_with(&["verify", "--increasing"], "9\n10\n");
    assert_eq!(ran.ok(), "2 IDs, all different, each greater than the one before\n");
}

#[test]
fn negative_numbers_are_below_the_others() {
    for (input, code) in [
        ("-10\n-3\n-2\n", 0),
        ("-3\n-2\n-10\n", 1),
        ("5\n-3\n", 1),
        ("-3\n5\n18446744073709551615\n", 0),
        ("-1\n18446744073709551615\n", 1),
    ] {
        let ran = run_with(&["verify", "--increasing"], input);
        assert_eq!(ran.code, code, "{input:?}: {}", ran.out);
    }
    let ran = run_with(&["verify", "--increasing"], "5\n-3\n-3\n");
    assert_eq!(
        ran.out,
        "duplicate -3 occurs 2 times\nnot increasing: line 2 has -3 after 5\n3 IDs, 1 repeats an earlier one\n"
    );
}

#[test]
fn equal_and_lower_ids_do_not_increase() {
    let ran = run_with(&["verify", "--increasing"], "5\n5\n");
    assert_eq!(
        ran.out,
        "duplicate 5 occurs 2 times\nnot increasing: line 2 has 5 after 5\n2 IDs, 1 repeats an earlier one\n"
    );
    let ran = run_with(&["verify", "--increasing"], "-2\n-3\n");
    assert_eq!(ran.out, "not increasing: line 2 has -3 after -2\n2 IDs, all different\n");
    let ran = run_with(&["verify", "--increasing", "--format", "decimal"], "-3\n-2\n5\n");
    assert_eq!(ran.ok(), "3 IDs, all different, each greater than the one before\n");
}

#[test]
fn comparison_as_text_is_named() {
    let ran = run_with(&["verify", "--increasing"], "INV-10\nINV-9\n");
    assert_eq!(
        ran.ok(),
        "2 IDs, all different, each greater than the one before, compared as text\n"
    );
    for (input, form) in [
        ("INV-1\n", "text"),
        ("1\n", "numbers"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV\n", "UUIDs and ULIDs"),
    ] {
        assert_eq!(json(&run_with(&["verify", "--json"], input).ok())["compared_as"], form);
    }
    assert_eq!(json(&run_with(&["verify", "--json"], "").ok()).get("compared_as"), None);
}

#[test]
fn other_forms_are_compared_too() {
    let uuids = "01939c2b-5a3b-7cc4-8f3d-6b4f5d2a1c9e\n01939C2B-5A3B-7CC4-8F3D-6B4F5D2A1C9E\n";
    let ran = run_with(&["verify"], uuids);
    assert_eq!(ran.code, 1, "one UUID in two cases is one UUID");
    assert!(ran.out.starts_with("duplicate 01939c2b-5a3b-7cc4-8f3d-6b4f5d2a1c9e"), "{}", ran.out);
    assert_eq!(run_with(&["verify"], "INV-1\nINV-2\nINV-1\n").code, 1);
    assert_eq!(run_with(&["verify", "--format", "base62"], "aB\nAb\n").code, 0);
    assert_eq!(run_with(&["verify", "--format", "text"], "1\n01\n").code, 0);
    assert_eq!(run_with(&["verify"], "").ok(), "0 IDs, all different\n");
}

#[test]
fn invalid_id_is_rejected_with_its_line() {
    for (input, part) in [
        ("1\n2\nx\n", "line 3"),
        ("1\n-0\n", "line 2"),
        ("1\n-9223372036854775809\n", "line 2"),
        ("1\n18446744073709551616\n", "line 2"),
        ("01939c2b-5a3b-7cc4-8f3d-6b4f5d2a1c9e\n5\n", "line 2"),
    ] {
        let ran = run_with(&["verify"], input);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{input:?}");
        assert!(ran.err.contains(part), "{}", ran.err);
    }
    assert_eq!(run(&["verify", "/nonexistent"]).code, 2);
    assert_eq!(run(&["verify", "--memory", "0"]).code, 2);
    let endless = run_with(&["verify"], &"7".repeat(10_000));
    assert_eq!(endless.code, 2);
}

#[test]
fn memory_stays_bounded_for_any_number_of_ids() {
    // 3,000,000 keys of 8 bytes are 24 MB; the bound is 4 MiB, and the runs go to a file. The small
    // run still exceeds a pipe: the process has read most IDs when its memory is measured.
    let (_, few_kib) = verified_in_4_mib(100_000);
    let total = 3_000_000_u64;
    let (report, peak_kib) = verified_in_4_mib(total);
    assert_eq!(report["ids"], total + 1);
    assert_eq!(report["duplicates"][0]["id"], "0");
    assert!(peak_kib < few_kib + 8 * 1024, "{peak_kib} KiB, with few IDs {few_kib} KiB");
}

/// Returns the report of `verify` on this many IDs and a repeated one, and its peak memory.
fn verified_in_4_mib(total: u64) -> (serde_json::Value, u64) {
    let mut child = snowmint(&["verify", "--memory", "4", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = std::io::BufWriter::new(child.stdin.take().unwrap());
    for n in 0..total {
        // Scattered and all different: factor and modulus are coprime.
        writeln!(pipe, "{}", n * 2_654_435_761 % 4_294_967_291).unwrap();
    }
    writeln!(pipe, "0").unwrap();
    pipe.flush().unwrap();
    let peak_kib = peak_kib(child.id());
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    (json(&String::from_utf8(output.stdout).unwrap()), peak_kib)
}

/// Returns the peak memory of a process.
fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
