//! Requests for IDs and ranges, and their responses.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::lines::Lines;

/// The requested count: a whole number of at least 1, in JSON or in digits. A count of digits that
/// exceeds 64 bits is not a format error: it reads as [`Count::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = u64, minimum = 1, maximum = 18_446_744_073_709_551_615_u64))]
#[serde(transparent)]
pub struct Count(u64);

impl Count {
    /// One.
    pub const ONE: Self = Self(1);
    /// A count above every limit.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns this count; `None` for 0.
    #[must_use]
    pub const fn new(count: u64) -> Option<Self> {
        if count == 0 { None } else { Some(Self(count)) }
    }

    /// Returns the count.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Reads digits, as in a query or a command.
    #[must_use]
    pub fn from_digits(digits: &[u8]) -> Option<Self> {
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let count = digits.iter().fold(0u64, |count, digit| {
            count.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        });
        Self::new(count)
    }
}

/// The count of a request that names none.
impl Default for Count {
    fn default() -> Self {
        Self::ONE
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of at least 1")
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Count, E> {
                let wrong = || E::invalid_value(de::Unexpected::Unsigned(count), &self);
                Count::new(count).ok_or_else(wrong)
            }

            fn visit_str<E: de::Error>(self, digits: &str) -> Result<Count, E> {
                let wrong = || E::invalid_value(de::Unexpected::Str(digits), &self);
                Count::from_digits(digits.as_bytes()).ok_or_else(wrong)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// A request for IDs: the body of `POST /v1/ids/{source}`, or the query of `GET`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema, utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct MintRequest {
    /// Number of IDs; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// The key of a counter, or the name from which a UUID of version 3 or 5 is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The form of the IDs, instead of the source's own: `decimal`, `hex`, and so on; `number` for
    /// JSON numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// The response: exactly the requested number of IDs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct IdsBody {
    /// The IDs, in the order in which they were minted.
    #[cfg_attr(feature = "openapi", schema(schema_with = ids_as_sent))]
    pub ids: Vec<String>,
}

/// Returns the schema of the IDs: strings, or numbers for a request with `format=number`.
#[cfg(feature = "openapi")]
fn ids_as_sent() -> utoipa::openapi::schema::Array {
    use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};
    let id = ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Integer]));
    let about = "The IDs, in the order in which they were minted: strings, or JSON numbers if the request has \
        `format=number`.";
    ArrayBuilder::new().items(id).description(Some(about)).build()
}

/// Writes an [`IdsBody`] of decimal numbers, without making a string of each. Unquoted, they are
/// JSON numbers, for callers that requested them.
pub fn write_ids(out: &mut Vec<u8>, ids: &[u64], quoted: bool) {
    out.extend_from_slice(b"{\"ids\":[");
    let lines = if quoted { Lines::new(b"\"", b"\",") } else { Lines::new(b"", b",") };
    lines.append(ids, out);
    if !ids.is_empty() {
        // The last ID has no comma behind it.
        out.pop();
    }
    out.extend_from_slice(b"]}");
}

/// Returns the output of [`write_ids`] for one ID, in quotes, allocated at its exact size.
#[must_use]
pub fn one_id(id: u64) -> Vec<u8> {
    let mut digits = itoa::Buffer::new();
    [b"{\"ids\":[\"", digits.format(id).as_bytes(), b"\"]}"].concat()
}

/// Writes decimal numbers, one a line.
pub fn write_id_lines(out: &mut Vec<u8>, ids: &[u64]) {
    Lines::new(b"", b"\n").append(ids, out);
}

/// Parses a number in these bodies: digits, and nothing else. Rust's own parser would accept a
/// sign.
#[must_use]
pub fn number_in(digits: &str) -> Option<u64> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// The response of `GET /v1/counters/{source}/{key}`, and the body and the response of `PUT`. Every
/// number after a `PUT` is greater than its bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CounterBody {
    /// The highest number that the key may have returned; 0 if there is none.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9]{1,20}$"))]
    pub bound: String,
}

/// The body of `POST /v1/segments/{source}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SegmentRequest {
    /// Count of numbers to reserve.
    pub length: Count,
}

/// A range of numbers reserved for the caller: `first`, `first + increment`, up to `last`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SegmentBody {
    /// The first number.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9]{1,20}$"))]
    pub first: String,
    /// The last number, inclusive.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9]{1,20}$"))]
    pub last: String,
    /// Difference between adjacent numbers.
    pub increment: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(json: &str) -> Result<u64, String> {
        let body = format!("{{\"count\":{json}}}");
        serde_json::from_str::<MintRequest>(&body)
            .map(|request| request.count.unwrap_or_default().get())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn counts_are_whole_and_at_least_one() {
        assert_eq!(count("1"), Ok(1));
        assert_eq!(count("100000"), Ok(100_000));
        assert_eq!(count("\"7\""), Ok(7));
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(count("\"99999999999999999999999\""), Ok(u64::MAX));
        for wrong in [
            "0",
            "-1",
            "1.5",
            "1e18",
            "18446744073709551616",
            "true",
            "[]",
            "\"\"",
            "\"+1\"",
            "\"1e3\"",
        ] {
            let message = count(wrong).unwrap_err();
            assert!(message.contains("a whole number of at least 1"), "{wrong}: {message}");
        }
        assert_eq!(serde_json::from_str::<MintRequest>("{}").unwrap(), MintRequest::default());
        assert!(serde_json::from_str::<MintRequest>("{\"cuont\":5}").is_err());
        assert!(serde_json::from_str::<SegmentRequest>("{}").is_err());
    }

    #[test]
    fn numbers_in_texts_are_digits_alone() {
        for (text, number) in [("0", 0), ("007", 7), ("18446744073709551615", u64::MAX)] {
            assert_eq!(number_in(text), Some(number), "{text}");
        }
        for text in ["", "+5", "-0", " 5", "5\n", "1e3", "0x5", "٥", "18446744073709551616"] {
            assert_eq!(number_in(text), None, "{text:?}");
        }
    }

    #[test]
    fn fast_writer_matches_the_types() {
        for ids in [&[][..], &[0], &[u64::MAX], &[u64::MAX, 1, 7_654_321]] {
            let mut out = Vec::new();
            write_ids(&mut out, ids, true);
            let expected = IdsBody { ids: ids.iter().map(u64::to_string).collect() };
            assert_eq!(serde_json::from_slice::<IdsBody>(&out).unwrap(), expected);
            assert_eq!(out, serde_json::to_vec(&expected).unwrap());
            if let [id] = ids {
                assert_eq!(one_id(*id), out);
            }

            out.clear();
            write_ids(&mut out, ids, false);
            let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(value["ids"], serde_json::json!(ids));

            out.clear();
            write_id_lines(&mut out, ids);
            let lines = String::from_utf8(out).unwrap();
            assert!(lines.lines().map(|line| line.parse::<u64>().unwrap()).eq(ids.iter().copied()));
        }
    }
}
