//! Tests of the table of keys: it has every key, and each takes the value that it names.

use std::collections::BTreeSet;

use super::*;

#[test]
fn unknown_keys_and_wrong_types_are_refused() {
    for (json, word) in [
        (r#"{"layuot":"twitter"}"#, "layuot"),
        (r#"{"prefill":{"bosst":3}}"#, "bosst"),
        (r#"{"kind":"snowfalke"}"#, "snowfalke"),
        (r#"{"burst":5}"#, "5"),
        (r#"{"burst":"5"}"#, "is not a duration"),
        (r#"{"enabled":"yes"}"#, "yes"),
        ("[]", ""),
        (r#"{"kind":"segment","step":{"rule":"fast"}}"#, "fast"),
        (r#"{"kind":"segment","step":{"min":-1}}"#, "-1"),
        (r#"{"kind":"segment","step":{"waste_max":256}}"#, "256"),
        ("", ""),
    ] {
        let error = SourceSpec::from_json(json).unwrap_err();
        assert!(error.to_string().contains(word), "{json}: {error}");
    }
}

/// A value that each key can take.
fn sample(key: &Key) -> &'static str {
    match key.name {
        "kind" => "segment",
        "layout" => "twitter",
        "epoch" => "2024-01-01T00:00:00Z",
        "mint" => "store",
        "unique" => "namespace",
        "order" => "local",
        "on_rollback" => "fail",
        "wait_for" => "twice",
        "sequence_start" => "carried",
        "step.rule" => "leaf",
        "serial.reset" => "month",
        "prefill.on_empty" => "wait",
        "disguise.mode" => "full",
        "disguise.check" => "00",
        "text" => "hex",
        "uuid.namespace" => "dns",
        "counter.confirm" => "store",
        "counter.keys" => "alone",
        _ => match key.takes {
            Takes::Flag => "true",
            Takes::Number => "7",
            Takes::Text | Takes::Duration => "7s",
            Takes::Word(words) => words()[0],
        },
    }
}

/// The fields that serde reads in a table of keys, or of a whole source where `table` is empty: it
/// names them where it reads an unknown one.
fn fields(table: &str) -> Vec<String> {
    let unknown = serde_json::json!({ "?": 1 });
    let keys = if table.is_empty() { unknown } else { serde_json::json!({ table: unknown }) };
    let error = serde_json::from_value::<SourceSpec>(keys).unwrap_err().to_string();
    error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_table_has_every_key_and_no_other() {
    let mut listed = BTreeSet::new();
    let mut tables = BTreeSet::new();
    for key in keys::all() {
        SourceSpec::default().set(key.name, sample(key)).unwrap();
        assert!(listed.insert(key.name.to_owned()), "{} stands twice", key.name);
        tables.extend(key.name.split_once('.').map(|(table, _)| table.to_owned()));
    }
    let mut read: BTreeSet<String> = fields("").into_iter().collect();
    for table in tables {
        assert!(read.remove(&table), "{table} is no table");
        read.extend(fields(&table).iter().map(|key| format!("{table}.{key}")));
    }
    assert_eq!(read, listed);
}

fn kinds() -> impl Iterator<Item = Kind> {
    words::<Kind>().iter().map(|word| serde_json::from_value((*word).into()).unwrap())
}

/// The kinds for which a key, or a table of keys, has a meaning.
fn kinds_of(key: &str) -> Vec<Kind> {
    match key {
        "kind" | "enabled" => kinds().collect(),
        "layout" | "epoch" | "short_life" | "mint" | "worker" | "unique" | "order"
        | "on_rollback" | "lead_max" | "wait_max" | "wait_for" | "burst" | "sequence_start"
        | "shards" | "prefill" => vec![Kind::Snowflake],
        "disguise" | "text" | "stores" => vec![Kind::Snowflake, Kind::Segment],
        "step" | "offset" | "increment" | "first" | "first_at" | "until" | "upstream"
        | "serial" => vec![Kind::Segment],
        // A table that a kind has for itself.
        _ => kinds().filter(|kind| kind.name() == key).collect(),
    }
}

#[test]
fn key_without_a_meaning_for_the_kind_is_rejected() {
    for kind in kinds() {
        let rejected = |spec: &SourceSpec| match spec.check() {
            Err(SpecError::NotForKind { key, kind: named }) => {
                assert_eq!(named, kind, "{key}");
                Some(key)
            }
            _ => None,
        };
        let (mut all, mut first) = (SourceSpec::of(kind), None);
        // From the last key to the first: of several keys without a meaning, the first is named.
        for key in keys::all().rev().filter(|key| key.name != "kind") {
            let table = key.name.split('.').next().unwrap();
            let expected = (!kinds_of(table).contains(&kind)).then_some(table);
            first = expected.or(first);
            let mut alone = SourceSpec::of(kind);
            for spec in [&mut alone, &mut all] {
                spec.set(key.name, sample(key)).unwrap();
            }
            assert_eq!(rejected(&alone), expected, "{} for {kind}", key.name);
            assert_eq!(rejected(&all), first, "{} and later keys for {kind}", key.name);
        }
    }
}

#[test]
fn empty_table_of_another_kind_is_rejected() {
    for table in ["prefill", "disguise", "step", "counter", "serial", "uuid"] {
        let empty = format!(r#"{{"kind":"ulid","{table}":{{}}}}"#);
        assert_eq!(
            spec_error(&empty),
            SpecError::NotForKind { key: table, kind: Kind::Ulid },
            "{empty}"
        );
    }
}

#[test]
fn keys_are_set_from_text() {
    let mut spec = SourceSpec::default();
    spec.set("kind", "segment").unwrap();
    spec.set("step.min", "5").unwrap();
    spec.set("step.max", "50").unwrap();
    spec.set("enabled", "false").unwrap();
    assert_eq!(spec.kind(), Kind::Segment);
    assert!(!spec.is_enabled());
    assert_eq!(spec.step.as_ref().unwrap().max, Some(50));
    let before = spec.clone();
    for (key, text) in [
        ("step.min", "-1"),
        ("step.min", "many"),
        ("step.mni", "1"),
        ("enabled", "yes"),
        ("kind", "Segment"),
        ("prefill.boost", "4294967296"),
        ("burst", "5"),
        ("serial", "x"),
        ("serial.width", "-1"),
        ("", ""),
        ("step", "5"),
    ] {
        assert!(spec.set(key, text).is_err(), "{key} = {text}");
        assert_eq!(spec, before, "{key} = {text}");
    }
    let error = spec.set("serial.width", "256").unwrap_err().to_string();
    assert!(error.ends_with("take 1 to 12"), "{error}");
}

/// Keys with which a key has a meaning, and may have every value within its bounds.
fn context(key: &Key) -> String {
    let kind = key.kinds.split([' ', ',', ';']).next().unwrap();
    let others = match key.name {
        "wait_max" => r#","on_rollback":"wait""#,
        "prefill.threshold" | "prefill.schedule" => r#","prefill":{"enabled":true}"#,
        "prefill.wait_max" => r#","prefill":{"enabled":true,"on_empty":"wait"}"#,
        "disguise.key" | "disguise.version" => r#","disguise":{"mode":"full"}"#,
        "step.max" | "increment" | "first" | "first_at" | "until" => r#","step":{"min":1}"#,
        "offset" => r#","step":{"min":1},"increment":9223372036854775806"#,
        "step.size" => r#","step":{"rule":"fixed"}"#,
        _ => "",
    };
    format!(r#"{{"kind":"{kind}"{others}}}"#)
}

#[test]
fn bounds_of_the_table_are_those_of_the_check() {
    let mut count = 0;
    for key in keys::all() {
        let Some((least, most)) = key.within else { continue };
        let is_possible = |bound: u64| {
            let unit = if matches!(key.takes, Takes::Duration) { "ms" } else { "" };
            let mut spec = spec(&context(key));
            spec.set(key.name, &format!("{bound}{unit}")).and_then(|()| spec.check()).is_ok()
        };
        assert!(is_possible(least) && is_possible(most), "{}", key.name);
        let below = least.checked_sub(1).is_some_and(is_possible);
        let above = most.checked_add(1).is_some_and(is_possible);
        assert!(!below && !above, "{}: {below}, {above}", key.name);
        count += 1;
    }
    assert!(count >= 22, "{count}");
}

/// The document of a key, which names its words, can differ from what the key takes.
#[test]
fn documents_name_every_word_of_a_key() {
    for key in keys::all() {
        let Takes::Word(words) = key.takes else { continue };
        assert!(words().len() >= 2, "{}", key.name);
        for word in words() {
            assert!(key.doc().contains(word), "{} does not name {word}", key.name);
        }
    }
}
