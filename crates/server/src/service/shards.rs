//! Sentences about how evenly `id % N` spreads IDs over N shards.

use serde_json::{Map, Value};
use snowmint_core::Layout;
use snowmint_core::generator::shards_max;
use snowmint_core::layout::Field;

/// Returns the sentence about a layout whose ticks begin at sequence number 0.
#[must_use]
pub fn of_layout(layout: &Layout) -> String {
    let most = shards_max(layout);
    match layout.shift(Field::Sequence) {
        0 => {
            let one_shard = one_shard_up_to(layout.shift(Field::Time));
            format!(
                "while a process mints few IDs a tick, id % N is the same for nearly all of them \
                 for N = {one_shard}: set the key shards to spread them over any N up to {most}"
            )
        }
        below_bits => {
            let one_shard = one_shard_up_to(below_bits);
            format!(
                "id % N depends on the worker alone for N = {one_shard}: set the key shards to \
                 spread IDs over any odd N up to {most}"
            )
        }
    }
}

/// Returns the powers of two up to that of `bits`.
fn one_shard_up_to(bits: u8) -> String {
    match bits {
        1 => "2".into(),
        2 => "2, 4".into(),
        _ => format!("2, 4, ... {}", 1_u128 << bits),
    }
}

/// Returns the sentence about a source with these keys; `None` if its IDs are no numbers, or each
/// key of it has numbers of its own.
#[must_use]
pub fn of_source(keys: &Map<String, Value>) -> Option<String> {
    let text = |key: &str| keys.get(key).and_then(Value::as_str);
    let disguise = keys.get("disguise").and_then(|table| table.get("mode")).and_then(Value::as_str);
    let is_disguised = disguise.is_some_and(|mode| mode != "none");
    match text("kind")? {
        "snowflake" | "segment" if is_disguised => {
            Some("the disguise spreads IDs over any N by chance".into())
        }
        "segment" if keys.contains_key("serial") => None,
        "segment" => Some(match keys.get("increment").and_then(Value::as_u64) {
            Some(increment) if increment > 1 => format!(
                "numbers are {increment} apart: id % N takes turns over all N only if N and \
                 {increment} have no common factor"
            ),
            _ => "numbers follow each other: id % N takes turns over any N".into(),
        }),
        "snowflake" => {
            if let Some(shards) = keys.get("shards").and_then(Value::as_u64) {
                return Some(format!(
                    "IDs take turns over id % {shards}: in each process, counts differ by 1 at most"
                ));
            }
            let layout: Layout = text("layout")?.parse().ok()?;
            Some(match text("sequence_start") {
                Some(start) if start != "zero" => format!(
                    "sequence_start = {start} spreads id % N by chance; set the key shards to \
                     spread evenly over one N"
                ),
                _ => of_layout(&layout),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(keys: &Value) -> Option<String> {
        of_source(keys.as_object().unwrap())
    }

    #[test]
    fn layouts_name_the_shards_that_all_ids_share() {
        let sentence = of_layout(&Layout::TWITTER);
        assert!(
            sentence.contains("N = 2, 4, ... 4194304:") && sentence.ends_with("up to 4096"),
            "{sentence}"
        );
        let sentence = of_layout(&Layout::SONYFLAKE);
        assert!(sentence.contains("worker alone for N = 2, 4, ... 65536:"), "{sentence}");
        assert!(sentence.ends_with("odd N up to 255"), "{sentence}");
        let layout: Layout = "time=62,sequence=1".parse().unwrap();
        assert!(of_layout(&layout).contains("for N = 2: set the key"), "{}", of_layout(&layout));
    }

    #[test]
    fn sources_say_what_spreads_their_ids() {
        let layout = "time=41,worker=10,sequence=12";
        for (keys, part) in [
            (serde_json::json!({"kind": "snowflake", "layout": layout}), "the same for nearly all"),
            (
                serde_json::json!({"kind": "snowflake", "layout": layout, "shards": 16}),
                "turns over id % 16",
            ),
            (
                serde_json::json!(
                    {"kind": "snowflake", "layout": layout, "sequence_start": "random:100"}
                ),
                "random:100 spreads id % N by chance",
            ),
            (
                serde_json::json!(
                    {"kind": "snowflake", "layout": layout, "disguise": {"mode": "ordered"}}
                ),
                "the disguise spreads",
            ),
            (serde_json::json!({"kind": "segment", "increment": 1}), "turns over any N"),
            (serde_json::json!({"kind": "segment", "increment": 6}), "N and 6 have no common"),
        ] {
            let sentence = of(&keys).unwrap();
            assert!(sentence.contains(part), "{keys}: {sentence}");
        }
        for keys in [
            serde_json::json!({"kind": "uuid"}),
            serde_json::json!({"kind": "counter"}),
            serde_json::json!({"kind": "segment", "serial": {}}),
        ] {
            assert_eq!(of(&keys), None, "{keys}");
        }
    }
}
