//! Values by which an operator names where a segment source continues: a number of the store, or
//! an ID that was issued.
//!
//! Nothing lowers a number. So a value from which the source could not mint is rejected, and one
//! that looks like a confusion of the two units needs a confirmation.

use std::fmt;

use snowmint_core::UnixMillis;

use crate::error::{Error, Result};
use crate::ids::Mark;
use crate::model::segment::NUMBER_MAX;
use crate::sources::{IdCodec, Keyrings};
use crate::spec::{Hides, Plan, SegmentPlan, SerialPlan};

/// Distance ahead of the clock, in milliseconds, up to which a requested mark, or the period of a
/// serial, needs no confirmation.
pub(super) const DAY_MS: u64 = 86_400_000;
/// Prefix of an issued ID.
const ISSUED: &str = "id:";
/// First time, in Unix milliseconds, of which a number is taken as one of a dated serial: a lower
/// number is most likely that of one period alone. 2000-01-01.
const DATED_MS_MIN: u64 = 946_684_800_000;

/// Text of where a segment source continues: digits are the first number that may be issued;
/// `id:TEXT`, or the text of a serial, is an ID after which it continues.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContinueAt(String);

impl From<Mark> for ContinueAt {
    fn from(next: Mark) -> Self {
        Self(next.get().to_string())
    }
}

impl fmt::Display for ContinueAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ContinueAt {
    /// Takes a text as an operator gives it.
    ///
    /// # Errors
    /// `Invalid` for a text that no source takes.
    pub fn new(text: &str) -> Result<Self> {
        let is_negative = text.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok());
        if text.is_empty() || text == ISSUED || is_negative {
            return Err(Error::invalid(format!(
                "{text:?} is neither a number nor an ID; give the first number that may be \
                 issued, or id:ID for an ID that was"
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns whether it is an issued ID by its prefix, which may need the keys of a disguise.
    #[must_use]
    pub fn is_issued(&self) -> bool {
        self.0.starts_with(ISSUED)
    }

    /// Returns the value for an issued ID.
    ///
    /// # Errors
    /// `Invalid` without an ID.
    pub fn after(id: &str) -> Result<Self> {
        Self::new(&format!("{ISSUED}{id}"))
    }
}

/// A segment source in which a value is looked up.
pub(super) struct Target<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    /// `None` without a definition that this version reads.
    pub(super) plan: Option<&'a SegmentPlan>,
    pub(super) keyrings: &'a Keyrings,
    pub(super) now: UnixMillis,
    /// Whether the operator confirms a value far ahead.
    pub(super) far_ahead: bool,
}

impl Target<'_> {
    /// Returns the number from which the source continues.
    ///
    /// # Errors
    /// `Invalid` for a value from which the source cannot mint.
    pub(super) fn next(&self, value: &ContinueAt) -> Result<Mark> {
        let text = value.0.as_str();
        if let Some(id) = text.strip_prefix(ISSUED) {
            return self.after_text(id);
        }
        let serial = self.plan.and_then(|plan| plan.serial.as_ref());
        if serial.is_some_and(|serial| serial.number_of(text).is_ok()) {
            return self.after_text(text);
        }
        let number: u64 = text.parse().map_err(|_| self.not_a_number(text))?;
        self.check_number(number)?;
        Ok(Mark::new(number))
    }

    /// Returns the number after the one of an issued ID.
    fn after_text(&self, text: &str) -> Result<Mark> {
        let name = self.name;
        let Some(plan) = self.plan else {
            return Err(Error::invalid(format!(
                "ID {text:?} cannot be looked up: segment source {name:?} has no readable \
                 definition here; give its first number that may be issued"
            )));
        };
        if !plan.stores.is_empty() {
            return Err(Error::invalid(format!(
                "ID {text:?} cannot be looked up: source {name:?} has its numbers in several \
                 stores; recover each of them with its own number"
            )));
        }
        let id = match &plan.serial {
            Some(serial) => serial.number_of(text).map_err(|fault| {
                Error::invalid(format!("{text:?} is no serial of source {name:?}: {fault}"))
            })?,
            None => {
                let whole = Plan::Segment(plan.clone());
                let codec = IdCodec::new((self.namespace, name), &whole, self.keyrings)?;
                codec.reveal(name, codec.decode(name, text, None)?)?
            }
        };
        if id > NUMBER_MAX {
            return Err(Error::invalid(format!(
                "ID {text:?} of source {name:?} is above {NUMBER_MAX}, the maximum; correct it"
            )));
        }
        let next = plan.stripe.number_from(id.saturating_add(1));
        if let Some(serial) = &plan.serial {
            self.check_period(serial, id, text)?;
        }
        Ok(Mark::new(next))
    }

    fn not_a_number(&self, text: &str) -> Error {
        let name = self.name;
        let serial = self.plan.and_then(|plan| plan.serial.as_ref());
        Error::invalid(match serial.map(|serial| serial.number_of(text)) {
            Some(Err(fault)) => format!(
                "{text:?} is neither a number nor a serial of source {name:?}: {fault}; give the \
                 last serial that was issued"
            ),
            _ => format!(
                "{text:?} is no whole number below 2^64; give the first number that source \
                 {name:?} may issue, or id:ID for an ID that was issued"
            ),
        })
    }

    /// Rejects a number from which the source cannot mint.
    fn check_number(&self, number: u64) -> Result<()> {
        let name = self.name;
        let Some(plan) = self.plan else { return Ok(()) };
        // The number after the last one shows a source that has issued all.
        let end = plan.stripe.number_from(self.last_id(plan).saturating_add(1));
        if number > end {
            return Err(Error::invalid(format!(
                "number {number} of source {name:?} is beyond its last one, {}; give the first \
                 number that may be issued, or id:ID for an ID that was issued",
                end.saturating_sub(1)
            )));
        }
        if let Some(bits) = hidden_bits(plan) {
            let half = 1_u64 << (bits - 1);
            if number > half && !self.far_ahead {
                return Err(Error::invalid(format!(
                    "number {number} of source {name:?} leaves less than half of its numbers, \
                     limit {half}, and may be a disguised ID; give an ID as id:ID, or confirm the \
                     number (--far-ahead, \"far_ahead\": true)"
                )));
            }
        }
        let Some(serial) = plan.serial.as_ref().filter(|_| number > 1) else { return Ok(()) };
        let next = plan.stripe.next(number).unwrap_or(number);
        let last = plan.stripe.last(number);
        let in_period = |id: &u64| serial.text_of(serial.of(*id).first).is_some();
        let Some(id) = [Some(next), last].into_iter().flatten().find(in_period) else {
            return Err(self.in_no_period(number, serial));
        };
        let oldest = serial.at(UnixMillis::new(DATED_MS_MIN));
        let is_short = oldest.is_ok_and(|oldest| serial.of(id).end < oldest.first);
        if is_short {
            return Err(self.in_no_period(number, serial));
        }
        self.check_period(serial, id, &number.to_string())
    }

    /// Returns the highest ID that the source can have.
    fn last_id(&self, plan: &SegmentPlan) -> u64 {
        match (&plan.serial, hidden_bits(plan)) {
            (Some(serial), _) => serial.id_max(),
            (None, Some(bits)) => ((1_u64 << bits) - 1).min(NUMBER_MAX),
            (None, None) => NUMBER_MAX,
        }
    }

    fn in_no_period(&self, number: u64, serial: &SerialPlan) -> Error {
        let example = serial.at(self.now).ok().and_then(|now| serial.text_of(now.first));
        let example = example.map_or_else(String::new, |text| format!(", such as {text}"));
        Error::invalid(format!(
            "number {number} of source {:?} is in no period of its serials: they begin at {} \
             today. Give the last serial that was issued{example}",
            self.name,
            serial.at(self.now).map_or(1, |now| now.first)
        ))
    }

    /// Rejects a serial of a later period than the next day's: all days until then would have none.
    fn check_period(&self, serial: &SerialPlan, id: u64, given: &str) -> Result<()> {
        if self.far_ahead {
            return Ok(());
        }
        let Ok(latest) = serial.at(self.now.saturating_add(DAY_MS)) else { return Ok(()) };
        let period = serial.of(id);
        if period.first <= latest.first {
            return Ok(());
        }
        let date = serial.parts_of(period.first).period.unwrap_or_default();
        Err(Error::invalid(format!(
            "{given} of source {:?} lies in period {date}, more than a day ahead of this clock; \
             correct it or the clock, or confirm that no earlier serial follows (--far-ahead, \
             \"far_ahead\": true)",
            self.name
        )))
    }
}

/// Returns the number of bits of a disguise that hides the order of IDs.
fn hidden_bits(plan: &SegmentPlan) -> Option<u8> {
    match plan.disguise?.hides {
        Hides::All { bits } => Some(bits.unwrap_or(63).clamp(1, 63)),
        Hides::BelowTime => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::SourceSpec;

    /// 2026-11-29T12:00:00Z.
    const NOW: UnixMillis = UnixMillis::new(1_795_953_600_000);

    fn next_of(spec: &str, value: &str, far_ahead: bool) -> Result<u64> {
        let spec: SourceSpec = serde_json::from_str(spec).unwrap();
        let Plan::Segment(plan) = spec.check().unwrap() else { panic!("{spec:?}") };
        let key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
        let keyrings =
            Keyrings::from([(1, crate::sources::DisguiseKeys::new(key.parse().unwrap()))]);
        let (namespace, name, plan) = ("ids", "bills", Some(&plan));
        let target = Target { namespace, name, plan, keyrings: &keyrings, now: NOW, far_ahead };
        target.next(&ContinueAt::new(value)?).map(Mark::get)
    }

    fn refused(spec: &str, value: &str, parts: &[&str]) {
        let error = next_of(spec, value, false).expect_err(value).to_string();
        for part in parts {
            assert!(error.contains(part), "{value}: {part} is not in {error}");
        }
    }

    const DAILY: &str =
        r#"{"kind":"segment","serial":{"prefix":"INV-","date":"yyyyMMdd","width":6}}"#;
    /// Number before the first one of 2026-11-29: day 20,786 after 1970-01-01.
    const TODAY: u64 = 20_786_000_000;

    #[test]
    fn an_issued_id_is_followed_by_the_next_one() {
        let plain = r#"{"kind":"segment"}"#;
        let striped = r#"{"kind":"segment","offset":2,"increment":3}"#;
        let moved = r#"{"kind":"segment","offset":5,"increment":16,"first":101,"first_at":101}"#;
        let base32 = r#"{"kind":"segment","text":"base32"}"#;
        let undated = r#"{"kind":"segment","serial":{"prefix":"A"}}"#;
        let digits = r#"{"kind":"segment","serial":{"date":"yyyy","width":4}}"#;
        let striped_daily = r#"{"kind":"segment","offset":2,"increment":3,
            "serial":{"prefix":"INV-","date":"yyyyMMdd","width":6}}"#;
        for (spec, value, next) in [
            (plain, "100", 100),
            (plain, "id:100", 101),
            (plain, "9223372036854775807", NUMBER_MAX + 1),
            (striped, "100", 100),
            (striped, "id:299", 101),
            // Another stripe's ID, which lies between two of its own.
            (striped, "id:300", 101),
            (moved, "id:117", 103),
            (base32, "id:39", 106),
            (undated, "A000005", 6),
            (undated, "id:A000005", 6),
            (undated, "6", 6),
            (undated, "1000000", 1_000_000),
            (digits, "20260007", 20_260_008),
            (DAILY, "INV-20261129000005", TODAY + 6),
            (DAILY, "id:INV-20261129000005", TODAY + 6),
            (DAILY, "INV-20261130000005", TODAY + 1_000_006),
            (DAILY, "INV-20261129999999", TODAY + 1_000_000),
            (DAILY, "20786000006", TODAY + 6),
            (DAILY, "1", 1),
            (striped_daily, "INV-20261129000005", (TODAY + 6) / 3 + 1),
        ] {
            assert_eq!(next_of(spec, value, false).unwrap(), next, "{spec} {value}");
        }
    }

    #[test]
    fn value_from_which_nothing_could_be_minted_is_rejected() {
        let last = "INV-20261129000001";
        // The digits of a serial; a number of one day alone; beyond the last date.
        refused(DAILY, "20261129000005", &["20261129000005", "in no period", last, "20786000001"]);
        refused(DAILY, "6", &["number 6 ", "in no period", last]);
        refused(DAILY, "9223372036854775807", &["in no period", last]);
        refused(DAILY, "INV-20261129", &["INV-20261129", "INV-yyyyMMdd and 6 digits"]);
        refused(DAILY, "id:20786000006", &["20786000006", "INV-yyyyMMdd and 6 digits"]);
        refused(DAILY, "INV-20261201000001", &["2026-12-01", "more than a day ahead"]);
        assert!(next_of(DAILY, "INV-20261201000001", true).is_ok());
        refused(DAILY, &(TODAY + 2_000_001).to_string(), &["2026-12-01", "--far-ahead"]);
        let undated = r#"{"kind":"segment","serial":{"prefix":"A"}}"#;
        refused(undated, "1000001", &["1000001", "beyond its last one, 999999"]);
        let striped = r#"{"kind":"segment","offset":2,"increment":3}"#;
        refused(striped, "9223372036854775806", &["beyond its last one, 3074457345618258602"]);
        let plain = r#"{"kind":"segment"}"#;
        for text in ["x5", "18446744073709551616"] {
            refused(plain, text, &[text, "no whole number below 2^64", "id:ID"]);
        }
        refused(plain, "id:9223372036854775807", &["9223372036854775807", "9223372036854775806"]);
        for text in ["", "id:", "-5"] {
            refused(plain, text, &["neither a number nor an ID"]);
        }
        let parts = r#"{"kind":"segment","stores":"a,b"}"#;
        refused(parts, "id:100", &["several stores"]);
    }

    /// The highest disguised ID is none of the highest numbers.
    #[test]
    fn disguised_id_is_no_number() {
        let full = r#"{"kind":"segment","disguise":{"mode":"full"}}"#;
        let spec: SourceSpec = serde_json::from_str(full).unwrap();
        let key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
        let keys = Keyrings::from([(1, crate::sources::DisguiseKeys::new(key.parse().unwrap()))]);
        let codec = IdCodec::new(("ids", "bills"), &spec.check().unwrap(), &keys).unwrap();
        let shown = (1..=50).map(|id| codec.show("bills", id).unwrap()).max().unwrap();
        let id = codec.reveal("bills", shown).unwrap();
        assert_eq!(next_of(full, &format!("id:{shown}"), false).unwrap(), id + 1);
        refused(full, &shown.to_string(), &["may be a disguised ID", "id:ID"]);
        assert_eq!(next_of(full, &shown.to_string(), true).unwrap(), shown);
        assert_eq!(next_of(full, "51", false).unwrap(), 51);
    }
}
