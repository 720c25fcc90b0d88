//! IDs as text: a number in one of the text forms, a UUID or a ULID.

use snowmint_core::Layout;
use snowmint_core::text::{Format, Radix};
use ulid::Ulid;
use uuid::Uuid;

use crate::terminal::exit::{Failure, Outcome};

/// Kinds of IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    /// A number of 64 bits.
    Number(u64),
    /// 128 bits, with a version and a variant.
    Uuid(Uuid),
    /// 48 bits of milliseconds, and 80 of randomness.
    Ulid(Ulid),
}

/// Length of a ULID. Its letters do not include those that Crockford's base32 reads as digits.
const ULID_LENGTH: usize = ulid::ULID_LEN;

/// Reads an ID. Without a format, accepts only forms that are distinct from each other: decimal
/// numbers, UUIDs and ULIDs.
pub(crate) fn read(text: &str, format: Option<Format>, layout: Option<&Layout>) -> Outcome<Id> {
    let refused =
        |reason: &dyn std::fmt::Display| Failure::usage(format!("invalid ID {text:?}: {reason}"));
    if let Some(format) = format {
        return format.decode(text, layout).map(Id::Number).map_err(|error| refused(&error));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() < ULID_LENGTH {
        return Format::Number(Radix::Decimal)
            .decode(text, None)
            .map(Id::Number)
            .map_err(|error| refused(&error));
    }
    if let Some(ulid) = read_ulid(text) {
        return Ok(Id::Ulid(ulid));
    }
    if let Ok(uuid) = Uuid::try_parse(text) {
        return Ok(Id::Uuid(uuid));
    }
    Err(refused(&"expected a decimal number, a UUID or a ULID; name another form with --format"))
}

/// Reads a ULID in upper or lower case. Rejects ULIDs beyond the end of their time, which the crate
/// would cut to 128 bits.
pub(crate) fn read_ulid(text: &str) -> Option<Ulid> {
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
    fn invalid_id_is_rejected() {
        for text in [
            "",
            "-1",
            "+1",
            "007",
            "1e18",
            "18446744073709551616",
            "deadbeef",
            "81ARZ3NDEKTSV4RRFFQ69G5FAV",
            "O1ARZ3NDEKTSV4RRFFQ69G5FAV",
            "\u{1b}[2J",
            "😀",
        ] {
            assert!(read(text, None, None).is_err(), "{text:?}");
        }
    }
}
