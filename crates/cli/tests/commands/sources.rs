//! Sources that are disabled, enabled, deleted and read, by a real server.

use crate::common::{Ran, json, run};
use crate::server::{Server, serve};

fn source(server: &Server, args: &[&str]) -> Ran {
    run(&[&["source"], args, &["--server", &server.http]].concat())
}

#[test]
fn source_is_enabled_again_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(serve(folder.path(), &[]));
    source(&server, &["define", "bills", "--kind", "segment"]).ok();
    let first: u64 = server.mint(&["bills"]).ok().trim().parse().unwrap();

    let off = source(&server, &["disable", "bills"]).ok();
    assert!(off.contains("enabled = false"), "{off}");
    let refused = server.mint(&["bills"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    for part in ["snowmint source enable NAME", " [disabled]\n"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    let on = source(&server, &["enable", "bills"]).ok();
    assert!(!on.contains("enabled = false"), "{on}");
    let second: u64 = server.mint(&["bills"]).ok().trim().parse().unwrap();
    assert!(second > first, "{second} {first}");

    let gone = source(&server, &["delete", "bills"]).ok();
    assert_eq!(gone, "deleted bills; the name keeps kind, layout and numbers\n");
    let ran = server.mint(&["bills"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.ends_with(" [unknown_source]\n"), "{}", ran.err);
    let other = source(&server, &["delete", "bill", "--json"]);
    assert_eq!((other.code, other.out.as_str()), (1, ""), "{}", other.err);
    assert!(other.err.ends_with(" [unknown_source]\n"), "{}", other.err);

    // The same source continues above all numbers that it gave.
    source(&server, &["define", "bills", "--kind", "segment"]).ok();
    let third: u64 = server.mint(&["bills"]).ok().trim().parse().unwrap();
    assert!(third > second, "{third} {second}");
    let gone = json(&source(&server, &["delete", "bills", "--json"]).ok());
    assert_eq!((&gone["name"], &gone["deleted"]), (&"bills".into(), &true.into()), "{gone}");
}

#[test]
fn id_minted_in_a_chosen_form_is_decoded_by_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(serve(folder.path(), &[]));
    let asked = ["--source", "default", "--server", &server.http, "--json"];
    for format in ["base62", "hex-padded", "friendly"] {
        let minted = server.mint(&["--format", format]).ok();
        let id = minted.trim();
        let decoded = json(&run(&[&["decode", id, "--format", format], &asked[..]].concat()).ok());
        assert_eq!(decoded["id"], id, "{format}: {decoded}");
        assert!(decoded["worker"].is_u64(), "{format}: {decoded}");
        // Without its form, the error names the one in which the text was read.
        let refused = run(&[&["decode", id], &asked[..]].concat());
        assert_eq!(refused.code, 2, "{refused:?}");
        let part = format!("{id:?} in decimal, the form of source");
        assert!(refused.err.contains(&part), "{}", refused.err);
    }
    // A friendly text has its time in the zone of the output.
    let minted = server.mint(&["--format", "friendly"]).ok();
    let local = |hours: u64| {
        let (time, rest) = minted.trim().split_at(17);
        let first =
            format!("{}-{}-{}T{}:00:00Z", &time[..4], &time[4..6], &time[6..8], &time[8..10]);
        let snowmint_core::Rfc3339(at) = first.parse().unwrap();
        let shown = snowmint_core::Rfc3339(at.saturating_add(hours * 3_600_000)).to_string();
        format!("{}{}{rest}", &shown[..13].replace(['-', 'T'], ""), &time[10..])
    };
    let read = |id: &str, zone: &str| {
        let form = ["decode", id, "--format", "friendly", "--zone", zone];
        let decoded = json(&run(&[&form, &asked[..]].concat()).ok());
        assert_eq!(decoded["id"], id, "as it was given: {decoded}");
        decoded["number"].clone()
    };
    assert_eq!(read(&local(8), "+08:00"), read(minted.trim(), "UTC"));
}

#[test]
fn encode_brackets_the_ids_of_a_source() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(serve(folder.path(), &[]));
    let keys = ["--layout", "discord", "--text", "base62-padded"];
    source(&server, &[&["define", "orders"], &keys[..]].concat()).ok();
    let minted = server.mint(&["orders"]).ok();
    let id = minted.trim();
    let asked = ["--source", "orders", "--server", &server.http, "--json"];
    let decoded = json(&run(&[&["decode", id], &asked[..]].concat()).ok());
    let (time, number) = (decoded["time"].as_str().unwrap(), &decoded["number"]);
    let number: u64 = number.as_str().unwrap().parse().unwrap();

    let range = json(&run(&[&["encode", time], &asked[..]].concat()).ok());
    let end = |name: &str| range[name].as_str().unwrap().to_owned();
    let (lowest, highest): (u64, u64) =
        (end("lowest").parse().unwrap(), end("highest").parse().unwrap());
    assert!((lowest..=highest).contains(&number), "{number} is not in {range}");
    assert_eq!(highest - lowest, (1 << 22) - 1, "discord has 22 bits below the time");
    // Padded texts sort as their numbers do.
    assert!((end("lowest_text").as_str()..=&end("highest_text")).contains(&id), "{id}: {range}");
    assert_eq!((&range["format"], &range["texts_sort"]), (&"base62-padded".into(), &true.into()));
    let text = run(&["encode", time, "--source", "orders", "--server", &server.http]).ok();
    assert!(text.contains(&format!("\nbase62-padded: {}", end("lowest_text"))), "{text}");

    for (name, exit, part) in [("numbers", 2, "kind segment"), ("nothing", 1, "[unknown_source]")] {
        let ran = run(&["encode", time, "--source", name, "--server", &server.http]);
        assert_eq!((ran.code, ran.out.as_str()), (exit, ""), "{ran:?}");
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
}
