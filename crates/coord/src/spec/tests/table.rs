//! Tests of the table of keys: it has every key, and each takes the value that it names.

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

/// The dotted names of everything in a JSON object.
fn leaves(prefix: &str, map: &serde_json::Map<String, serde_json::Value>) -> Vec<String> {
    map.iter()
        .flat_map(|(name, value)| match value {
            serde_json::Value::Object(inner) => leaves(&format!("{prefix}{name}."), inner),
            _ => vec![format!("{prefix}{name}")],
        })
        .collect()
}

#[test]
fn the_table_has_every_key_and_no_other() {
    let mut whole = SourceSpec::default();
    let mut set = Vec::new();
    for key in keys::KEYS {
        whole.set(key.name, sample(key)).unwrap();
        set.push(key.name.to_owned());
    }
    let mut found = leaves("", &whole.to_json());
    found.sort();
    set.sort();
    assert_eq!(found, set);
    // A key of the structs that the table lacked would still be unset here.
    let SourceSpec {
        kind,
        enabled,
        layout,
        epoch,
        short_life,
        mint,
        worker,
        unique,
        order,
        on_rollback,
        lead_max,
        wait_max,
        wait_for,
        burst,
        sequence_start,
        shards,
        prefill,
        disguise,
        text,
        step,
        offset,
        increment,
        first,
        first_at,
        until,
        upstream,
        stores,
        counter,
        serial,
        uuid,
    } = whole;
    assert!(kind.is_some() && enabled.is_some() && layout.is_some() && epoch.is_some());
    assert!(short_life.is_some() && mint.is_some() && worker.is_some());
    assert!(unique.is_some() && order.is_some() && on_rollback.is_some() && lead_max.is_some());
    assert!(wait_max.is_some() && wait_for.is_some() && burst.is_some() && text.is_some());
    assert!(
        sequence_start.is_some() && shards.is_some() && offset.is_some() && increment.is_some()
    );
    assert!(first.is_some() && first_at.is_some() && until.is_some());
    assert!(upstream.is_some() && stores.is_some());
    let SerialSpec { prefix, date, zone, width, reset } = serial.unwrap();
    assert!(prefix.is_some() && date.is_some() && zone.is_some() && width.is_some());
    assert!(reset.is_some());
    let PrefillSpec { enabled, boost, threshold, schedule, on_empty, wait_max } = prefill.unwrap();
    assert!(enabled.is_some() && boost.is_some() && threshold.is_some() && schedule.is_some());
    assert!(on_empty.is_some() && wait_max.is_some());
    let DisguiseSpec { mode, key, version, bits, check } = disguise.unwrap();
    assert!(mode.is_some() && key.is_some() && bits.is_some() && check.is_some());
    assert!(version.is_some());
    let StepSpec { rule, size, min, max, lasts, waste_max } = step.unwrap();
    assert!(rule.is_some() && size.is_some() && waste_max.is_some());
    assert!(min.is_some() && max.is_some() && lasts.is_some());
    let CounterSpec { start, step, confirm, keys } = counter.unwrap();
    assert!(start.is_some() && step.is_some() && confirm.is_some() && keys.is_some());
    let UuidSpec { version, namespace } = uuid.unwrap();
    assert!(version.is_some() && namespace.is_some());
}

const KINDS: &[Kind] = &[Kind::Snowflake, Kind::Segment, Kind::Counter, Kind::Uuid, Kind::Ulid];

/// The kinds for which a key, or a table of keys, has a meaning.
fn kinds_of(key: &str) -> &'static [Kind] {
    match key {
        "kind" | "enabled" => KINDS,
        "layout" | "epoch" | "short_life" | "mint" | "worker" | "unique" | "order"
        | "on_rollback" | "lead_max" | "wait_max" | "wait_for" | "burst" | "sequence_start"
        | "shards" | "prefill" => &[Kind::Snowflake],
        "disguise" | "text" | "stores" => &[Kind::Snowflake, Kind::Segment],
        "step" | "offset" | "increment" | "first" | "first_at" | "until" | "upstream"
        | "serial" => &[Kind::Segment],
        "counter" => &[Kind::Counter],
        "uuid" => &[Kind::Uuid],
        _ => panic!("{key} has no row here"),
    }
}

#[test]
fn key_without_a_meaning_for_the_kind_is_rejected() {
    for &kind in KINDS {
        let rejected = |spec: &SourceSpec| match spec.check() {
            Err(SpecError::NotForKind { key, kind: named }) => {
                assert_eq!(named, kind, "{key}");
                Some(key)
            }
            _ => None,
        };
        let (mut all, mut first) = (SourceSpec::of(kind), None);
        // From the last key to the first: of several keys without a meaning, the first is named.
        for key in keys::KEYS.iter().rev().filter(|key| key.name != "kind") {
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
fn context(key: &str) -> &'static str {
    match key {
        "lead_max" | "burst" => "{}",
        "wait_max" => r#"{"on_rollback":"wait"}"#,
        "prefill.threshold" | "prefill.schedule" => r#"{"prefill":{"enabled":true}}"#,
        "prefill.wait_max" => r#"{"prefill":{"enabled":true,"on_empty":"wait"}}"#,
        "disguise.key" | "disguise.version" => r#"{"disguise":{"mode":"full"}}"#,
        "step.min" | "step.lasts" | "step.waste_max" | "serial.width" => r#"{"kind":"segment"}"#,
        "step.max" => r#"{"kind":"segment","step":{"min":1}}"#,
        "offset" => r#"{"kind":"segment","step":{"min":1},"increment":9223372036854775806}"#,
        "step.size" => r#"{"kind":"segment","step":{"rule":"fixed"}}"#,
        "increment" | "first" | "first_at" | "until" => r#"{"kind":"segment","step":{"min":1}}"#,
        "counter.start" | "counter.step" => r#"{"kind":"counter"}"#,
        "uuid.version" => r#"{"kind":"uuid"}"#,
        _ => panic!("{key} has bounds, and no row here"),
    }
}

#[test]
fn bounds_of_the_table_are_those_of_the_check() {
    let mut count = 0;
    for key in keys::KEYS {
        let Some((least, most)) = key.within else { continue };
        let is_possible = |bound: u64| {
            let unit = if matches!(key.takes, Takes::Duration) { "ms" } else { "" };
            let mut spec = spec(context(key.name));
            spec.set(key.name, &format!("{bound}{unit}")).and_then(|()| spec.check()).is_ok()
        };
        assert!(is_possible(least) && is_possible(most), "{}", key.name);
        let below = least.checked_sub(1).is_some_and(is_possible);
        let above = most.checked_add(1).is_some_and(is_possible);
        assert!(!below && !above, "{}: {below}, {above}", key.name);
        count += 1;
    }
    assert_eq!(count, 22);
}

/// The document of a key, which names its words, can differ from what the key takes.
#[test]
fn documents_name_every_word_of_a_key() {
    for key in keys::KEYS {
        let Takes::Word(words) = key.takes else { continue };
        assert!(words().len() >= 2, "{}", key.name);
        for word in words() {
            assert!(key.doc.contains(word), "{} does not name {word}", key.name);
        }
    }
}
