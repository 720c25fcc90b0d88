//! Serials: a prefix, the date of a period, and a number that restarts with each period.
//!
//! A serial is another form of one of the store's numbers. The numbers are divided into periods of
//! 10^width each: number 7 of the period with the ordinal 20,000 is 20,000 * 10^width + 7. So the
//! store's one mark, which never falls, shows the source's period and its last number. No (period,
//! number) comes twice, and decoding a text needs no store.
//!
//! If several stores share the numbers, each has a stripe of all of them, and so of every
//! period. In whatever period each of them is, two never make the same serial.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use snowmint_core::UnixMillis;

use crate::model::segment::NUMBER_MAX;
use crate::spec::bounds::SERIAL_WIDTH;
use crate::spec::error::{SpecError, value, within};
use crate::spec::kind::SerialReset;
use crate::spec::source_spec::SerialSpec;

const WIDTH_DEFAULT: u8 = 6;
const PREFIX_BYTES_MAX: usize = 32;
/// Date forms, and the period that each shows.
const FORMS: [(&str, SerialReset); 8] = [
    ("yyyyMMdd", SerialReset::Day),
    ("yyyy-MM-dd", SerialReset::Day),
    ("yyMMdd", SerialReset::Day),
    ("yyyyMM", SerialReset::Month),
    ("yyyy-MM", SerialReset::Month),
    ("yyMM", SerialReset::Month),
    ("yyyy", SerialReset::Year),
    ("yy", SerialReset::Year),
];
/// Day from which periods are counted.
const EPOCH: Date = Date::constant(1970, 1, 1);

/// Serials in which everything is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialPlan {
    prefix: String,
    /// One of [`FORMS`]; empty without periods.
    form: &'static str,
    zone: TimeZone,
    zone_name: String,
    width: u8,
    reset: SerialReset,
}

/// Numbers of one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Lowest number.
    pub first: u64,
    /// Number after the highest one. No period has this number.
    pub end: u64,
}

/// Decoded parts of a serial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialParts {
    /// Date of its period, in full (`2026-11-21`, `2026-11` or `2026`); `None` without periods.
    pub period: Option<String>,
    /// Number in the period.
    pub number: u64,
}

impl SerialPlan {
    pub(super) fn check(spec: &SerialSpec) -> Result<Self, SpecError> {
        let prefix = spec.prefix.clone().unwrap_or_default();
        if prefix.len() > PREFIX_BYTES_MAX || !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
            let reason =
                format!("take up to {PREFIX_BYTES_MAX} letters, digits and signs of ASCII");
            return Err(value("serial.prefix", prefix, reason));
        }
        let width = spec.width.unwrap_or(WIDTH_DEFAULT);
        within("serial.width", width, &SERIAL_WIDTH, " digits")?;
        let (form, reset) = form(spec.date.as_deref())?;
        if let Some(wanted) = spec.reset.filter(|wanted| *wanted != reset) {
            let forms = FORMS.iter().filter(|(_, dates)| *dates == wanted);
            let forms: Vec<_> = forms.map(|(form, _)| *form).collect();
            let fitting = if forms.is_empty() { "none".into() } else { forms.join(", ") };
            let reason =
                format!("a serial shows the date of its period: take serial.date = {fitting}");
            return Err(value("serial.reset", wanted.name(), reason));
        }
        let zone_name = spec.zone.clone().unwrap_or_else(|| "UTC".into());
        let zone = TimeZone::get(&zone_name).map_err(|_| {
            value("serial.zone", &zone_name, "take the IANA name of a time zone, as Europe/Berlin")
        })?;
        Ok(Self { prefix, form, zone, zone_name, width, reset })
    }

    pub(super) fn to_spec(&self) -> SerialSpec {
        SerialSpec {
            prefix: Some(self.prefix.clone()),
            date: (!self.form.is_empty()).then(|| self.form.into()),
            zone: Some(self.zone_name.clone()),
            width: Some(self.width),
            reset: Some(self.reset),
        }
    }

    /// Rejects so high a count of stripes that some would have no number in a period.
    pub(super) fn check_stripes(&self, stripes: u64) -> Result<(), SpecError> {
        let most = self.number_max();
        if stripes <= most {
            return Ok(());
        }
        let reason = format!(
            "a period has the numbers 1 to {most}, of which each of {stripes} stripes needs one"
        );
        Err(value("serial.width", self.width, reason))
    }

    /// Returns how many of the store's numbers each period takes up.
    const fn capacity(&self) -> u64 {
        // At most 10^12.
        10_u64.pow(self.width as u32)
    }

    /// Returns the highest number of a period.
    #[must_use]
    pub const fn number_max(&self) -> u64 {
        self.capacity() - 1
    }

    /// Returns a number that no number with a serial exceeds.
    #[must_use]
    pub const fn id_max(&self) -> u64 {
        match self.reset {
            SerialReset::Never => self.number_max(),
            _ => NUMBER_MAX,
        }
    }

    /// Returns the period of this time.
    ///
    /// # Errors
    /// The fault of the time: it lies before 1970, or after the years that the date can show.
    pub fn at(&self, time: UnixMillis) -> Result<Period, String> {
        let ms = i64::try_from(time.get()).map_err(|_| format!("{time} has no date"))?;
        let time = jiff::Timestamp::from_millisecond(ms).map_err(|error| error.to_string())?;
        self.dated(self.zone.to_datetime(time).date()).map(|ordinal| self.period(ordinal))
    }

    /// Returns the period that one of the store's numbers lies in.
    #[must_use]
    pub const fn of(&self, number: u64) -> Period {
        self.period(number / self.capacity())
    }

    const fn period(&self, ordinal: u64) -> Period {
        let before = ordinal.saturating_mul(self.capacity());
        let end = before.saturating_add(self.capacity());
        Period { first: before.saturating_add(1), end }
    }

    /// Returns the ordinal of the period that this day lies in.
    fn dated(&self, date: Date) -> Result<u64, String> {
        let short_year = self.form.starts_with("yy") && !self.form.starts_with("yyyy");
        let years = if short_year { 2000..=2099 } else { 1970..=9999 };
        if !years.contains(&date.year()) && self.reset != SerialReset::Never {
            let (from, to) = (years.start(), years.end());
            return Err(format!("{date} has no {}: years {from} to {to} have", self.form));
        }
        let year = i64::from(date.year());
        let ordinal = match self.reset {
            SerialReset::Never => 0,
            SerialReset::Year => year,
            SerialReset::Month => year * 12 + i64::from(date.month()) - 1,
            SerialReset::Day => days_until(date),
        };
        u64::try_from(ordinal).map_err(|_| format!("{date} lies before {EPOCH}"))
    }

    /// Returns the first day of a period.
    fn date_of(&self, ordinal: u64) -> Option<Date> {
        let ordinal = i64::try_from(ordinal).ok()?;
        let day = |year: i64, month: i64| {
            Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, 1).ok()
        };
        match self.reset {
            SerialReset::Never => None,
            SerialReset::Year => day(ordinal, 1),
            SerialReset::Month => day(ordinal / 12, ordinal % 12 + 1),
            SerialReset::Day => EPOCH.checked_add(jiff::Span::new().try_days(ordinal).ok()?).ok(),
        }
    }

    /// Returns the serial of one of the store's numbers; `None` for a number that no period has.
    #[must_use]
    pub fn text_of(&self, number: u64) -> Option<String> {
        let (ordinal, rest) = (number / self.capacity(), number % self.capacity());
        if rest == 0 || (self.reset == SerialReset::Never && ordinal > 0) {
            return None;
        }
        let mut text = self.prefix.clone();
        if self.reset != SerialReset::Never {
            let date = self.date_of(ordinal)?;
            self.dated(date).ok()?;
            write_date(&mut text, self.form, date);
        }
        let width = usize::from(self.width);
        text.push_str(&format!("{rest:0width$}"));
        Some(text)
    }

    /// Returns the store's number of a serial.
    ///
    /// # Errors
    /// The fault of the text.
    pub fn number_of(&self, text: &str) -> Result<u64, String> {
        let width = usize::from(self.width);
        let shape = || {
            let mut shape = self.prefix.clone();
            shape.push_str(self.form);
            format!("it must be {shape} and {width} digits")
        };
        let rest = text.strip_prefix(self.prefix.as_str()).ok_or_else(shape)?;
        let (date, digits) = rest.split_at_checked(self.form.len()).ok_or_else(shape)?;
        if digits.len() != width || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(shape());
        }
        let number: u64 = digits.parse().map_err(|_| shape())?;
        if number == 0 {
            return Err("the first number is 1".into());
        }
        let ordinal = match self.reset {
            SerialReset::Never => 0,
            _ => self.dated(read_date(date, self.form).ok_or_else(shape)?)?,
        };
        Ok(ordinal.saturating_mul(self.capacity()).saturating_add(number))
    }

    /// Returns the parts of one of the store's numbers.
    #[must_use]
    pub fn parts_of(&self, number: u64) -> SerialParts {
        let (ordinal, number) = (number / self.capacity(), number % self.capacity());
        let mut period = String::new();
        let whole = match self.reset {
            SerialReset::Never => None,
            SerialReset::Year => Some("yyyy"),
            SerialReset::Month => Some("yyyy-MM"),
            SerialReset::Day => Some("yyyy-MM-dd"),
        };
        if let (Some(form), Some(date)) = (whole, self.date_of(ordinal)) {
            write_date(&mut period, form, date);
        }
        SerialParts { period: Some(period).filter(|period| !period.is_empty()), number }
    }
}

fn form(given: Option<&str>) -> Result<(&'static str, SerialReset), SpecError> {
    let Some(given) = given.filter(|given| !given.is_empty()) else {
        return Ok(("", SerialReset::Never));
    };
    FORMS.into_iter().find(|(form, _)| *form == given).ok_or_else(|| {
        let forms: Vec<_> = FORMS.iter().map(|(form, _)| *form).collect();
        value("serial.date", given, format!("take one of {}, or none", forms.join(", ")))
    })
}

fn days_until(date: Date) -> i64 {
    // Both are dates: no rounding, no overflow.
    EPOCH.until(date).map_or(-1, |span| i64::from(span.get_days()))
}

/// Returns the parts of a form, in order: years, months, days, and literal text.
fn parts(form: &str) -> impl Iterator<Item = &str> {
    let mut rest = form;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest.find(|c| c != first).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        Some(part)
    })
}

fn write_date(text: &mut String, form: &str, date: Date) {
    for part in parts(form) {
        text.push_str(&match part {
            "yyyy" => format!("{:04}", date.year()),
            "yy" => format!("{:02}", date.year() % 100),
            "MM" => format!("{:02}", date.month()),
            "dd" => format!("{:02}", date.day()),
            literal => literal.into(),
        });
    }
}

fn read_date(text: &str, form: &str) -> Option<Date> {
    let (mut year, mut month, mut day, mut rest) = (0_i16, 1_i8, 1_i8, text);
    for part in parts(form) {
        let (written, after) = rest.split_at_checked(part.len())?;
        rest = after;
        let digits = written.bytes().all(|byte| byte.is_ascii_digit());
        match part {
            "yyyy" if digits => year = written.parse().ok()?,
            "yy" if digits => year = written.parse::<i16>().ok()?.checked_add(2000)?,
            "MM" if digits => month = written.parse().ok()?,
            "dd" if digits => day = written.parse().ok()?,
            literal if written == literal => {}
            _ => return None,
        }
    }
    Date::new(year, month, day).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(json: &str) -> SerialPlan {
        SerialPlan::check(&serde_json::from_str(json).unwrap()).unwrap()
    }

    fn time(text: &str) -> UnixMillis {
        let time: jiff::Timestamp = text.parse().unwrap();
        UnixMillis::new(u64::try_from(time.as_millisecond()).unwrap())
    }

    #[test]
    fn a_serial_is_prefix_date_and_number_and_reads_back() {
        let noon = time("2026-11-21T12:00:00Z");
        for (json, first, last, period) in [
            (r#"{"prefix":"INV-"}"#, "INV-000001", "INV-999999", None),
            (
                r#"{"date":"yyyyMMdd","width":4}"#,
                "202611210001",
                "202611219999",
                Some("2026-11-21"),
            ),
            (
                r#"{"prefix":"7","date":"yyyy-MM-dd","width":1}"#,
                "72026-11-211",
                "72026-11-219",
                Some("2026-11-21"),
            ),
            (r#"{"date":"yyMMdd","width":2}"#, "26112101", "26112199", Some("2026-11-21")),
            (r#"{"date":"yyyyMM","width":3}"#, "202611001", "202611999", Some("2026-11")),
            (r#"{"date":"yyyy-MM","width":3}"#, "2026-11001", "2026-11999", Some("2026-11")),
            (r#"{"date":"yyMM","width":3}"#, "2611001", "2611999", Some("2026-11")),
            (r#"{"date":"yyyy","width":3}"#, "2026001", "2026999", Some("2026")),
            (r#"{"date":"yy","width":12}"#, "26000000000001", "26999999999999", Some("2026")),
        ] {
            let plan = plan(json);
            let Period { first: low, end } = plan.at(noon).unwrap();
            for (number, text) in [(low, first), (end - 1, last)] {
                assert_eq!(plan.text_of(number).as_deref(), Some(text), "{json}");
                assert_eq!(plan.number_of(text), Ok(number), "{json}");
                assert_eq!(plan.parts_of(number).period.as_deref(), period, "{json}");
                assert_eq!(plan.of(number), plan.at(noon).unwrap());
            }
            assert_eq!(plan.parts_of(low).number, 1);
            assert_eq!(plan.parts_of(end - 1).number, plan.number_max());
            assert_eq!(plan.text_of(end), None, "between two periods lies a number that none has");
            assert!(end < NUMBER_MAX);
            assert_eq!(SerialPlan::check(&plan.to_spec()), Ok(plan));
        }
    }

    #[test]
    fn invalid_serial_is_rejected() {
        let plan = plan(r#"{"prefix":"A-","date":"yyyyMMdd","width":4}"#);
        assert!(plan.number_of("A-202602280001").is_ok());
        for text in [
            "",
            "A-",
            "202602280001",
            "B-202602280001",
            "A-20260228001",
            "A-2026022800001",
            "A-202602280000",
            "A-202602290001",
            "A-202613010001",
            "A-20260228000x",
            "A-20260228+001",
            "A-2026022八0001",
            "A-196912310001",
            " A-202602280001",
        ] {
            let refused = plan.number_of(text);
            assert!(refused.is_err(), "{text:?} is {refused:?}");
        }
    }

    /// The first millisecond of a day and the last one before it, in hours after midnight UTC.
    #[test]
    fn days_begin_at_local_midnight_with_daylight_saving() {
        let berlin = plan(r#"{"date":"yyyyMMdd","zone":"Europe/Berlin","width":2}"#);
        let date = |plan: &SerialPlan, at: UnixMillis| {
            plan.parts_of(plan.at(at).unwrap().first).period.unwrap()
        };
        for (begins, day, before) in [
            ("2026-03-28T23:00:00Z", "2026-03-29", "2026-03-28"),
            // A day of 23 hours.
            ("2026-03-29T22:00:00Z", "2026-03-30", "2026-03-29"),
            ("2026-10-24T22:00:00Z", "2026-10-25", "2026-10-24"),
            // A day of 25 hours.
            ("2026-10-25T23:00:00Z", "2026-10-26", "2026-10-25"),
            ("2027-12-31T23:00:00Z", "2028-01-01", "2027-12-31"),
            ("2028-02-28T23:00:00Z", "2028-02-29", "2028-02-28"),
        ] {
            let begins = time(begins);
            assert_eq!(date(&berlin, begins), day);
            assert_eq!(date(&berlin, UnixMillis::new(begins.get() - 1)), before);
        }
        let month = plan(r#"{"date":"yyyyMM","zone":"Asia/Tokyo","width":2}"#);
        assert_eq!(date(&month, time("2026-01-31T14:59:59.999Z")), "2026-01");
        assert_eq!(date(&month, time("2026-01-31T15:00:00Z")), "2026-02");
    }

    #[test]
    fn periods_rise_and_do_not_touch() {
        for date in ["yyyyMMdd", "yyyyMM", "yyyy"] {
            let plan = plan(&format!(r#"{{"date":"{date}","width":2}}"#));
            let mut last = plan.at(UnixMillis::new(0)).unwrap();
            for day in 1..3_000 {
                let next = plan.at(UnixMillis::new(day * 86_400_000)).unwrap();
                assert!(next == last || next.first == last.end + 1, "{date}: {last:?} {next:?}");
                last = next;
            }
        }
    }

    #[test]
    fn years_that_the_date_cannot_show_are_refused() {
        let short = plan(r#"{"date":"yyMMdd"}"#);
        assert!(short.at(time("1999-12-31T23:59:59Z")).is_err());
        assert!(short.at(time("2000-01-01T00:00:00Z")).is_ok());
        assert!(short.at(time("2099-12-31T23:59:59Z")).is_ok());
        assert!(short.at(time("2100-01-01T00:00:00Z")).is_err());
        let far = UnixMillis::new(u64::MAX);
        assert!(short.at(far).is_err() && plan("{}").at(far).is_err());
        assert_eq!(
            plan("{}").at(time("1999-12-31T23:59:59Z")),
            Ok(Period { first: 1, end: 1_000_000 })
        );
    }
}
