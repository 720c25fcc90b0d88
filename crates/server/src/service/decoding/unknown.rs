//! The content of an ID of which only the text is known.

use snowmint_core::UnixMillis;
use snowmint_core::text::{Format, Radix};
use uuid::{Uuid, Variant};

use super::foreign_id::ForeignId;
use super::id::{Id, read};
use super::reading::LayoutReading;
use super::readings::readings;
use super::uuid_facts::{UuidFacts, unix_ms};
use crate::error::shown;

/// Forms of numbers that a reader cannot distinguish from each other by sight.
const RADIXES: [Radix; 5] =
    [Radix::Hex, Radix::Base36, Radix::Base62, Radix::Base32, Radix::Base58];

/// Content of an ID of which only the text is known.
#[derive(Debug, Default)]
pub(crate) struct UnknownId {
    /// Number of a decimal text.
    pub(crate) number: Option<u64>,
    /// Name of the form, if the ID is no number.
    pub(crate) kind: Option<&'static str>,
    pub(crate) uuid_version: Option<u8>,
    pub(crate) time: Option<UnixMillis>,
    /// Other parts of such an ID, by name.
    pub(crate) more: Vec<(&'static str, String)>,
    /// Readings of a number, the most plausible first.
    pub(crate) readings: Vec<FormReading>,
}

/// A number of a text, as one layout reads it.
#[derive(Debug)]
pub struct FormReading {
    /// Form of the text, and its number; `None` for a text of which the form is known.
    pub form: Option<(Format, u64)>,
    /// The number's reading.
    pub reading: LayoutReading,
}

/// Returns the content of an ID in the given form, or else in any. A text that several forms of a
/// number share has the plausible readings of each; a decimal number, and one in the given form, has
/// those of all layouts.
///
/// # Errors
/// When no form, or not the given one, has this text; the message quotes it.
pub(crate) fn read_unknown(
    text: &str,
    format: Option<Format>,
    now: UnixMillis,
) -> Result<UnknownId, String> {
    match read(text, format, None) {
        Ok(Id::Number(number)) => {
            let decimal = |reading| FormReading { form: None, reading };
            let readings = readings(number, now).into_iter().map(decimal).collect();
            Ok(UnknownId { number: Some(number), readings, ..UnknownId::default() })
        }
        Ok(Id::Uuid(uuid)) => Ok(of_uuid(uuid)),
        Ok(Id::Ulid(ulid)) => {
            let more = [("random", Some(format!("{:020x}", ulid.random())))];
            Ok(of_kind("ULID", Some(ulid.timestamp_ms()), more))
        }
        Ok(Id::Foreign(id)) => Ok(of_foreign(id)),
        Err(error) if format.is_some() => Err(error),
        Err(error) => match plausible_by_form(text, now) {
            // About digits, the error of the decimal form says most.
            found if found.is_empty() && is_decimal(text) => Err(error),
            found if found.is_empty() => Err(format!(
                "invalid ID {}: no plausible number in hex, base36, base62, base32 or base58, and \
                 no UUID, ULID, ObjectId, KSUID, xid or push ID of Firebase; correct it, or name \
                 its source",
                shown(text)
            )),
            readings => Ok(UnknownId { readings, ..UnknownId::default() }),
        },
    }
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the plausible readings of the text by each form of a number that it may have, the most
/// plausible first.
#[must_use]
pub fn plausible_by_form(text: &str, now: UnixMillis) -> Vec<FormReading> {
    // A text of full length without a leading zero has both forms of a radix, and one number.
    let of_radix = |radix: &Radix| {
        let mut forms = [Format::Number(*radix), Format::Padded(*radix)].into_iter();
        forms.find_map(|format| Some((format, format.decode(text, None).ok()?)))
    };
    let mut found: Vec<FormReading> = RADIXES
        .iter()
        .filter_map(of_radix)
        .flat_map(|form| {
            let of_form = move |reading| FormReading { form: Some(form), reading };
            readings(form.1, now).into_iter().map(of_form)
        })
        .filter(|found| found.reading.plausible)
        .collect();
    found.sort_by_key(|found| found.reading.rank());
    found
}

fn of_uuid(uuid: Uuid) -> UnknownId {
    let standard = uuid.get_variant() == Variant::RFC4122;
    let version = if standard { uuid.get_version_num() } else { 0 };
    let facts = UuidFacts::of(uuid, version);
    let node = facts.node.map(|node| match facts.mac_shows {
        Some(true) => format!("{node}, a real MAC address"),
        _ => format!("{node}, random"),
    });
    let dce = facts.dce.map(|dce| format!("{} in domain {}", dce.number, dce.domain));
    let more = [
        ("version", Some(facts.version.to_owned())),
        ("variant", Some(facts.variant.to_owned())),
        ("node", node),
        ("clock sequence", facts.clock_sequence.map(|sequence| sequence.to_string())),
        ("number", dce),
    ];
    // A time before 1970 has no form here; the command line shows it.
    let unix_ms = unix_ms(uuid, version).and_then(|ms| u64::try_from(ms).ok());
    UnknownId {
        uuid_version: standard.then(|| u8::try_from(version).ok()).flatten(),
        ..of_kind("UUID", unix_ms, more)
    }
}

fn of_foreign(id: ForeignId) -> UnknownId {
    let more = [
        ("machine", id.machine),
        ("process", id.process.map(|process| process.to_string())),
        ("counter", id.counter.map(|counter| counter.to_string())),
        ("random", id.random),
    ];
    of_kind(id.kind, Some(id.unix_ms), more)
}

fn of_kind<const N: usize>(
    kind: &'static str,
    unix_ms: Option<u64>,
    more: [(&'static str, Option<String>); N],
) -> UnknownId {
    UnknownId {
        kind: Some(kind),
        time: unix_ms.map(UnixMillis::new),
        more: more.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
        ..UnknownId::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use snowmint_core::Rfc3339;

    use super::*;

    fn at(text: &str) -> Result<UnknownId, String> {
        in_form(text, None)
    }

    fn in_form(text: &str, format: Option<Format>) -> Result<UnknownId, String> {
        read_unknown(text, format, "2026-11-20T00:00:00Z".parse::<Rfc3339>().unwrap().0)
    }

    #[test]
    fn numbers_have_the_readings_of_all_layouts() {
        let id = at("1541815603606036480").unwrap();
        assert_eq!(id.number, Some(1_541_815_603_606_036_480));
        let named = |name: &str| id.readings.iter().find(|found| found.reading.name == name);
        assert!(named("twitter").unwrap().reading.plausible);
        assert!(!named("sonyflake").unwrap().reading.plausible);
        assert!(id.readings.is_sorted_by_key(|found| found.reading.rank()));
    }

    #[test]
    fn texts_have_the_plausible_readings_of_each_form() {
        for (text, form) in [("1ptWyK4WgZU", "base62"), ("1565a11f6217a000", "hex")] {
            let id = at(text).unwrap();
            assert_eq!((id.number, id.kind), (None, None), "{text}");
            assert!(id.readings.iter().all(|found| found.reading.plausible), "{text}");
            let of_form = |found: &FormReading| {
                found.form.is_some_and(|(format, number)| {
                    format.name() == form && number == 1_541_815_603_606_036_480
                })
            };
            assert!(id.readings.iter().any(of_form), "{text}: {:?}", id.readings);
            let number = |found: &FormReading| (found.form.unwrap().1, found.reading.name.clone());
            let once: BTreeSet<_> = id.readings.iter().map(number).collect();
            assert_eq!(once.len(), id.readings.len(), "{text}: {:?}", id.readings);
        }
    }

    #[test]
    fn text_in_a_named_form_is_read_in_no_other() {
        let base62 = Some(Format::Number(Radix::Base62));
        let id = in_form("1ptWyK4WgZU", base62).unwrap();
        assert_eq!(id.number, Some(1_541_815_603_606_036_480));
        assert!(id.readings.iter().any(|found| !found.reading.plausible), "as of a decimal number");
        assert_eq!(
            in_form("1541815603606036480", Some(Format::default())).unwrap().number,
            id.number
        );
        for (text, format, part) in [
            (
                "1ptWyK4WgZU",
                Some(Format::Number(Radix::Hex)),
                "invalid ID \"1ptWyK4WgZU\" in hex: 'p'",
            ),
            ("01ARZ3NDEKTSV4RRFFQ69G5FAV", base62, "in base62: 26 characters are too many"),
            ("1", Some(Format::Friendly), "name the layout"),
        ] {
            let error = in_form(text, format).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn forms_of_other_systems_show_their_parts() {
        let id = at("017F22E2-79B0-7CC3-98C4-DC0C0C07398F").unwrap();
        assert_eq!((id.kind, id.uuid_version), (Some("UUID"), Some(7)));
        assert_eq!(id.time, Some(UnixMillis::new(1_645_557_742_000)));
        let id = at("9m4e2mr0ui3e8a215n4g").unwrap();
        assert_eq!((id.kind, &id.more[0]), (Some("xid"), &("machine", "60f486".to_owned())));
        assert!(at("01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap().time.is_some());
        // Before 1970.
        assert_eq!(at("00000000-0000-1000-8000-000000000000").unwrap().time, None);
        for text in ["", "😀", "\u{1b}[2J", "not an id!", "18446744073709551616"] {
            assert!(at(text).unwrap_err().starts_with("invalid ID"), "{text}");
        }
    }
}
