//! IDs as text: a number in one of the text forms, a UUID, a ULID, or an ID of another system.

use snowmint_core::Layout;
use snowmint_core::layout::{Field, ReadableLayout};
use snowmint_core::text::{Format, Radix, decode_signed};
use ulid::Ulid;
use uuid::Uuid;

use super::foreign_id::ForeignId;
use crate::error::shown;

/// Kinds of IDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Id {
    /// A number of 64 bits.
    Number(u64),
    /// 128 bits, with a version and a variant.
    Uuid(Uuid),
    /// 48 bits of milliseconds, and 80 of randomness.
    Ulid(Ulid),
    /// An ID of another system.
    Foreign(ForeignId),
}

/// Length of a ULID. Its letters do not include those that Crockford's base32 reads as digits.
const ULID_LENGTH: usize = ulid::ULID_LEN;

/// Length of the text of a TSID: 64 bits in Crockford's base 32.
const TSID_LENGTH: usize = 13;

/// Longest shortcode of 64 bits: 6 bits a character.
const SHORTCODE_LENGTH_MAX: usize = 11;

/// Reads an ID. Without a format, accepts only forms that are distinct from each other: decimal
/// numbers, negative ones too, and the forms that a reader recognises by sight.
///
/// # Errors
/// When the text has no such form; the message quotes it.
pub fn read(
    text: &str,
    format: Option<Format>,
    layout: Option<&ReadableLayout>,
) -> Result<Id, String> {
    if let Some(format) = format {
        return read_number(text, format, layout).map(Id::Number);
    }
    let refused = |reason: &dyn std::fmt::Display| format!("invalid ID {}: {reason}", shown(text));
    let decimal = decode_signed(text);
    if let Ok(number) = decimal {
        return Ok(Id::Number(number));
    }
    if let Some(id) = recognised(text, layout) {
        return Ok(id);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    match decimal {
        // Its error says more about digits than a list of forms.
        Err(error) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            Err(refused(&error))
        }
        _ => Err(refused(
            &"expected a decimal number, UUID, ULID, ObjectId, KSUID, xid, push ID of Firebase or \
              TSID; name another form with --format; a shortcode of Instagram needs --layout \
              instagram",
        )),
    }
}

/// Reads a number of a layout in a form that is recognised by sight, or else in decimal.
///
/// # Errors
/// Those of [`read_number`].
pub(crate) fn read_number_by_sight(text: &str, layout: &ReadableLayout) -> Result<u64, String> {
    match read(text, None, Some(layout)) {
        Ok(Id::Number(number)) => Ok(number),
        _ => read_number(text, Format::default(), Some(layout)),
    }
}

/// Reads a number in a form; a decimal one may be negative.
///
/// # Errors
/// When the text has not this form; the message quotes it, and names the form.
pub(crate) fn read_number(
    text: &str,
    format: Format,
    layout: Option<&ReadableLayout>,
) -> Result<u64, String> {
    let layout = layout.filter(|_| format.needs_layout()).map(mintable).transpose()?;
    let number = match format {
        _ if format == Format::default() => decode_signed(text),
        _ => format.decode(text, layout.as_ref()),
    };
    number.map_err(|error| format!("invalid ID {} in {format}: {error}", shown(text)))
}

/// Returns the layout of friendly forms, which only layouts that mint have.
fn mintable(layout: &ReadableLayout) -> Result<Layout, String> {
    layout
        .mintable()
        .map_err(|error| format!("friendly forms need a layout that can mint: {error}"))
}

/// Reads the forms that are recognised without `--format`.
fn recognised(text: &str, layout: Option<&ReadableLayout>) -> Option<Id> {
    if let Some(ulid) = read_ulid(text) {
        return Some(Id::Ulid(ulid));
    }
    if let Ok(uuid) = Uuid::try_parse(text) {
        return Some(Id::Uuid(uuid));
    }
    if let Some(foreign) = ForeignId::read(text) {
        return Some(Id::Foreign(foreign));
    }
    let time_bits = layout.filter(|layout| layout.total_bits() == 64 && layout.is_by_time());
    match time_bits.map(|layout| layout.bits(Field::Time)) {
        Some(41) => read_shortcode(text).map(Id::Number),
        Some(42) => read_tsid(text).map(Id::Number),
        None if layout.is_none() => read_tsid(text).map(Id::Number),
        _ => None,
    }
}

/// Reads the text of a TSID, in upper or lower case.
fn read_tsid(text: &str) -> Option<u64> {
    // Digits alone are rather a number with leading zeros.
    let is_text = text.len() == TSID_LENGTH && text.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    let upper = if is_lower { text.to_ascii_uppercase() } else { text.to_owned() };
    is_text.then(|| Radix::Base32.decode_padded(&upper).ok()).flatten()
}

/// Reads a shortcode of Instagram, the part of the address after `/p/`.
fn read_shortcode(text: &str) -> Option<u64> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    if text.is_empty() || text.len() > SHORTCODE_LENGTH_MAX {
        return None;
    }
    let number = text.bytes().try_fold(0_u128, |number, byte| {
        Some(number << 6 | DIGITS.iter().position(|digit| *digit == byte)? as u128)
    })?;
    u64::try_from(number).ok()
}

/// Reads a ULID in upper or lower case. Rejects ULIDs beyond the end of their time, which the crate
/// would cut to 128 bits.
#[must_use]
pub fn read_ulid(text: &str) -> Option<Ulid> {
    if text.len() != ULID_LENGTH || !matches!(text.as_bytes().first(), Some(b'0'..=b'7')) {
        return None;
    }
    let ulid = Ulid::from_string(text).ok()?;
    // Each ID has one text: letters that stand for digits are rejected.
    let mut buffer = [0; ULID_LENGTH];
    ulid.array_to_str(&mut buffer).eq_ignore_ascii_case(text).then_some(ulid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_that_cannot_be_mistaken_are_recognised() {
        assert_eq!(
            read("175928847299117063", None, None).unwrap(),
            Id::Number(175_928_847_299_117_063)
        );
        assert_eq!(read("18446744073709551615", None, None).unwrap(), Id::Number(u64::MAX));
        let uuid = Uuid::try_parse("01939c2b-5a3b-7cc4-8f3d-6b4f5d2a1c9e").unwrap();
        for text in [
            "01939c2b-5a3b-7cc4-8f3d-6b4f5d2a1c9e",
            "01939C2B-5A3B-7CC4-8F3D-6B4F5D2A1C9E",
            "01939c2b5a3b7cc48f3d6b4f5d2a1c9e",
            "{01939c2b-5a3b-7cc4-8f3d-6b4f5d2a1c9e}",
            "urn:uuid:01939c2b-5a3b-7cc4-8f3d-6b4f5d2a1c9e",
        ] {
            assert_eq!(read(text, None, None).unwrap(), Id::Uuid(uuid), "{text}");
        }
        for text in ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01arz3ndektsv4rrffq69g5fav"] {
            assert!(matches!(read(text, None, None).unwrap(), Id::Ulid(_)), "{text}");
        }
        assert_eq!(
            read("7n42dgm5tflk", Some(Format::Number(Radix::Base62)), None).ok(),
            Format::Number(Radix::Base62).decode("7n42dgm5tflk", None).ok().map(Id::Number)
        );
    }

    #[test]
    fn named_decimal_form_has_a_sign_as_the_default_has() {
        let decimal = Some(Format::default());
        assert_eq!(read("-1", decimal, None).unwrap(), Id::Number(u64::MAX));
        assert_eq!(read("7", decimal, None).unwrap(), Id::Number(7));
        assert!(read("-01", decimal, None).is_err());
        assert!(read("01939c2b-5a3b-7cc4-8f3d-6b4f5d2a1c9e", decimal, None).is_err());
        let padded = "decimal-padded".parse().unwrap();
        assert!(read("-1", Some(padded), None).is_err());
    }

    #[test]
    fn negative_numbers_and_forms_of_other_systems_are_recognised() {
        assert_eq!(read("-1", None, None).unwrap(), Id::Number(u64::MAX));
        let lowest = read("-9223372036854775808", None, None).unwrap();
        assert_eq!(lowest, Id::Number(1 << 63));
        for text in ["0AWG1PRQQFZ8D", "0awg1prqqfz8d"] {
            assert_eq!(read(text, None, None).unwrap(), Id::Number(392_377_999_526_722_829));
            let tsid = Layout::TSID.readable();
            assert_eq!(read(text, None, Some(&tsid)).unwrap(), Id::Number(392_377_999_526_722_829));
        }
        let instagram = Layout::INSTAGRAM.readable();
        for (text, id) in [
            ("BsOGulcndj-", 1_949_525_278_281_554_174),
            ("CTFlHsmpEVW", 2_649_687_212_427_593_046),
            ("D", 3),
        ] {
            assert_eq!(read(text, None, Some(&instagram)).unwrap(), Id::Number(id), "{text}");
        }
        for text in ["________________", "____________", "Bs OGulcndj", ""] {
            assert!(read(text, None, Some(&instagram)).is_err(), "{text}");
        }
        // A text of another layout needs its format.
        assert!(read("0AWG1PRQQFZ8D", None, Some(&Layout::TWITTER.readable())).is_err());
        for text in ["65920080aabbccddee112233", "507191107799439011223344"] {
            assert!(matches!(read(text, None, None).unwrap(), Id::Foreign(_)), "{text}");
        }
    }

    #[test]
    fn shortcode_without_its_layout_is_rejected_with_a_hint() {
        let error = read("BsOGulcndj-", None, None).unwrap_err();
        assert!(error.ends_with("a shortcode of Instagram needs --layout instagram"), "{error}");
    }

    #[test]
    fn invalid_id_is_rejected() {
        for text in [
            "",
            "-",
            "-0",
            "-9223372036854775809",
            "+1",
            "007",
            "1e18",
            "18446744073709551616",
            "deadbeef",
            // 13 digits are a number, and 12 characters no TSID.
            "0123456789012",
            "0AWG1PRQQFZ8",
            "GAWG1PRQQFZ8D",
            "BsOGulcndj-",
            "81ARZ3NDEKTSV4RRFFQ69G5FAV",
            "O1ARZ3NDEKTSV4RRFFQ69G5FAV",
            "\u{1b}[2J",
            "😀",
        ] {
            assert!(read(text, None, None).is_err(), "{text:?}");
        }
    }
}
