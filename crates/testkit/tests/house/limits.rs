//! Values of docs/reference/limits.md: each is that of a constant in the code.

use std::fs;

use super::root;

/// File of the constant below `crates`, its name, and the begin of the row that has its value.
const ROWS: [(&str, &str, &str); 38] = [
    ("coord/src/sources/mod.rs", "BATCH_MAX", "IDs of one request"),
    ("coord/src/sources/counter/mod.rs", "RUN_MAX", "IDs of one request"),
    ("coord/src/sources/counter/key.rs", "KEY_BYTES_MAX", "key of a counter"),
    ("coord/src/sources/texts/uuid.rs", "NAME_BYTES_MAX", "name of a UUID"),
    ("coord/src/model/name.rs", "NAME_BYTES_MAX", "name of a source"),
    ("coord/src/model/catalog/mod.rs", "SPEC_BYTES_MAX", "keys of a definition"),
    ("core/src/layout/fields.rs", "UNIT_MS_MAX", "a tick"),
    ("coord/src/spec/plan/snowflake_check.rs", "PREFILL_CAPACITY_MAX", "queue of a prefilled"),
    ("coord/src/ids.rs", "MAX", "a mark; a number of a segment"),
    ("coord/src/model/segment.rs", "NUMBER_MAX", "a mark; a number of a segment"),
    ("coord/src/node/lease.rs", "OTHERS_SLOTS_MAX", "slots held for sources"),
    ("coord/src/node/journal_writer/mod.rs", "KEPT_BYTES_MAX", "ends of segment sources"),
    ("server/src/requests/reading.rs", "HEADER_LINES_MAX", "header lines"),
    ("server/src/port/mod.rs", "STREAMS_MAX", "requests in progress"),
    ("server/src/port/mod.rs", "UNREAD_BYTES_MAX", "unread data of an HTTP/2"),
    ("server/src/port/mod.rs", "ALL_UNREAD_BYTES_MAX", "unread data of an HTTP/2"),
    ("server/src/grpc/status.rs", "MESSAGE_CHARS_MAX", "message of an error"),
    ("server/src/clients/tracker/connection.rs", "UNREAD_MS", "a stopping server's wait"),
    ("server/src/observe/meter/history.rs", "SOURCES_MAX", "sources in `/v1/history`"),
    ("wire/src/resp/protocol.rs", "FRAME_BYTES_MAX", "a request; an argument"),
    ("wire/src/resp/protocol.rs", "BULK_BYTES_MAX", "a request; an argument"),
    ("wire/src/resp/protocol.rs", "ARGS_MAX", "arguments of a request"),
    ("server/src/resp/connection.rs", "UNNAMED_BYTES_MAX", "a request before `AUTH`"),
    ("server/src/resp/transaction.rs", "TRANSACTION_BYTES_MAX", "a transaction"),
    ("server/src/resp/cmd/client/mod.rs", "LABEL_BYTES_MAX", "name of a connection"),
    ("coord/src/model/name.rs", "LABEL_BYTES_MAX", "label of an owner"),
    ("coord/src/model/pool/mod.rs", "CLAIM_COUNT_MAX", "items of one `Extend`"),
    ("coord/src/model/external.rs", "WIDTH_MAX", "CosId's `machineBit`"),
    ("stores/src/legacy/workers.rs", "NUMBERS_MAX", "worker numbers of uid-generator"),
    ("cli/src/cmd/token.rs", "CERTIFICATE_BYTES_MAX", "certificates that `token names`"),
    ("cli/src/terminal/input.rs", "LINE_BYTES_MAX", "a line that `decode`"),
    ("cli/src/unique/key.rs", "TEXT_BYTES_MAX", "text that `verify`"),
    ("client/src/link.rs", "RESPONSE_BYTES_MAX", "a response that a command"),
    ("stores/src/legacy/numbers.rs", "HIGHEST_MAX", "a number that `import`"),
    ("server/src/service/readiness.rs", "NOT_MINTING_MAX", "sources that `not_minting`"),
    ("coord/src/node/tails.rs", "TAILS_MAX", "sources whose tails"),
    ("coord/src/journal/mod.rs", "ASIDE_MAX", "journals set aside"),
    ("core/src/disguise/key.rs", "KEYS_MAX", "keys of a library's"),
];

/// Returns the value of a constant's expression: numbers, `*`, `<<`, and a final `- 1`.
fn value(expression: &str) -> Option<u64> {
    let expression = expression.replace("Self(i64::MAX.unsigned_abs())", "i64::MAX.unsigned_abs()");
    if let Some(more) = expression.strip_suffix(" - 1") {
        return value(more)?.checked_sub(1);
    }
    if let Some((left, right)) = expression.split_once(" << ") {
        return Some(value(left)? << value(right)?);
    }
    let factors = expression.split(" * ").map(|factor| match factor {
        "i64::MAX.unsigned_abs()" => Some(i64::MAX.unsigned_abs()),
        factor => factor.replace('_', "").parse().ok(),
    });
    factors.product()
}

/// Returns the value of a constant that a source declares.
fn declared(source: &str, name: &str) -> Option<u64> {
    let declaration = format!("const {name}: ");
    let (_, after) = source.split_once(&declaration)?;
    let (_, expression) = after.split_once(';')?.0.split_once(" = ")?;
    value(expression)
}

/// Returns how the page may write a value: with commas, as a power of two, or with a unit.
fn writings(value: u64) -> Vec<String> {
    let mut found = vec![super::evidence::written(value)];
    for (unit, size) in [(" KiB", 1 << 10), (" MiB", 1 << 20), (" s", 1_000), (" day", 86_400_000)]
    {
        if value.is_multiple_of(size) {
            found.push(format!("{}{unit}", super::evidence::written(value / size)));
        }
    }
    for less in [0, 1, 2] {
        if let Some(power) = value.checked_add(less).filter(|value| value.is_power_of_two()) {
            let less = if less == 0 { String::new() } else { format!(" - {less}") };
            found.push(format!("2^{}{less}", power.ilog2()));
        }
    }
    found
}

/// Returns whether a cell has a text that neither begins nor ends within a number.
fn has(cell: &str, text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || c == '^';
    cell.match_indices(text).any(|(at, _)| {
        let (before, after) = (&cell[..at], &cell[at + text.len()..]);
        let is_longer = after.starts_with(is_part) || after.starts_with(",0");
        !before.ends_with(|c| is_part(c) || c == ',') && !is_longer
    })
}

#[test]
fn limits_of_the_page_are_those_of_the_code() {
    let page = fs::read_to_string(root().join("docs/reference/limits.md")).unwrap();
    let mut wrong = Vec::new();
    for (file, name, begin) in ROWS {
        let source = fs::read_to_string(root().join("crates").join(file)).unwrap();
        let Some(value) = declared(&source, name) else {
            wrong.push(format!("{file}: {name} has no value that this test can read"));
            continue;
        };
        let row = page.lines().find(|line| line.starts_with(&format!("| {begin}")));
        let Some(cell) = row.and_then(|row| row.split(" | ").nth(1)) else {
            wrong.push(format!("limits.md has no row that begins with {begin:?}"));
            continue;
        };
        if !writings(value).iter().any(|text| has(cell, text)) {
            wrong.push(format!("{file}: {name} is {value}; the row {begin:?} has {cell:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn values_are_read_and_found() {
    let source = "pub const A: u64 = (1);\nconst B: u64 = 4_096;\nconst C: usize = 64 * 1024;";
    assert_eq!(declared(source, "B"), Some(4_096));
    assert_eq!(declared(source, "C"), Some(65_536));
    assert_eq!([declared(source, "A"), declared(source, "D")], [None, None]);
    assert_eq!(value("i64::MAX.unsigned_abs() - 1"), Some((1 << 63) - 2));
    assert_eq!(writings(65_536), ["65,536", "64 KiB", "2^16"]);
    assert_eq!(writings(16_384), ["16,384", "16 KiB", "2^14"]);
    assert!(has("64 KiB; 16 KiB", "64 KiB") && !has("164 KiB", "64 KiB"));
    assert!(!has("1,000,000", "1,000") && !has("16,384", "384") && has("1,000, then", "1,000"));
}
