//! Times for people: formatted and parsed in a chosen zone.

use std::borrow::Cow;
use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use snowmint_core::{Clock as _, Rfc3339, SystemClock, UnixMillis};

use crate::terminal::exit::{Failure, Outcome};

/// Returns the time of the wall clock.
pub(crate) fn now() -> UnixMillis {
    SystemClock.unix_ms()
}

/// Reads the time of an option, in UTC.
pub(crate) fn utc(text: Option<&str>) -> Outcome<Option<UnixMillis>> {
    text.map(|text| Zone::default().read(text)).transpose().map_err(Failure::usage)
}

/// Zone in which times are shown and read: a name such as `Asia/Shanghai`, an offset such as
/// `+08:00`, `UTC`, or `local`.
#[derive(Clone, Debug)]
pub(crate) struct Zone(TimeZone);

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "local" => return Ok(Self(TimeZone::system())),
            "Z" | "z" | "UTC" | "utc" => return Ok(Self::default()),
            _ => {}
        }
        DateTimeParser::new().parse_time_zone(name).map(Self).map_err(|_| {
            format!(
                "unknown time zone {name:?}; use UTC, local, an offset such as +08:00 or a name \
                 such as Asia/Shanghai"
            )
        })
    }
}

impl Zone {
    /// Formats a time as RFC 3339 with milliseconds, in this zone. Years past 9999 are shown in
    /// UTC.
    pub(crate) fn show(&self, time: UnixMillis) -> String {
        i64::try_from(time.get())
            .ok()
            .and_then(|ms| self.show_signed(ms))
            .unwrap_or_else(|| Rfc3339(time).to_string())
    }

    /// Formats a time like [`Zone::show`], also before 1970; `None` for years outside RFC 3339.
    pub(crate) fn show_signed(&self, unix_ms: i64) -> Option<String> {
        let time = Timestamp::from_millisecond(unix_ms).ok()?;
        let zoned = time.to_zoned(self.0.clone());
        if zoned.year() < 0 {
            return None;
        }
        let offset = if self.0 == TimeZone::UTC { "Z" } else { "%:z" };
        jiff::fmt::strtime::format(format!("%Y-%m-%dT%H:%M:%S%.3f{offset}"), &zoned).ok()
    }

    /// Parses a time: RFC 3339 with any offset; a date, with or without a time of day, in this
    /// zone; `@` and Unix milliseconds; or `now`.
    pub(crate) fn read(&self, text: &str) -> Result<UnixMillis, String> {
        if text == "now" {
            return Ok(now());
        }
        if let Some(digits) = text.strip_prefix('@') {
            return digits
                .parse()
                .map(UnixMillis::new)
                .map_err(|_| format!("invalid time {text:?}; write Unix milliseconds after @"));
        }
        match text.parse() {
            Ok(Rfc3339(time)) => return Ok(time),
            // The calendar crate would read the local part, and ignore an offset that it cannot
            // use.
            Err(error)
                if text.get(10..).is_some_and(|rest| rest.contains(['Z', 'z', '+', '-', '['])) =>
            {
                return Err(format!("invalid time {text:?}: {error}"));
            }
            Err(_) => {}
        }
        let zoned: Zoned = text
            .parse::<DateTime>()
            .and_then(|local| local.to_zoned(self.0.clone()))
            .map_err(|_| {
                format!(
                    "invalid time {text:?}; write 2026-01-01T00:00:00Z, 2026-01-01T08:00:00+08:00, \
                     2026-01-01 (with --zone), @1767225600000 (Unix milliseconds) or now"
                )
            })?;
        let ms = zoned.timestamp().as_millisecond();
        u64::try_from(ms)
            .map(UnixMillis::new)
            .map_err(|_| format!("time {text:?} is before 1970; use a later one"))
    }

    /// Returns a friendly text whose time is in this zone as Snowmint writes it, in UTC. CosId
    /// writes it in the zone of its process. Leaves other texts unchanged, which their reader
    /// rejects.
    pub(crate) fn friendly_in_utc<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, String> {
        let digits = text.get(..FRIENDLY_DIGITS).filter(|word| is_digits(word));
        // The calendar crate would read second 60 as 59.
        let digits = digits.filter(|word| word.get(12..14) != Some("60"));
        let (Some(digits), false) = (digits, self.0 == TimeZone::UTC) else {
            return Ok(Cow::Borrowed(text));
        };
        let Ok(local) = DateTime::strptime(FRIENDLY_TIME, digits) else {
            return Ok(Cow::Borrowed(text));
        };
        let zoned = self.0.to_ambiguous_zoned(local).unambiguous().map_err(|_| {
            format!(
                "time {local} of {text:?} comes twice or never in this zone, where clocks change; \
                 name the offset, such as --zone +02:00"
            )
        })?;
        let utc = zoned.timestamp().to_zoned(TimeZone::UTC).datetime();
        let rest = text.get(FRIENDLY_DIGITS..).unwrap_or_default();
        Ok(Cow::Owned(format!("{}{rest}", utc.strftime(FRIENDLY_TIME))))
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Digits of the time in a friendly text: `yyyyMMddHHmmssSSS`.
const FRIENDLY_DIGITS: usize = 17;
const FRIENDLY_TIME: &str = "%Y%m%d%H%M%S%3f";

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Zone {
        name.parse().unwrap()
    }

    #[test]
    fn times_are_shown_in_the_requested_zone() {
        let time = UnixMillis::new(1_462_015_105_796);
        assert_eq!(zone("UTC").show(time), "2016-04-30T11:18:25.796Z");
        assert_eq!(zone("+08:00").show(time), "2016-04-30T19:18:25.796+08:00");
        assert_eq!(zone("-03:30").show(time), "2016-04-30T07:48:25.796-03:30");
        assert_eq!(zone("UTC").show(UnixMillis::ZERO), "1970-01-01T00:00:00.000Z");
        assert_eq!(zone("+08:00").show(UnixMillis::MAX), "+584556019-04-03T14:25:51.615Z");
        assert_eq!(zone("UTC").show_signed(-1).unwrap(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn zones_that_do_not_exist_are_refused() {
        for name in ["", "Middle/Earth", "8", "+26:00", "08:00"] {
            assert!(name.parse::<Zone>().is_err(), "{name}");
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let utc = Zone::default();
        for (text, ms) in [
            ("2026-01-01T00:00:00Z", 1_767_225_600_000),
            ("2026-01-01T08:00:00+08:00", 1_767_225_600_000),
            ("2026-01-01T00:00:00.250Z", 1_767_225_600_250),
            ("2026-01-01", 1_767_225_600_000),
            ("2026-01-01 00:00:01", 1_767_225_601_000),
            ("2026-01-01T00:00", 1_767_225_600_000),
            ("@7", 7),
        ] {
            assert_eq!(utc.read(text), Ok(UnixMillis::new(ms)), "{text}");
        }
        let east = zone("+08:00").read("2026-01-01");
        assert_eq!(east, Ok(UnixMillis::new(1_767_225_600_000 - 8 * 3_600_000)));
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "1767225600000",
            "@-1",
            "@1.5",
            "1969-12-31",
            "2026-01-01T00:00:00+99:00",
        ] {
            assert!(utc.read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn friendly_texts_are_read_in_the_requested_zone() {
        let read = |name: &str, text: &str| zone(name).friendly_in_utc(text).map(Cow::into_owned);
        for (name, text, utc) in [
            // CosId's example.
            ("Asia/Shanghai", "20220320133617924-5-0", "20220320053617924-5-0"),
            ("UTC", "20220320133617924-5-0", "20220320133617924-5-0"),
            ("+08:00", "20220101000000000-5-0", "20211231160000000-5-0"),
            ("Europe/Berlin", "20260701120000001-1", "20260701100000001-1"),
            // Their reader says what is wrong.
            ("Asia/Shanghai", "20221301000000000-5-0", "20221301000000000-5-0"),
            ("Asia/Shanghai", "20220320133660924-5-0", "20220320133660924-5-0"),
            ("Asia/Shanghai", "2022-5-0", "2022-5-0"),
            ("Asia/Shanghai", "ä", "ä"),
        ] {
            assert_eq!(read(name, text), Ok(utc.into()), "{name} {text}");
        }
        // Clocks change in Berlin: 2:30 comes never on one day, and twice on another.
        for text in ["20260329023000000-1-2", "20261025023000000-1-2"] {
            let error = read("Europe/Berlin", text).unwrap_err();
            assert!(error.contains("+02:00"), "{error}");
            assert!(read("+02:00", text).is_ok());
        }
    }
}
