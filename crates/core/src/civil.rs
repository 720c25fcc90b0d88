//! Calendar dates without a calendar crate: whole numbers only, UTC only.
//!
//! Leap seconds are not counted, as in Unix time. The Gregorian rule is applied to all years.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "every value is bounded: 64 bits of milliseconds are below 2^38 days and 2^30 years, and parsed fields have at most 4 digits"
)]

use core::fmt;
use core::str::FromStr;

use crate::time::UnixMillis;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: u64 = 719_468;
/// Days in the 400 years after which the calendar repeats.
const ERA_DAYS: u64 = 146_097;

/// A UTC date and time of day, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: u64,
    pub(crate) month: u64,
    pub(crate) day: u64,
    pub(crate) hour: u64,
    pub(crate) minute: u64,
    pub(crate) second: u64,
    pub(crate) milli: u64,
}

impl Civil {
    pub(crate) const fn from_unix(time: UnixMillis) -> Self {
        let (days, rest_ms) = (time.get() / DAY_MS, time.get() % DAY_MS);
        // A year that starts in March has its leap day last, so that month lengths need no table.
        let shifted = days + DAYS_TO_1970;
        let (era, day_of_era) = (shifted / ERA_DAYS, shifted % ERA_DAYS);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let january_or_february = if month <= 2 { 1 } else { 0 };
        Self {
            year: era * 400 + year_of_era + january_or_february,
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: rest_ms / HOUR_MS,
            minute: rest_ms / MINUTE_MS % 60,
            second: rest_ms / SECOND_MS % 60,
            milli: rest_ms % SECOND_MS,
        }
    }

    /// Returns the Unix time of this date and time of day in UTC.
    pub(crate) fn to_unix_utc(self) -> Result<UnixMillis, TimeError> {
        self.to_unix(Offset::UTC)
    }

    /// Returns the Unix time of this date and time of day at a UTC offset.
    fn to_unix(self, offset: Offset) -> Result<UnixMillis, TimeError> {
        for (part, value, min, max) in [
            ("month", self.month, 1, 12),
            ("day", self.day, 1, days_in_month(self.year, self.month)),
            ("hour", self.hour, 0, 23),
            ("minute", self.minute, 0, 59),
            ("second", self.second, 0, 59),
        ] {
            if value < min || value > max {
                return Err(TimeError::Part { part, value, min, max });
            }
        }
        // An offset moves the date by less than a day, so nothing before 1969 can be after 1970.
        if self.year < 1_969 {
            return Err(TimeError::Before1970);
        }
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let (era, year_of_era) = (year / 400, year % 400);
        let month_from_march = (self.month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let local_ms = (era * ERA_DAYS + day_of_era) * DAY_MS
            + self.hour * HOUR_MS
            + self.minute * MINUTE_MS
            + self.second * SECOND_MS
            + self.milli;
        let utc_ms = match offset {
            Offset::EastMs(ms) => local_ms - ms,
            Offset::WestMs(ms) => local_ms + ms,
        };
        let ms = utc_ms.checked_sub(DAYS_TO_1970 * DAY_MS).ok_or(TimeError::Before1970)?;
        Ok(UnixMillis::new(ms))
    }
}

/// A UTC offset: the difference between local clocks and UTC, less than a day.
#[derive(Clone, Copy, Debug)]
enum Offset {
    /// Local clocks are ahead of UTC by this many milliseconds.
    EastMs(u64),
    /// Local clocks are behind UTC by this many milliseconds.
    WestMs(u64),
}

impl Offset {
    const UTC: Self = Self::EastMs(0);
}

const fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// A time as RFC 3339 writes it, in UTC: `2016-04-30T11:18:25.796Z`.
///
/// `{}` writes milliseconds; `{:.0}` writes whole seconds and drops the fraction. Years past 9999,
/// which RFC 3339 cannot write, get the plus sign of ISO 8601: `+12345-01-01T00:00:00.000Z`.
///
/// Parsing takes any offset (`+08:00`), upper or lower case letters, a space for the `T`, and a
/// fraction no finer than a millisecond.
///
/// ```
/// use snowmint_core::{Rfc3339, UnixMillis};
/// let time: Rfc3339 = "2016-05-20T00:00:00+08:00".parse()?;
/// assert_eq!(time.0, UnixMillis::new(1_463_673_600_000));
/// assert_eq!(std::format!("{time}"), "2016-05-19T16:00:00.000Z");
/// # Ok::<(), snowmint_core::TimeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rfc3339(pub UnixMillis);

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day, hour, minute, second, milli } = Civil::from_unix(self.0);
        if year > 9_999 {
            f.write_str("+")?;
        }
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if f.precision() != Some(0) {
            write!(f, ".{milli:03}")?;
        }
        f.write_str("Z")
    }
}

/// The error of a text that is not a time this crate can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeError {
    /// The text does not have the shape of RFC 3339.
    Shape {
        /// Number of valid bytes before the error.
        position: usize,
        /// The element expected at this position.
        expected: &'static str,
    },
    /// A part is outside its range.
    Part {
        /// Name of the part.
        part: &'static str,
        /// The value that was given.
        value: u64,
        /// The lowest allowed value.
        min: u64,
        /// The highest allowed value.
        max: u64,
    },
    /// The fraction has nonzero digits beyond the millisecond.
    FinerThanMillisecond,
    /// The time is before 1970, which an unsigned count cannot hold.
    Before1970,
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shape { position, expected } => write!(
                f,
                "expected {expected} at byte {position}: write a time as 2026-01-01T00:00:00Z, or with an offset such as +08:00"
            ),
            Self::Part { part, value, min, max } => {
                write!(f, "{part} {value} is out of range, allowed are {min} to {max}")
            }
            Self::FinerThanMillisecond => f.write_str("times are no finer than one millisecond"),
            Self::Before1970 => f.write_str("times before 1970-01-01T00:00:00Z are not possible"),
        }
    }
}

impl core::error::Error for TimeError {}

impl FromStr for Rfc3339 {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let mut reader = Reader { bytes: text.as_bytes(), position: 0 };
        let year = reader.digits(4, "four-digit year")?;
        reader.one_of(b"-", "`-`")?;
        let month = reader.digits(2, "two-digit month")?;
        reader.one_of(b"-", "`-`")?;
        let day = reader.digits(2, "two-digit day")?;
        reader.one_of(b"Tt ", "`T`")?;
        let hour = reader.digits(2, "two-digit hour")?;
        reader.one_of(b":", "`:`")?;
        let minute = reader.digits(2, "two-digit minute")?;
        reader.one_of(b":", "`:`")?;
        let second = reader.digits(2, "two-digit second")?;
        let milli = if reader.peek() == Some(b'.') { reader.fraction()? } else { 0 };
        let offset = reader.offset()?;
        reader.end()?;
        Civil { year, month, day, hour, minute, second, milli }.to_unix(offset).map(Self)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    const fn shape(&self, expected: &'static str) -> TimeError {
        TimeError::Shape { position: self.position, expected }
    }

    fn one_of(&mut self, allowed: &[u8], expected: &'static str) -> Result<u8, TimeError> {
        match self.peek() {
            Some(byte) if allowed.contains(&byte) => {
                self.position += 1;
                Ok(byte)
            }
            _ => Err(self.shape(expected)),
        }
    }

    fn digit(&mut self) -> Option<u64> {
        let byte = self.peek()?;
        if !byte.is_ascii_digit() {
            return None;
        }
        self.position += 1;
        Some(u64::from(byte - b'0'))
    }

    fn digits(&mut self, count: usize, expected: &'static str) -> Result<u64, TimeError> {
        let start = Self { bytes: self.bytes, position: self.position };
        let mut value = 0;
        for _ in 0..count {
            value = value * 10 + self.digit().ok_or_else(|| start.shape(expected))?;
        }
        Ok(value)
    }

    /// Reads the fraction from its point on: milliseconds, and only zeros after them.
    fn fraction(&mut self) -> Result<u64, TimeError> {
        self.one_of(b".", "`.`")?;
        let mut milli = 0;
        let mut weight = 100;
        let mut some = false;
        while let Some(digit) = self.digit() {
            some = true;
            if weight == 0 && digit != 0 {
                return Err(TimeError::FinerThanMillisecond);
            }
            milli += digit * weight;
            weight /= 10;
        }
        if some { Ok(milli) } else { Err(self.shape("digit of a fraction")) }
    }

    fn offset(&mut self) -> Result<Offset, TimeError> {
        let sign = match self.one_of(b"Zz+-", "offset: `Z`, `+hh:mm` or `-hh:mm`")? {
            b'+' => Offset::EastMs,
            b'-' => Offset::WestMs,
            _ => return Ok(Offset::UTC),
        };
        let hours = self.digits(2, "two-digit offset hour")?;
        self.one_of(b":", "`:`")?;
        let minutes = self.digits(2, "two-digit offset minute")?;
        for (part, value, max) in [("offset hour", hours, 23), ("offset minute", minutes, 59)] {
            if value > max {
                return Err(TimeError::Part { part, value, min: 0, max });
            }
        }
        Ok(sign(hours * HOUR_MS + minutes * MINUTE_MS))
    }

    fn end(&self) -> Result<(), TimeError> {
        if self.position == self.bytes.len() { Ok(()) } else { Err(self.shape("end")) }
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::ToString;

    use super::*;

    #[test]
    fn known_instants_convert_both_ways() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_288_834_974_657, "2010-11-04T01:42:54.657Z"),
            (1_462_015_105_796, "2016-04-30T11:18:25.796Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Rfc3339(UnixMillis::new(ms)).to_string(), text);
            assert_eq!(text.parse(), Ok(Rfc3339(UnixMillis::new(ms))));
        }
    }

    #[test]
    fn every_day_of_eight_centuries_goes_both_ways() {
        let mut last = (1969, 12, 31);
        for day in 0..292_194_u64 {
            let time = UnixMillis::new(day * DAY_MS + 1);
            let civil = Civil::from_unix(time);
            let date = (civil.year, civil.month, civil.day);
            assert!(date > last, "{date:?} after {last:?}");
            assert_eq!(civil.to_unix_utc(), Ok(time));
            last = date;
        }
        assert_eq!(last, (2769, 12, 31));
    }

    #[test]
    fn the_last_time_of_all_is_written() {
        assert_eq!(Rfc3339(UnixMillis::MAX).to_string(), "+584556019-04-03T14:25:51.615Z");
        assert_eq!(format!("{:.0}", Rfc3339(UnixMillis::ZERO)), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn offsets_are_taken_off() {
        let utc: Rfc3339 = "2019-12-31T16:00:00Z".parse().unwrap();
        for text in [
            "2020-01-01T00:00:00+08:00",
            "2019-12-31 16:00:00z",
            "2019-12-31t12:30:00.000000-03:30",
        ] {
            assert_eq!(text.parse(), Ok(utc), "{text}");
        }
    }

    #[test]
    fn invalid_texts_give_position_and_reason() {
        let shape = |position, expected| TimeError::Shape { position, expected };
        let part = |part, value, min, max| TimeError::Part { part, value, min, max };
        for (text, error) in [
            ("", shape(0, "four-digit year")),
            ("2026", shape(4, "`-`")),
            ("2026-1-01T00:00:00Z", shape(5, "two-digit month")),
            ("2026-01-01", shape(10, "`T`")),
            ("2026-01-01T00:00:00", shape(19, "offset: `Z`, `+hh:mm` or `-hh:mm`")),
            ("2026-01-01T00:00:00Zx", shape(20, "end")),
            ("2026-01-01T00:00:00.Z", shape(20, "digit of a fraction")),
            ("2026-01-01T00:00:00.0001Z", TimeError::FinerThanMillisecond),
            ("2026-13-01T00:00:00Z", part("month", 13, 1, 12)),
            ("2026-02-29T00:00:00Z", part("day", 29, 1, 28)),
            ("2100-02-29T00:00:00Z", part("day", 29, 1, 28)),
            ("2026-04-00T00:00:00Z", part("day", 0, 1, 30)),
            ("2026-01-01T24:00:00Z", part("hour", 24, 0, 23)),
            ("2016-12-31T23:59:60Z", part("second", 60, 0, 59)),
            ("2026-01-01T00:00:00+24:00", part("offset hour", 24, 0, 23)),
            ("1970-01-01T00:00:00+00:01", TimeError::Before1970),
            ("0000-01-01T00:00:00Z", TimeError::Before1970),
        ] {
            assert_eq!(text.parse::<Rfc3339>(), Err(error), "{text}");
        }
    }
}
