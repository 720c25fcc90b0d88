//! Random choices from one seed, and changes that a hostile program makes to well-formed bytes.

use fastrand::Rng;

/// Numbers on the edges of the types that protocols carry, and numbers that people use.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "-1",
    "10",
    "1000",
    "1001",
    "65535",
    "65536",
    "2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "1e9",
    "0x10",
    "01",
    "+5",
    "NaN",
    "",
];

/// Names of sources that exist, that do not exist, and that are not allowed.
const NAMES: &[&str] = &[
    "default",
    "fuzz-a",
    "fuzz-b",
    "fuzz-serial",
    "fuzz-count",
    "fuzz-count:k",
    "nowhere",
    "other",
    "",
    "a/b",
    "..",
    "%00",
    "\u{1b}[2J",
    "naïve",
    "fuzz-\u{202e}x",
    "*",
    "name with spaces",
];

pub fn one_of<'a, T: ?Sized>(rng: &mut Rng, all: &[&'a T]) -> &'a T {
    all[rng.usize(..all.len())]
}

pub fn number(rng: &mut Rng) -> String {
    match rng.u8(..4) {
        0 => rng.u64(..).to_string(),
        1 => rng.u8(..).to_string(),
        _ => one_of(rng, NUMBERS).to_owned(),
    }
}

pub fn name(rng: &mut Rng) -> String {
    match rng.u8(..8) {
        0 => bytes(rng, 300).iter().map(|byte| char::from(*byte)).collect(),
        1 => "n".repeat(rng.usize(..5_000)),
        // Few names: each defined source keeps memory, and their number must not rise for an hour.
        2 => format!("fuzz-{}", rng.u8(..64)),
        _ => one_of(rng, NAMES).to_owned(),
    }
}

pub fn bytes(rng: &mut Rng, most: usize) -> Vec<u8> {
    let length = rng.usize(..=most);
    (0..length).map(|_| rng.u8(..)).collect()
}

/// Changes some bytes of `whole`: flips, cuts, repeats, insertions.
pub fn spoil(rng: &mut Rng, whole: &mut Vec<u8>) {
    for _ in 0..rng.usize(1..5) {
        let at = rng.usize(..=whole.len());
        match rng.u8(..6) {
            0 if at < whole.len() => whole[at] ^= 1 << rng.u8(..8),
            1 => whole.truncate(at),
            2 if at < whole.len() => whole[at] = rng.u8(..),
            3 => {
                let more = bytes(rng, 40);
                whole.splice(at..at, more);
            }
            4 => {
                let again = whole[at..(at + rng.usize(..60)).min(whole.len())].to_vec();
                whole.splice(at..at, again);
            }
            _ => whole.extend(bytes(rng, 20)),
        }
    }
}

/// Returns a JSON value of any shape, with the keys that bodies have.
pub fn json(rng: &mut Rng, depth: u8) -> serde_json::Value {
    const KEYS: &[&str] = &[
        "name", "layout", "kind", "count", "key", "format", "step", "value", "worker", "disguise",
        "stores", "stripe", "period", "prefill", "unique", "until", "start", "mint", "lead_max",
        "version", "at_least", "confirm", "upstream", "external", "order", "unknown",
    ];
    const TEXTS: &[&str] = &[
        "twitter", "serial", "counter", "time", "base62", "day", "global", "default", "1s", "-1h",
        "store",
    ];
    match rng.u8(..if depth == 0 { 5 } else { 9 }) {
        0 => serde_json::Value::Null,
        1 => rng.bool().into(),
        2 => serde_json::from_str(&number(rng)).unwrap_or_else(|_| 7.into()),
        3 => name(rng).into(),
        4 => one_of(rng, TEXTS).to_owned().into(),
        5 => (0..rng.u8(..6)).map(|_| json(rng, depth - 1)).collect(),
        _ => {
            (0..rng.u8(..8)).map(|_| (one_of(rng, KEYS).to_owned(), json(rng, depth - 1))).collect()
        }
    }
}
