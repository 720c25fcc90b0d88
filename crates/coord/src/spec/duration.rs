//! Durations in configuration: always a number with its unit, `5s` or `250ms`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Units from the longest: name and length in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Duration in whole milliseconds, written with its unit. A bare number is rejected, so that no
/// reader has to remember a key's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    /// Returns the span of this many milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Returns the length in milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0ms");
        }
        for (unit, unit_ms) in UNITS {
            if self.0.is_multiple_of(unit_ms) {
                return write!(f, "{}{unit}", self.0 / unit_ms);
            }
        }
        write!(f, "{}ms", self.0)
    }
}

/// Error for a text that is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a whole number and its unit (ms, s, m, h or d), such as 250ms or 5s")]
pub struct SpanError;

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let digits_end = text.find(|c: char| !c.is_ascii_digit()).ok_or(SpanError)?;
        let (digits, unit) = text.split_at(digits_end);
        let (_, unit_ms) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or(SpanError)?;
        let count: u64 = digits.parse().map_err(|_| SpanError)?;
        count.checked_mul(unit_ms).map(Self).ok_or(SpanError)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| {
            serde::de::Error::custom(format_args!("{text:?} is not a duration: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_back_as_they_were_written() {
        for ms in [0, 1, 5, 999, 1_000, 1_001, 60_000, 90_000, 3_600_000, 86_400_000, u64::MAX] {
            let span = Span::from_ms(ms);
            assert_eq!(span.to_string().parse(), Ok(span), "{span}");
        }
        assert_eq!(Span::from_ms(90_000).to_string(), "90s");
        assert_eq!(Span::from_ms(7_200_000).to_string(), "2h");
    }

    #[test]
    fn invalid_duration_is_rejected() {
        for text in [
            "",
            "5",
            "s",
            "-5s",
            "+5s",
            "5 s",
            "5S",
            "5sec",
            "1.5s",
            "5s5",
            "٥s",
            "18446744073709551616ms",
            "213503982334602d",
        ] {
            assert_eq!(text.parse::<Span>(), Err(SpanError), "{text:?}");
        }
    }
}
