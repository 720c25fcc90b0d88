//! Ages of IDs, for people.

use std::fmt;

use snowmint_core::UnixMillis;

/// Distance of a time from now, shown in the two largest units that are not zero.
#[derive(Clone, Copy, Debug)]
pub struct Age {
    /// Milliseconds since the time; negative for future times.
    ms: i128,
}

impl Age {
    /// Returns the distance of a time from `now`.
    #[must_use]
    pub fn at(time: UnixMillis, now: UnixMillis) -> Self {
        Self { ms: i128::from(now.get()) - i128::from(time.get()) }
    }

    /// Returns the distance of a time in Unix milliseconds, which may lie before 1970, from `now`.
    #[must_use]
    pub fn of_signed(unix_ms: i64, now: UnixMillis) -> Self {
        Self { ms: i128::from(now.get()) - i128::from(unix_ms) }
    }

    /// Returns an age of `ms` milliseconds.
    #[must_use]
    pub fn from_ms(ms: i64) -> Self {
        Self { ms: ms.into() }
    }

    /// Returns the milliseconds, negative for future times, clamped to 64 bits.
    #[must_use]
    pub fn ms(self) -> i64 {
        i64::try_from(self.ms).unwrap_or(if self.ms < 0 { i64::MIN } else { i64::MAX })
    }
}

/// Units of an age, from the largest, in ms; a year is a mean Gregorian one.
const UNITS: [(&str, u128); 6] = [
    ("year", 31_556_952_000),
    ("day", 86_400_000),
    ("hour", 3_600_000),
    ("minute", 60_000),
    ("second", 1_000),
    ("ms", 1),
];

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.ms.unsigned_abs();
        if rest == 0 {
            return f.write_str("now");
        }
        if self.ms < 0 {
            f.write_str("in ")?;
        }
        let mut written = 0;
        for (unit, unit_ms) in UNITS {
            let count = rest / unit_ms;
            rest %= unit_ms;
            if count == 0 {
                // "3 years 5 ms" would look more exact than the age is.
                if written > 0 {
                    break;
                }
                continue;
            }
            let (space, plural) = (
                if written > 0 { " " } else { "" },
                if count == 1 || unit == "ms" { "" } else { "s" },
            );
            write!(f, "{space}{count} {unit}{plural}")?;
            written += 1;
            if written == 2 {
                break;
            }
        }
        if self.ms > 0 { f.write_str(" ago") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_two_units() {
        let now = UnixMillis::new(1_000_000_000_000);
        for (before_ms, text) in [
            (0_u64, "now"),
            (1, "1 ms ago"),
            (999, "999 ms ago"),
            (1_500, "1 second 500 ms ago"),
            (61_000, "1 minute 1 second ago"),
            (86_400_000 * 2 + 1, "2 days ago"),
            (31_556_952_000 * 10 + 86_400_000 * 204, "10 years 204 days ago"),
        ] {
            assert_eq!(Age::at(now.saturating_sub(before_ms), now).to_string(), text);
        }
        assert_eq!(Age::at(now.saturating_add(7_200_000), now).to_string(), "in 2 hours");
        assert_eq!(Age::at(UnixMillis::MAX, now).ms(), i64::MIN);
    }
}
