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
fn ids_of_other_systems_decode_to_their_known_time() {
    let negative = "-7055142081907384320";
    let full = "worker=10,time=41,sequence=12,unit=1ms,epoch=1588435200000";
    for (args, time, worker) in [
        (&["--layout", "seata", "5674781293195218178"][..], "2022-03-28T02:51:01.228Z", Some(630)),
        (&["--layout", full, "5674781293195218178"], "2022-03-28T02:51:01.228Z", Some(630)),
        (&["--layout", "cockroachdb", "568469873039769601"], "2020-06-30T21:47:17.622Z", Some(1)),
        (&["--layout", "nextcloud", "4688076898113587"], "2025-10-13T15:12:07.984Z", Some(785)),
        (&["--layout", "baidu-2016", "--", negative], "2026-11-20T22:14:13.000Z", Some(1)),
        (&["--layout", "tsid", "0AWG1PRQQFZ8D"], "2022-12-18T18:10:05.117Z", Some(895)),
        (&["--layout", "instagram", "BsOGulcndj-"], "2019-01-04T17:05:45.106Z", Some(1910)),
        (&["65920080aabbccddee112233"], "2024-01-01T00:00:00.000Z", None),
        (&["0ujtsYcgvSTl8PAuAdqWYSMnLOv"], "2017-10-10T04:00:47.000Z", None),
        (&["9m4e2mr0ui3e8a215n4g"], "2011-03-22T17:50:19.000Z", None),
        (&["--", "-JhLeOlGIEjaIOFHR0xd"], "2015-02-04T22:15:31.153Z", None),
    ] {
        let line = json(&run(&[&["decode", "--json"], args].concat()).ok());
        assert_eq!(line["time"], time, "{args:?}");
        assert_eq!(line["worker"].as_u64(), worker, "{args:?}");
    }
    let text = run(&["decode", "9m4e2mr0ui3e8a215n4g"]).ok();
    for part in ["  kind      xid\n", "  machine   60f486\n", "  process   58408\n"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let object_id = json(&run(&["decode", "507c7f79bcf86cd7994f6c0e", "--json"]).ok());
    assert_eq!(
        (&object_id["kind"], &object_id["counter"]),
        (&"ObjectId".into(), &5_205_006.into())
    );
    // No sequence, no field of that name.
    let line =
        json(&run(&["decode", "--json", "--layout", "cockroachdb", "568469873039769601"]).ok());
    assert_eq!((line.get("sequence"), &line["tick"]), (None, &17_348_323_762_200_u64.into()));
}

#[test]
fn negative_number_of_63_bits_is_refused_with_a_hint() {
    let ran = run(&["decode", "--layout", "twitter", "--", "-1"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("give it one more bit"), "{}", ran.err);
    let read = json(&run(&["decode", "--json", "--layout", "twitter,time=42", "--", "-1"]).ok());
    assert_eq!(read["worker"], 1_023);
}

#[test]
fn layouts_that_only_decode_do_not_mint() {
    for (layout, part) in [
        ("seata", "time is not the layout's first field"),
        ("cockroachdb", "10000 ns"),
        ("nextcloud", "two parts"),
        ("baidu-2016,epoch=2026-01-01T00:00:00Z", "`baidu-2016` only decodes"),
    ] {
        let ran = run(&["mint", "--worker", "1", "--no-state", "--layout", layout]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{layout}");
        assert!(ran.err.contains(part), "{}", ran.err);
        let facts = json(&run(&["layout", layout, "--json"]).ok());
        assert!(layout.contains(',') || facts["can_mint"] == false, "{facts}");
    }
    let text = run(&["layout", "nextcloud"]).ok();
    for part in ["31 of seconds, 10 of the units within", "  mints     no: "] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let friendly = ["decode", "1", "--format", "friendly", "--layout", "seata"];
    let ran = run(&friendly);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("friendly forms need a layout that can mint"), "{}", ran.err);
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
    let readings = line["readings"].as_array().unwrap();
    // The layout of `default`, 26 names, and 6 other epochs.
    assert_eq!(readings.len(), 33);
    let plausible = |reading: &serde_json::Value| reading["plausible"].as_bool().unwrap();
    assert!(readings.is_sorted_by_key(|reading| !plausible(reading)), "{line}");
    assert!(readings.iter().all(|reading| plausible(reading) || reading["why"].is_string()));
    // The text has the same readings in the same order.
    let names = readings.iter().map(|reading| reading["layout"].as_str().unwrap());
    let listed = out.lines().skip(3).map(|line| line.split_whitespace().next().unwrap());
    assert!(names.eq(listed), "{out}");
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
fn text_of_an_unknown_form_has_the_readings_of_each_form() {
    // The ID of a tweet in base62.
    let line = json(&run(&["decode", "1ptWyK4WgZU", "--json"]).ok());
    let readings = line["readings"].as_array().unwrap();
    let twitter = |reading: &&serde_json::Value| {
        (&reading["layout"], &reading["format"]) == (&"twitter".into(), &"base62".into())
    };
    let twitter = readings.iter().find(twitter).unwrap_or_else(|| panic!("{line}"));
    assert_eq!(twitter["time"], "2022-06-28T16:07:40.105Z");
    assert_eq!(twitter["number"], "1541815603606036480");
    assert!(readings.iter().all(|reading| reading["plausible"] == true), "{line}");
    let is_doubtful = |reading: &serde_json::Value| !reading["why"].is_null();
    assert!(readings.is_sorted_by_key(is_doubtful), "the best come first, of any form: {line}");
    let text = run(&["decode", "1ptWyK4WgZU"]).ok();
    let row = |line: &str| line.starts_with("  twitter ") && line.contains(" base62 ");
    assert!(text.lines().any(row), "{text}");
    assert!(text.contains("  LAYOUT") && text.contains("  FORM"), "{text}");
    // A named form is the only one.
    assert_eq!(run(&["decode", "1ptWyK4WgZU", "--format", "hex"]).code, 2);
}

#[test]
fn texts_of_cosid_decode_as_cosid_writes_them() {
    // Its Radix36IdConverter writes capitals; its friendly form has the zone of the process.
    let decode = |args: &[&str]| {
        let layout = ["decode", "--json", "--layout", "cosid", "--format"];
        json(&run(&[&layout[..], args].concat()).ok())
    };
    let friendly = "20220320133617924-5-0";
    for args in [
        &["base36", "28XOQD7HM874"][..],
        &["base36", "28xoqd7hm874"],
        &["friendly", friendly, "--zone", "Asia/Shanghai"],
        &["friendly-padded", "20220320133617924-0005-0000", "--zone", "+08:00"],
        &["friendly", "20220320053617924-5-0"],
    ] {
        let line = decode(args);
        assert_eq!(line["number"], "295913926632165376", "{args:?}");
        assert_eq!(line["worker"], 5, "{args:?}");
    }
    let twice = run(&[
        "decode",
        "20261025023000000-1-2",
        "--format",
        "friendly",
        "--layout",
        "cosid",
        "--zone",
        "Europe/Berlin",
    ]);
    assert_eq!(twice.code, 2);
    assert!(twice.err.contains("--zone +02:00"), "{}", twice.err);
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
    assert!(ran.err.contains("invalid ID \"-5\""), "{}", ran.err);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.out.lines().count(), 2);
    assert!(ran.err.contains("invalid ID \"x\""), "{}", ran.err);
    assert!(ran.err.contains("2 of 4 IDs are invalid"), "{}", ran.err);
    for args in [
        &["decode", "1", "--layout", "twiter"][..],
        &["decode", "1", "--zone", "Middle/Earth"],
        &["decode", "1", "--format", "base64"],
        &["decode", "18446744073709551615", "--layout", "twitter"],
        &["decode", "-1", "--layout", "js53"],
        &["decode", "-9223372036854775809"],
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
fn rejected_flags_of_a_source_say_which_flag_is_right() {
    for (args, right) in [
        (&["decode", "1", "--layout", "default"][..], "(--source default"),
        (&["encode", "now", "--layout", "default"], "(--source default"),
        (&["decode", "z", "--format", "friendly"], "the source with --source"),
    ] {
        let ran = run(args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.err.contains(right), "{args:?}: {}", ran.err);
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
    // After its last second of 28 bits, uid-generator makes negative numbers.
    let out = run(&["encode", "2026-11-20T22:14:13Z", "--layout", "baidu-2016"]).ok();
    let lowest = -7_055_142_081_907_384_320_i64 - (1 << 13);
    assert_eq!(out, format!("lowest   {lowest}\nhighest  {}\n", lowest + (1 << 35) - 1));
    let span = ["encode", "2024-11-20", "--until", "2024-11-21", "--layout", "baidu-2016"];
    let ran = run(&span);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("2024-11-20T13:24:16.000Z"), "{}", ran.err);
    // A millisecond has 100 ticks of CockroachDB, and each has 2^15 nodes.
    let out = run(&["encode", "2020-06-30T21:47:17.622Z", "--layout", "cockroachdb"]).ok();
    let lowest = 17_348_323_762_200_u64 << 15;
    assert_eq!(out, format!("lowest   {lowest}\nhighest  {}\n", lowest + (100 << 15) - 1));
    for args in [
        &["encode", "2025-12-31T23:59:59.999Z"][..],
        &["encode", "tomorrow"],
        &["encode", "2026-11-21", "--until", "2026-11-20"],
        &["encode", "2099-01-01"],
        &["encode", "2026-11-20", "--layout", "seata"],
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
    }
}

#[test]
fn layouts_are_listed_shown_and_proposed() {
    let list = run(&["layout"]).ok();
    assert_eq!(list.lines().count(), 27, "{list}");
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
