mod table;

use snowmint_core::layout::Field;
use snowmint_core::text::{Format, Radix};

use super::*;

fn spec(json: &str) -> SourceSpec {
    SourceSpec::from_json(json).unwrap()
}

fn spec_error(json: &str) -> SpecError {
    spec(json).check().unwrap_err()
}

/// The key that an error names.
fn refused_key(json: &str) -> String {
    match spec_error(json) {
        SpecError::Value { key, .. }
        | SpecError::NotForKind { key, .. }
        | SpecError::Needs { key, .. }
        | SpecError::Missing { key, .. } => key.to_owned(),
        other => panic!("{other} names no key of the table"),
    }
}

fn snowflake(json: &str) -> SnowflakePlan {
    match spec(json).check().unwrap() {
        Plan::Snowflake(plan) => plan,
        other => panic!("{other:?}"),
    }
}

/// One valid source of each kind and shape.
const POSSIBLE: &[&str] = &[
    "{}",
    r#"{"kind":"snowflake","layout":"twitter","on_rollback":"hold","lead_max":"1s"}"#,
    r#"{"layout":"twitter","on_rollback":"wait","wait_for":"3ms"}"#,
    r#"{"layout":"twitter","on_rollback":"wait","wait_max":"7ms"}"#,
    r#"{"layout":"twitter","on_rollback":"ring","lead_max":"0ms"}"#,
    r#"{"layout":"twitter","on_rollback":"wait","wait_for":"twice"}"#,
    r#"{"layout":"twitter","on_rollback":"fail","burst":"20ms","sequence_start":"random"}"#,
    r#"{"layout":"twitter","on_rollback":"ring","sequence_start":"random:4096"}"#,
    r#"{"shards":16}"#,
    r#"{"shards":1,"sequence_start":"carried"}"#,
    r#"{"shards":4096,"sequence_start":"zero","order":"global"}"#,
    r#"{"layout":"sonyflake","shards":255}"#,
    r#"{"layout":"clock-sequence","shards":3}"#,
    r#"{"layout":"clock-sequence","unique":"namespace"}"#,
    r#"{"layout":"redis","mint":"store","worker":4095}"#,
    r#"{"mint":"store","worker":0,"burst":"5ms","lead_max":"1s","disguise":{"mode":"ordered"}}"#,
    r#"{"layout":"redis","mint":"store","worker":1,"on_rollback":"wait","text":"base62"}"#,
    r#"{"layout":"redis","mint":"process"}"#,
    r#"{"layout":"baidu","on_rollback":"borrow","lead_max":"1h",
        "prefill":{"enabled":true,"boost":3,"threshold":50,"schedule":"5m","on_empty":"wait"}}"#,
    r#"{"layout":"time=41,worker=10,sequence=12","epoch":"2024-01-01T00:00:00Z"}"#,
    r#"{"sequence_start":"carried","order":"local","enabled":false,"text":"base62-padded"}"#,
    r#"{"disguise":{"mode":"ordered","key":3}}"#,
    r#"{"disguise":{"mode":"ordered","key":3,"version":2}}"#,
    r#"{"layout":"js53","disguise":{"mode":"full"}}"#,
    r#"{"kind":"segment","disguise":{"mode":"full","version":2}}"#,
    r#"{"kind":"segment","disguise":{"mode":"full","version":1}}"#,
    r#"{"disguise":{"mode":"none"},"prefill":{"enabled":false},"text":"friendly"}"#,
    r#"{"kind":"segment"}"#,
    r#"{"kind":"segment","step":{"min":1,"max":1,"lasts":"1m"},"offset":7,"increment":16}"#,
    r#"{"kind":"segment","offset":2,"increment":3,"first":1000,"first_at":40,"until":99}"#,
    r#"{"kind":"segment","upstream":"old:leaf:orders"}"#,
    r#"{"kind":"segment","stores":"a,b"}"#,
    r#"{"kind":"segment","step":{"min":2000000},"disguise":{"mode":"full","bits":53}}"#,
    r#"{"kind":"segment","step":{"rule":"adaptive","waste_max":1}}"#,
    r#"{"kind":"segment","step":{"rule":"fixed","size":1}}"#,
    r#"{"kind":"segment","step":{"rule":"fixed"}}"#,
    r#"{"kind":"segment","step":{"rule":"leaf","size":2000,"max":2000}}"#,
    r#"{"kind":"segment","step":{"rule":"leaf","size":2000000}}"#,
    r#"{"kind":"segment","serial":{}}"#,
    r#"{"kind":"segment","serial":{"prefix":"A-","date":"yyyyMMdd","zone":"Europe/Berlin","width":4,
        "reset":"day"},"step":{"rule":"fixed","size":10}}"#,
    r#"{"kind":"segment","serial":{"date":"yy","width":12}}"#,
    r#"{"kind":"uuid"}"#,
    r#"{"kind":"uuid","uuid":{"version":5,"namespace":"dns"}}"#,
    r#"{"kind":"uuid","uuid":{"version":3,"namespace":"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}}"#,
    r#"{"kind":"ulid"}"#,
    r#"{"kind":"segment","serial":{"date":"yyyyMM"},"stores":"a, b"}"#,
    r#"{"kind":"segment","serial":{},"offset":2,"increment":3}"#,
    r#"{"kind":"segment","serial":{},"until":900}"#,
    r#"{"kind":"segment","stores":"a,b","disguise":{"mode":"full"}}"#,
    r#"{"layout":"redis","mint":"store","stores":"a = 3, b=4"}"#,
];

#[test]
fn canonical_keys_give_the_same_plan_and_text() {
    for json in POSSIBLE {
        let written = spec(json);
        let canonical = written.canonical().unwrap();
        assert_eq!(canonical.check().unwrap(), written.check().unwrap(), "{json}");
        assert_eq!(canonical.canonical().unwrap(), canonical, "{json}");
        assert_eq!(canonical.identity(), written.identity(), "{json}");
        let text = serde_json::to_string(&canonical).unwrap();
        assert_eq!(spec(&text), canonical, "{json}");
    }
}

/// Definitions and identities that a server wrote into its store, with the keys of each request:
/// stores compare these texts, so another text would be another source. Only additions may change
/// the file.
const STORED: &str = include_str!("stored.jsonl");

#[test]
fn stored_texts_stay_equal_byte_by_byte() {
    for line in STORED.lines() {
        let [written, text, identity]: [String; 3] = serde_json::from_str(line).unwrap();
        let stored = SourceSpec::from_stored(&text).unwrap();
        // A server writes version and check value of a disguise.
        let written = Some(spec(&written)).filter(|written| written.disguise.is_none());
        for spec in written.into_iter().chain([stored]) {
            // The catalog has the state apart.
            let canonical = SourceSpec { enabled: None, ..spec.canonical().unwrap() };
            assert_eq!(canonical.to_stored(), text);
            assert_eq!(spec.identity().unwrap(), identity);
        }
    }
    assert!(STORED.lines().count() >= 50);
}

#[test]
fn empty_definition_gives_the_default_source() {
    let plan = snowflake("{}");
    let layout = plan.layout;
    let bits = [Field::Time, Field::Worker, Field::Sequence].map(|field| layout.bits(field));
    assert_eq!((bits, layout.unit_ms()), ([41, 10, 12], 1));
    assert_eq!(layout.epoch(), snowmint_core::layout::EPOCH_DEFAULT);
    assert_eq!(plan.rollback_plan, RollbackPlan::Hold { lead_max_ms: 5_000 });
    assert_eq!((plan.burst_ms, plan.start), (0, StartPlan::Zero));
    assert_eq!((plan.prefill, plan.disguise), (None, None));
    assert_eq!(plan.text, Format::Number(Radix::Decimal));
}

#[test]
fn prefill_has_baidus_parameters() {
    let plan = snowflake(r#"{"layout":"baidu","on_rollback":"borrow","prefill":{"enabled":true}}"#);
    let prefill = plan.prefill.unwrap();
    assert_eq!(prefill.capacity, 8192 << 3);
    assert_eq!(prefill.refill_below, 32_768);
    assert_eq!((prefill.schedule_ms, prefill.wait_max_ms), (None, None));
}

#[test]
fn impossible_value_is_rejected_by_its_key() {
    for (json, key) in [
        (r#"{"layout":"absent"}"#, "layout"),
        (r#"{"epoch":"yesterday"}"#, "epoch"),
        (r#"{"layout":"twitter,epoch=0","epoch":"1"}"#, "epoch"),
        (r#"{"layout":"clock-sequence","on_rollback":"hold"}"#, "on_rollback"),
        (r#"{"layout":"twitter","on_rollback":"clock-sequence"}"#, "on_rollback"),
        (r#"{"lead_max":"2h"}"#, "lead_max"),
        (r#"{"on_rollback":"fail","lead_max":"1s"}"#, "lead_max"),
        (r#"{"wait_max":"1s"}"#, "wait_max"),
        (r#"{"on_rollback":"wait","wait_max":"7ms","wait_for":"3ms"}"#, "wait_max"),
        (r#"{"wait_for":"twice"}"#, "wait_for"),
        (r#"{"on_rollback":"wait","wait_for":"thrice"}"#, "wait_for"),
        (r#"{"on_rollback":"wait","wait_for":"1h"}"#, "wait_for"),
        (r#"{"burst":"61s"}"#, "burst"),
        (r#"{"burst":"1ms","layout":"twitter","on_rollback":"ring"}"#, "burst"),
        (
            r#"{"layout":"twitter","on_rollback":"ring","sequence_start":"carried"}"#,
            "sequence_start",
        ),
        (r#"{"worker":3}"#, "worker"),
        (r#"{"mint":"process","worker":3}"#, "worker"),
        (r#"{"mint":"store"}"#, "worker"),
        (r#"{"layout":"redis","mint":"store","worker":4096}"#, "worker"),
        (r#"{"mint":"store","worker":1,"on_rollback":"borrow"}"#, "mint"),
        (r#"{"mint":"store","worker":1,"on_rollback":"ring"}"#, "mint"),
        (r#"{"layout":"clock-sequence","mint":"store","worker":1}"#, "mint"),
        (r#"{"mint":"store","worker":1,"order":"global"}"#, "mint"),
        (r#"{"mint":"store","worker":1,"unique":"namespace"}"#, "mint"),
        (r#"{"mint":"store","worker":1,"sequence_start":"random"}"#, "mint"),
        (r#"{"mint":"store","worker":1,"prefill":{"enabled":true}}"#, "mint"),
        (r#"{"kind":"segment","mint":"store"}"#, "mint"),
        (r#"{"kind":"segment","worker":1}"#, "worker"),
        (r#"{"shards":0}"#, "shards"),
        (r#"{"shards":4097}"#, "shards"),
        (r#"{"shards":18446744073709551615}"#, "shards"),
        (r#"{"layout":"sonyflake","shards":4}"#, "shards"),
        (r#"{"shards":4,"sequence_start":"random"}"#, "sequence_start"),
        (r#"{"shards":4,"layout":"twitter","on_rollback":"ring"}"#, "shards"),
        (r#"{"shards":4,"unique":"namespace"}"#, "shards"),
        (r#"{"shards":4,"disguise":{"mode":"ordered"}}"#, "shards"),
        (r#"{"shards":4,"mint":"store","worker":1}"#, "shards"),
        (r#"{"shards":4,"kind":"segment"}"#, "shards"),
        (r#"{"sequence_start":"random:0"}"#, "sequence_start"),
        (r#"{"sequence_start":"random:4097"}"#, "sequence_start"),
        (r#"{"sequence_start":"one"}"#, "sequence_start"),
        (r#"{"prefill":{"boost":3}}"#, "prefill.boost"),
        (r#"{"prefill":{"enabled":true,"boost":64}}"#, "prefill.boost"),
        (r#"{"prefill":{"enabled":true,"boost":4294967295}}"#, "prefill.boost"),
        (r#"{"prefill":{"enabled":true,"boost":13}}"#, "prefill.boost"),
        (r#"{"prefill":{"enabled":true,"threshold":0}}"#, "prefill.threshold"),
        (r#"{"prefill":{"enabled":true,"threshold":100}}"#, "prefill.threshold"),
        (r#"{"prefill":{"enabled":true,"schedule":"0s"}}"#, "prefill.schedule"),
        (r#"{"prefill":{"enabled":true,"wait_max":"1s"}}"#, "prefill.wait_max"),
        (r#"{"disguise":{"key":1}}"#, "disguise.key"),
        (r#"{"disguise":{"version":2}}"#, "disguise.version"),
        (r#"{"disguise":{"mode":"full","version":0}}"#, "disguise.version"),
        (r#"{"kind":"segment","disguise":{"mode":"full","version":3}}"#, "disguise.version"),
        (r#"{"disguise":{"mode":"full","bits":53}}"#, "disguise.bits"),
        (r#"{"kind":"segment","disguise":{"mode":"full","bits":62}}"#, "disguise.bits"),
        (r#"{"disguise":{"mode":"ordered","bits":63}}"#, "disguise.bits"),
        (r#"{"disguise":{"mode":"full"},"text":"friendly"}"#, "text"),
        (r#"{"text":"base64"}"#, "text"),
        (r#"{"kind":"segment","text":"friendly"}"#, "text"),
        (r#"{"kind":"segment","disguise":{"mode":"ordered"}}"#, "disguise.mode"),
        (r#"{"kind":"segment","step":{"min":0}}"#, "step.min"),
        (r#"{"kind":"segment","step":{"min":10,"max":9}}"#, "step.max"),
        (r#"{"kind":"segment","step":{"lasts":"1ms"}}"#, "step.lasts"),
        (r#"{"kind":"segment","step":{"waste_max":0}}"#, "step.waste_max"),
        (r#"{"kind":"segment","step":{"waste_max":101}}"#, "step.waste_max"),
        (r#"{"kind":"segment","step":{"size":10}}"#, "step.size"),
        (r#"{"kind":"segment","step":{"rule":"fixed","size":0}}"#, "step.size"),
        (r#"{"kind":"segment","step":{"rule":"fixed","size":1,"max":2}}"#, "step.max"),
        (r#"{"kind":"segment","step":{"rule":"fixed","min":1}}"#, "step.min"),
        (r#"{"kind":"segment","step":{"rule":"leaf","size":10,"max":9}}"#, "step.max"),
        (r#"{"kind":"segment","step":{"rule":"leaf","lasts":"1s"}}"#, "step.lasts"),
        (r#"{"kind":"segment","step":{"rule":"leaf","waste_max":5}}"#, "step.waste_max"),
        (r#"{"kind":"segment","increment":0}"#, "increment"),
        (r#"{"kind":"segment","offset":0}"#, "offset"),
        (r#"{"kind":"segment","offset":2}"#, "offset"),
        (r#"{"kind":"segment","offset":4,"increment":3}"#, "offset"),
        (r#"{"kind":"segment","increment":9223372036854775807}"#, "increment"),
        (r#"{"kind":"segment","first":0}"#, "first"),
        (r#"{"kind":"segment","first":9223372036854775807}"#, "first"),
        (r#"{"kind":"segment","first":9223372036854775800}"#, "step.min"),
        (r#"{"kind":"segment","first_at":0}"#, "first_at"),
        (r#"{"kind":"segment","until":0}"#, "until"),
        (r#"{"kind":"segment","serial":{"prefix":"a b"}}"#, "serial.prefix"),
        (
            r#"{"kind":"segment","serial":{"prefix":"0123456789012345678901234567890123"}}"#,
            "serial.prefix",
        ),
        (r#"{"kind":"segment","serial":{"date":"ddMMyyyy"}}"#, "serial.date"),
        (r#"{"kind":"segment","serial":{"zone":"Europe/Nowhere"}}"#, "serial.zone"),
        (r#"{"kind":"segment","serial":{"width":0}}"#, "serial.width"),
        (r#"{"kind":"segment","serial":{"width":13}}"#, "serial.width"),
        (r#"{"kind":"segment","serial":{"reset":"day"}}"#, "serial.reset"),
        (r#"{"kind":"segment","serial":{"date":"yyyyMM","reset":"day"}}"#, "serial.reset"),
        (r#"{"kind":"segment","serial":{"date":"yyyy","reset":"never"}}"#, "serial.reset"),
        (r#"{"kind":"segment","serial":{},"offset":0}"#, "offset"),
        (r#"{"kind":"segment","serial":{"width":1},"offset":1,"increment":10}"#, "serial.width"),
        (
            r#"{"kind":"segment","serial":{"width":1},"stores":"a,b,c,d,e,f,g,h,i,j"}"#,
            "serial.width",
        ),
        (r#"{"kind":"segment","serial":{},"stores":"a,b","until":7}"#, "stores"),
        (r#"{"kind":"segment","serial":{},"upstream":"old:bills"}"#, "upstream"),
        (r#"{"kind":"segment","stores":"a=1,b=2"}"#, "stores"),
        (r#"{"stores":"a,b"}"#, "stores"),
        (r#"{"mint":"store","stores":"a,b"}"#, "stores"),
        (r#"{"mint":"store","stores":"a=1,b=1"}"#, "stores"),
        (r#"{"mint":"store","stores":"a=1,a=2"}"#, "stores"),
        (r#"{"mint":"store","stores":"a=1,b=1024"}"#, "stores"),
        (r#"{"mint":"store","stores":"a=1,b=2","worker":1}"#, "worker"),
        (r#"{"kind":"ulid","stores":"a,b"}"#, "stores"),
        (r#"{"kind":"segment","serial":{},"text":"hex"}"#, "text"),
        (r#"{"kind":"ulid","serial":{}}"#, "serial"),
        (r#"{"kind":"segment","layout":"twitter"}"#, "layout"),
        (r#"{"kind":"uuid","uuid":{"version":2}}"#, "uuid.version"),
        (r#"{"kind":"uuid","uuid":{"version":9}}"#, "uuid.version"),
        (r#"{"kind":"uuid","uuid":{"version":5}}"#, "uuid.namespace"),
        (r#"{"kind":"uuid","uuid":{"version":5,"namespace":"absent"}}"#, "uuid.namespace"),
        (r#"{"kind":"uuid","uuid":{"namespace":"dns"}}"#, "uuid.namespace"),
        (r#"{"kind":"ulid","text":"hex"}"#, "text"),
        (r#"{"offset":1}"#, "offset"),
    ] {
        assert_eq!(refused_key(json), key, "{json}: {}", spec_error(json));
    }
}

#[test]
fn limits_hold_at_the_limit_and_not_one_beyond() {
    for (possible, impossible) in [
        (r#"{"burst":"60000ms"}"#, r#"{"burst":"60001ms"}"#),
        (r#"{"lead_max":"3600000ms"}"#, r#"{"lead_max":"3600001ms"}"#),
        (
            r#"{"on_rollback":"wait","wait_max":"10000ms"}"#,
            r#"{"on_rollback":"wait","wait_max":"10001ms"}"#,
        ),
        (
            r#"{"prefill":{"enabled":true,"boost":12}}"#,
            r#"{"prefill":{"enabled":true,"boost":13}}"#,
        ),
        (
            r#"{"kind":"segment","step":{"min":1099511627776}}"#,
            r#"{"kind":"segment","step":{"min":1099511627777}}"#,
        ),
        (
            r#"{"kind":"segment","step":{"rule":"fixed","size":1099511627776}}"#,
            r#"{"kind":"segment","step":{"rule":"fixed","size":1099511627777}}"#,
        ),
    ] {
        assert!(spec(possible).check().is_ok(), "{possible}");
        assert!(spec(impossible).check().is_err(), "{impossible}");
    }
}

#[test]
fn settings_that_break_the_order_are_rejected() {
    for (keys, word) in [
        (r#""unique":"namespace""#, "unique"),
        (r#""prefill":{"enabled":true}"#, "prefill"),
        (r#""disguise":{"mode":"ordered"}"#, "disguise"),
        (r#""on_rollback":"ring""#, "on_rollback"),
        (r#""on_rollback":"borrow""#, "on_rollback"),
        (r#""layout":"time=41,clock=2,worker=8,sequence=12""#, "clock bits"),
    ] {
        let error = spec_error(&format!(r#"{{"order":"global",{keys}}}"#));
        assert!(error.to_string().contains(word), "{keys}: {error}");
    }
    let plan = spec(r#"{"order":"global"}"#).check().unwrap();
    assert!(matches!(plan, Plan::Snowflake(SnowflakePlan { order: Order::Global, .. })));
}

#[test]
fn identity_has_exactly_the_keys_that_prevent_collisions() {
    let identity = |json| spec(json).identity().unwrap();
    // The same layout by name and written out; keys that may change.
    assert_eq!(
        identity(r#"{"layout":"twitter"}"#),
        identity(
            r#"{"layout":"time=41,worker=10,sequence=12,epoch=1288834974657","burst":"5ms","text":"hex",
            "on_rollback":"fail","enabled":false}"#
        )
    );
    let different = [
        "{}",
        r#"{"layout":"twitter"}"#,
        r#"{"epoch":"2026-01-02T00:00:00Z"}"#,
        r#"{"layout":"time=41,worker=10,sequence=12,unit=10ms"}"#,
        r#"{"unique":"namespace"}"#,
        r#"{"order":"global"}"#,
        r#"{"disguise":{"mode":"full"}}"#,
        r#"{"disguise":{"mode":"full","key":2}}"#,
        r#"{"disguise":{"mode":"full","version":2}}"#,
        r#"{"disguise":{"mode":"full","check":"01"}}"#,
        r#"{"disguise":{"mode":"ordered"}}"#,
        r#"{"kind":"segment"}"#,
        r#"{"kind":"segment","offset":2,"increment":2}"#,
        r#"{"kind":"segment","increment":2}"#,
        r#"{"kind":"segment","increment":2,"first":2}"#,
        r#"{"kind":"segment","increment":2,"first_at":2}"#,
        r#"{"kind":"uuid"}"#,
        r#"{"kind":"ulid"}"#,
    ];
    for (index, one) in different.iter().enumerate() {
        for other in &different[..index] {
            assert_ne!(identity(one), identity(other), "{one} and {other}");
        }
    }
}

#[test]
fn first_is_rounded_to_the_stripe_and_end_is_not_identity() {
    let of = |json| spec(json).canonical().unwrap();
    let canonical = of(r#"{"kind":"segment","offset":2,"increment":3,"first":1000}"#);
    assert_eq!((canonical.first, canonical.first_at, canonical.until), (Some(1001), None, None));
    assert_eq!(of(r#"{"kind":"segment","first":1}"#), of(r#"{"kind":"segment"}"#));
    let identity = |json| spec(json).identity().unwrap();
    assert_eq!(
        identity(r#"{"kind":"segment","until":5}"#),
        identity(r#"{"kind":"segment","until":6}"#)
    );
}

/// A stripe's end comes and goes without making it another source.
#[test]
fn end_of_serials_does_not_change_their_identity() {
    let identity = |json: &str| spec(json).identity().unwrap();
    let plain = identity(r#"{"kind":"segment","serial":{}}"#);
    assert_eq!(identity(r#"{"kind":"segment","serial":{},"until":900}"#), plain);
    assert!(!plain.contains("offset"), "as it was before serials had stripes: {plain}");
    assert_ne!(identity(r#"{"kind":"segment","serial":{},"offset":2,"increment":2}"#), plain);
}
