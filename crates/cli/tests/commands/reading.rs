//! `decode`, `encode` and `layout` as users run them.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::common::{json, run, run_with, snowmint};

#[test]
fn published_examples_decode_as_documented() {
    // Discord's API reference; Baidu's uid-generator README; RFC 9562.
    for (args, time, worker, sequence) in [
        (&["175928847299117063", "--layout", "discord"][..], "2016-04-30T11:18:25.796Z", 32, 7),
        (
            &["8632158896531701768", "--layout", "baidu-2016,epoch=1463673600000"],
            "2024-05-05T09:48:09.000Z",
            1024,
            8,
        ),
    ] {
        let line = run(&[&["decode", "--json"], args].concat()).ok();
        let line = json(&line);
        assert_eq!(line["time"], time);
        assert_eq!(line["worker"], worker);
        assert_eq!(line["sequence"], sequence);
        assert!(line["age_ms"].as_i64().unwrap() > 0);
    }
}

#[test]
fn text_output_has_a_line_per_field() {
    let out =
        run(&["decode", "175928847299117063", "--layout", "discord", "--zone", "+08:00"]).ok();
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("175928847299117063"));
    let time = lines.next().unwrap();
    assert!(time.starts_with("  time      2016-04-30T19:18:25.796+08:00 ("), "{time}");
    assert!(time.ends_with(" ago)"), "{time}");
    assert_eq!(lines.next(), Some("  worker    32 (1 and 0)"));
    assert_eq!(lines.next(), Some("  sequence  7"));
    assert_eq!(lines.next(), None);
}

#[test]
fn decode_without_a_layout_marks_misreadings() {
    let out = run(&["decode", "175928847299117063"]).ok();
    let line_of = |name: &str| {
        out.lines()
            .find(|line| line.trim_start().starts_with(&format!("{name} ")))
            .unwrap_or_else(|| panic!("no {name} in {out}"))
    };
    assert!(line_of("discord").contains("2016-04-30T11:18:25.796Z"));
    assert!(!line_of("discord").contains("implausible"));
    assert!(line_of("yitter").contains("implausible"));
    let line = json(&run(&["decode", "175928847299117063", "--json"]).ok());
    assert_eq!(line["readings"].as_array().unwrap().len(), 14);
}

#[test]
fn other_forms_of_an_id_decode_to_the_same() {
    for (format, text) in
        [("hex", "271065ac1020007"), ("base62", "Czks0tP37X"), ("base36", "1c49kkphnxtz")]
    {
        let encoded =
            json(&run(&["decode", text, "--format", format, "--layout", "discord", "--json"]).ok());
        assert_eq!(encoded["number"], "175928847299117063", "{format}");
    }
    let friendly = run(&[
        "decode",
        "20160430111825796-32-7",
        "--format",
        "friendly",
        "--layout",
        "discord",
        "--json",
    ])
    .ok();
    assert_eq!(json(&friendly)["number"], "175928847299117063");
    let missing = run(&["decode", "20160430111825796-32-7", "--format", "friendly"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("--layout"), "{}", missing.err);
}

#[test]
fn uuid_and_ulid_output_shows_their_fields() {
    let out = run(&["decode", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"]).ok();
    for part in [
        "1: time and node",
        "RFC 9562",
        "1998-02-04T22:13:53.151Z",
        "00:c0:4f:d4:30:c8",
        "REAL MAC",
    ] {
        assert!(out.contains(part), "{part} is missing in {out}");
    }
    let ulid = json(&run(&["decode", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--json"]).ok());
    // The ULID specification's example.
    assert_eq!(ulid["time"], "2016-07-30T23:54:10.259Z");
}

#[test]
fn ids_come_from_standard_input_one_a_line() {
    let input = "175928847299117063\n\n175928847299117064\r\n";
    let out = run_with(&["decode", "--layout", "discord", "--json"], input).ok();
    let sequences: Vec<_> = out.lines().map(|line| json(line)["sequence"].clone()).collect();
    assert_eq!(sequences, [7, 8]);
    let dash = run_with(&["decode", "-", "--layout", "discord", "--json"], input).ok();
    assert_eq!(dash.lines().count(), 2);
}

#[test]
fn unreadable_ids_are_named_and_the_rest_is_decoded() {
    let ran = run_with(&["decode", "--layout", "twitter", "--json"], "1\nx\n-5\n2\n");
    assert_eq!(ran.code, 2);
    assert_eq!(ran.out.lines().count(), 2);
    assert!(ran.err.contains("invalid ID \"x\""), "{}", ran.err);
    assert!(ran.err.contains("2 of 4 IDs are invalid"), "{}", ran.err);
    for args in [
        &["decode", "1", "--layout", "twiter"][..],
        &["decode", "1", "--zone", "Middle/Earth"],
        &["decode", "1", "--format", "base64"],
        &["decode", "18446744073709551615", "--layout", "twitter"],
        &["decode", "-1"],
        &["decode", "99999999999999999999"],
        &["frobnicate"],
        &[],
    ] {
        let ran = run(args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert_eq!(ran.out, "", "{args:?}");
        assert!(!ran.err.is_empty(), "{args:?}");
    }
}

#[test]
fn decode_writes_results_before_the_input_ends() {
    let mut child = snowmint(&["decode", "--layout", "discord", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut pipe, b"175928847299117063\n").unwrap();
    let mut first_line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first_line).unwrap();
    assert_eq!(json(&first_line)["sequence"], 7);
    drop(pipe);
    assert!(child.wait().unwrap().success());
}

#[test]
fn closed_pipe_ends_a_command_without_an_error() {
    let ids = "175928847299117063\n".repeat(100_000);
    let mut child = snowmint(&["decode", "--layout", "discord"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let _ = std::io::Write::write_all(&mut pipe, ids.as_bytes());
    });
    let mut first = String::new();
    // The reader stops after one line, as `head -1` does.
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(first, "175928847299117063\n");
    assert!(output.status.success(), "{:?}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn encode_brackets_an_instant_and_a_span() {
    let out = run(&["encode", "2016-04-30T11:18:25.796Z", "--layout", "discord"]).ok();
    let id = 175_928_847_299_117_063_u64;
    let base = id >> 22 << 22;
    assert_eq!(out, format!("lowest   {base}\nhighest  {}\n", base + (1 << 22) - 1));
    let day = json(
        &run(&["encode", "2026-11-20", "--until", "2026-11-21", "--zone", "+08:00", "--json"]).ok(),
    );
    assert_eq!(day["from"], "2026-11-20T00:00:00.000+08:00");
    assert_eq!(day["until"], "2026-11-21T00:00:00.000+08:00");
    let (lowest, highest): (u64, u64) = (
        day["lowest"].as_str().unwrap().parse().unwrap(),
        day["highest"].as_str().unwrap().parse().unwrap(),
    );
    assert_eq!((highest - lowest + 1) >> 22, 86_400_000);
    for args in [
        &["encode", "2025-12-31T23:59:59.999Z"][..],
        &["encode", "tomorrow"],
        &["encode", "2026-11-21", "--until", "2026-11-20"],
        &["encode", "2099-01-01"],
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
    }
}

#[test]
fn layouts_are_listed_shown_and_proposed() {
    let list = run(&["layout"]).ok();
    assert_eq!(list.lines().count(), 14, "{list}");
    let one = run(&["layout", "sonyflake"]).ok();
    for part in ["39 bits, 24 to 62", "10 ms", "65536", "25600 IDs/s", "2014-09-01"] {
        assert!(one.contains(part), "{part} is missing in {one}");
    }
    let facts = json(&run(&["layout", "baidu-2016", "--json"]).ok());
    assert_eq!(facts["can_mint"], false);
    let proposals =
        run(&["layout", "--workers", "200", "--rate", "50000", "--years", "30", "--json"]).ok();
    for proposal in proposals.lines().map(json) {
        assert!(proposal["workers"].as_u64().unwrap() >= 200);
        assert!(proposal["ids_per_second_per_worker"].as_u64().unwrap() >= 50_000);
    }
    assert!(proposals.lines().count() >= 2, "{proposals}");
    let impossible =
        run(&["layout", "--workers", "1000000000", "--rate", "1000000000", "--years", "100"]);
    assert_eq!(impossible.code, 1);
    assert!(impossible.err.contains("63"), "{}", impossible.err);
    assert_eq!(run(&["layout", "--workers", "5"]).code, 2);
}

#[test]
fn every_command_has_help_with_examples() {
    let help = run(&["--help"]).ok();
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // Deeper lines continue a description.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.contains(&"decode"), "{commands:?}");
    for name in commands {
        let help = run(&[name, "--help"]).ok();
        assert!(help.contains("Examples:"), "{name}: {help}");
    }
    assert!(run(&["--version"]).ok().starts_with("snowmint "));
}
