//! IDs of other systems that are recognised by their form, and contain the time.

use serde::Serialize;

/// Content of such an ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForeignId {
    /// Name of the form.
    pub kind: &'static str,
    /// Its time.
    #[serde(skip)]
    pub unix_ms: u64,
    /// Machine, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Process number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u64>,
    /// Counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<u64>,
    /// Random part: hexadecimal digits, or the characters of a push ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random: Option<String>,
}

/// Start of the time of KSUIDs: 2014-05-13T16:53:20Z, in seconds.
const KSUID_EPOCH_S: u64 = 1_400_000_000;
const KSUID_DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const XID_DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuv";
const PUSH_DIGITS: &[u8] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

impl ForeignId {
    /// Reads the forms, which no text can be mistaken for another of.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        match text.len() {
            24 => object_id(text),
            27 => ksuid(text),
            20 if text.starts_with('-') => push_id(text),
            20 => xid(text),
            _ => None,
        }
    }

    fn of(kind: &'static str, unix_ms: u64) -> Self {
        Self { kind, unix_ms, machine: None, process: None, counter: None, random: None }
    }
}

/// Reads a BSON ObjectId: 4 bytes of seconds, 5 of chance, 3 of a counter.
fn object_id(text: &str) -> Option<ForeignId> {
    let id = number(text, b"0123456789abcdef", |byte| byte.to_ascii_lowercase())?;
    let (seconds, random) = (bits(id, 64, 32), bits(id, 24, 40));
    Some(ForeignId {
        counter: Some(bits(id, 0, 24)),
        random: Some(format!("{random:010x}")),
        ..ForeignId::of("ObjectId", seconds * 1_000)
    })
}

/// Reads an xid: 4 bytes of seconds, 3 of the machine, 2 of the process, 3 of a counter.
fn xid(text: &str) -> Option<ForeignId> {
    // Digits alone are rather a number above 64 bits.
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = number(text, XID_DIGITS, |byte| byte)?;
    // 20 digits have 4 bits more than the ID.
    let id = (digits & 0xf == 0).then_some(digits >> 4)?;
    Some(ForeignId {
        machine: Some(format!("{:06x}", bits(id, 40, 24))),
        process: Some(bits(id, 24, 16)),
        counter: Some(bits(id, 0, 24)),
        ..ForeignId::of("xid", bits(id, 64, 32) * 1_000)
    })
}

/// Reads a push ID of Firebase: 8 characters of milliseconds, 12 of chance. The first is a hyphen
/// until the year 2109.
fn push_id(text: &str) -> Option<ForeignId> {
    // Digits alone are rather a negative number of more than 64 bits.
    if text.bytes().skip(1).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let random = text.get(8..)?;
    number(random, PUSH_DIGITS, |byte| byte)?;
    let unix_ms = number(text.get(..8)?, PUSH_DIGITS, |byte| byte)?;
    Some(ForeignId {
        random: Some(random.to_owned()),
        ..ForeignId::of("Firebase push ID", bits(unix_ms, 0, 48))
    })
}

/// Reads a KSUID: 4 bytes of seconds, 16 of chance.
fn ksuid(text: &str) -> Option<ForeignId> {
    let mut id = [0_u8; 20];
    for byte in text.bytes() {
        let mut carry = digit(byte, KSUID_DIGITS)?;
        for slot in id.iter_mut().rev() {
            let sum = u32::from(*slot) * 62 + carry;
            *slot = sum.to_le_bytes()[0];
            carry = sum >> 8;
        }
        if carry > 0 {
            return None;
        }
    }
    let (seconds, random) = id.split_first_chunk::<4>()?;
    let seconds = u64::from(u32::from_be_bytes(*seconds)) + KSUID_EPOCH_S;
    Some(ForeignId {
        random: Some(random.iter().map(|byte| format!("{byte:02x}")).collect()),
        ..ForeignId::of("KSUID", seconds * 1_000)
    })
}

/// Reads digits of a base that is a power of two, at most 128 bits in all.
fn number(text: &str, digits: &[u8], case: impl Fn(u8) -> u8) -> Option<u128> {
    let digit_bits = digits.len().ilog2();
    text.bytes().try_fold(0, |number, byte| {
        Some(number << digit_bits | u128::from(digit(case(byte), digits)?))
    })
}

fn digit(byte: u8, digits: &[u8]) -> Option<u32> {
    digits.iter().position(|digit| *digit == byte).and_then(|index| u32::try_from(index).ok())
}

/// Returns some bits of a number, at most 64.
fn bits(number: u128, shift: u32, count: u32) -> u64 {
    u64::try_from((number >> shift) & ((1 << count) - 1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_ids_have_their_known_time_and_parts() {
        // The tests of RyanDFIR/unfurl; MongoDB's manual; the READMEs of segmentio/ksuid and rs/xid;
        // the tests of cartant/firebase-key, and of a device library on Firebase's own example.
        for (text, kind, unix_ms) in [
            ("65920080aabbccddee112233", "ObjectId", 1_704_067_200_000),
            ("507c7f79bcf86cd7994f6c0e", "ObjectId", 1_350_336_377_000),
            ("507C7F79BCF86CD7994F6C0E", "ObjectId", 1_350_336_377_000),
            ("0ujtsYcgvSTl8PAuAdqWYSMnLOv", "KSUID", 1_507_608_047_000),
            ("9m4e2mr0ui3e8a215n4g", "xid", 1_300_816_219_000),
            ("-KKuid1F000000000000", "Firebase push ID", 1_466_642_894_992),
            ("-JhLeOlGIEjaIOFHR0xd", "Firebase push ID", 1_423_088_131_153),
        ] {
            let id = ForeignId::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((id.kind, id.unix_ms), (kind, unix_ms), "{text}");
        }
        let ksuid = ForeignId::read("0ujtsYcgvSTl8PAuAdqWYSMnLOv").unwrap();
        assert_eq!(ksuid.random.as_deref(), Some("b5a1cd34b5f99d1154fb6853345c9735"));
        let xid = ForeignId::read("9m4e2mr0ui3e8a215n4g").unwrap();
        assert_eq!(xid.machine.as_deref(), Some("60f486"));
        assert_eq!((xid.process, xid.counter), (Some(58_408), Some(4_271_561)));
        let object_id = ForeignId::read("65920080aabbccddee112233").unwrap();
        assert_eq!(object_id.random.as_deref(), Some("aabbccddee"));
        assert_eq!(object_id.counter, Some(0x11_22_33));
    }

    #[test]
    fn text_of_another_form_is_no_foreign_id() {
        for text in [
            "",
            "65920080aabbccddee11223g",
            // Above 20 bytes.
            "aWgEPTl1tmebfsQzFP4bxwgy80W",
            "0ujtsYcgvSTl8PAuAdqWYSMnLO-",
            // The last digit of an xid has one bit.
            "9m4e2mr0ui3e8a215n41",
            "18446744073709551620",
            "-9223372036854775809",
            "9M4e2mr0ui3e8a215n4g",
            "-KKuid1F00000000000!",
            "-KKuid1😀000000000",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        ] {
            assert_eq!(ForeignId::read(text), None, "{text}");
        }
        assert!(ForeignId::read("aWgEPTl1tmebfsQzFP4bxwgy80V").is_some());
    }
}
