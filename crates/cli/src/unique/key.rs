//! Keys by which IDs are compared: a number, a wider number, or a text. Each has a fixed length, so
//! that runs of them need no framing in a file.

use snowmint_core::text::{Format, decode_signed};
use snowmint_server::decoding::read_ulid;
use uuid::Uuid;

/// Longest text that is compared unchanged.
const TEXT_BYTES_MAX: usize = 48;

/// A key of fixed length, ordered as the IDs are.
pub(crate) trait SortKey: Copy + Ord {
    /// Number of its bytes in a file.
    const BYTES: usize;

    /// Name of the form in which IDs are compared.
    const FORM: &'static str;

    /// Returns the key of an ID.
    fn read(text: &str, format: Option<Format>) -> Result<Self, String>;
    /// Returns whether the text is a negative number, which is below all others. Keys of negative
    /// numbers are in their order.
    fn is_negative(_text: &str, _format: Option<Format>) -> bool {
        false
    }
    /// Returns the ID of a key. `signed`: numbers with the top bit set are negative.
    fn show(&self, format: Option<Format>, signed: bool) -> String;
    /// Appends its bytes.
    fn store(&self, bytes: &mut Vec<u8>);
    /// Reads its bytes back, always as many as were stored.
    fn load(bytes: &[u8]) -> Self;
}

/// A number of 64 bits. A negative number has the key of the number with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NumberKey(u64);

impl NumberKey {
    /// Returns the key of a number.
    pub(crate) const fn of(number: u64) -> Self {
        Self(number)
    }
}

/// A UUID or a ULID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WideKey {
    value: u128,
    is_ulid: bool,
}

/// Any other text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TextKey([u8; TEXT_BYTES_MAX]);

/// Returns whether numbers of a form may have a sign: decimal ones, which no width pads.
fn is_signed(format: Option<Format>) -> bool {
    format.unwrap_or_default() == Format::default()
}

impl SortKey for NumberKey {
    const BYTES: usize = 8;
    const FORM: &'static str = "numbers";

    #[inline]
    fn read(text: &str, format: Option<Format>) -> Result<Self, String> {
        let read = match format {
            Some(format) if !is_signed(Some(format)) => format.decode(text, None),
            _ => decode_signed(text),
        };
        read.map(Self).map_err(|error| error.to_string())
    }

    #[inline]
    fn is_negative(text: &str, format: Option<Format>) -> bool {
        is_signed(format) && text.starts_with('-')
    }

    fn show(&self, format: Option<Format>, signed: bool) -> String {
        if signed && is_signed(format) {
            return self.0.cast_signed().to_string();
        }
        // Without a layout only the friendly forms fail, and those are never read.
        format
            .unwrap_or_default()
            .encode(self.0, None)
            .map_or_else(|_| self.0.to_string(), |text| text.to_string())
    }

    fn store(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.0.to_le_bytes());
    }

    fn load(bytes: &[u8]) -> Self {
        Self(u64::from_le_bytes(fixed(bytes)))
    }
}

impl SortKey for WideKey {
    const BYTES: usize = 17;
    const FORM: &'static str = "UUIDs and ULIDs";

    fn read(text: &str, _: Option<Format>) -> Result<Self, String> {
        if let Some(ulid) = read_ulid(text) {
            return Ok(Self { value: ulid.0, is_ulid: true });
        }
        Uuid::try_parse(text)
            .map(|uuid| Self { value: uuid.as_u128(), is_ulid: false })
            .map_err(|_| "expected a UUID or a ULID as before; --format text accepts any".into())
    }

    fn show(&self, _: Option<Format>, _: bool) -> String {
        if self.is_ulid {
            ulid::Ulid(self.value).to_string()
        } else {
            Uuid::from_u128(self.value).to_string()
        }
    }

    fn store(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.value.to_le_bytes());
        bytes.push(u8::from(self.is_ulid));
    }

    fn load(bytes: &[u8]) -> Self {
        let (value, kind) = bytes.split_at(bytes.len().min(16));
        Self { value: u128::from_le_bytes(fixed(value)), is_ulid: kind.first() == Some(&1) }
    }
}

impl SortKey for TextKey {
    const BYTES: usize = TEXT_BYTES_MAX;
    const FORM: &'static str = "text";

    fn read(text: &str, _: Option<Format>) -> Result<Self, String> {
        let bytes = text.as_bytes();
        // A NUL would give two texts the same key.
        if bytes.len() > TEXT_BYTES_MAX || bytes.contains(&0) {
            return Err(format!(
                "it has {} bytes, or a zero byte; IDs have at most {TEXT_BYTES_MAX} bytes",
                bytes.len()
            ));
        }
        Ok(Self(fixed(bytes)))
    }

    fn show(&self, _: Option<Format>, _: bool) -> String {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(TEXT_BYTES_MAX);
        // The bytes were read from text. They are escaped: an ID must not control the terminal that
        // shows it.
        String::from_utf8_lossy(&self.0[..end]).escape_debug().to_string()
    }

    fn store(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.0);
    }

    fn load(bytes: &[u8]) -> Self {
        Self(fixed(bytes))
    }
}

/// Returns the bytes, padded with zeros to the length.
fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    for (to, from) in array.iter_mut().zip(bytes) {
        *to = *from;
    }
    array
}

#[cfg(test)]
mod tests {
    use snowmint_core::text::Radix;

    use super::*;

    fn there_and_back<K: SortKey + std::fmt::Debug>(text: &str, format: Option<Format>) {
        let key = K::read(text, format).unwrap();
        let mut bytes = Vec::new();
        key.store(&mut bytes);
        assert_eq!(bytes.len(), K::BYTES);
        assert_eq!(K::load(&bytes), key);
        assert_eq!(key.show(format, text.starts_with('-')), text);
    }

    #[test]
    fn keys_are_stored_and_shown_as_they_were_read() {
        there_and_back::<NumberKey>("18446744073709551615", None);
        there_and_back::<NumberKey>("-1", None);
        there_and_back::<NumberKey>("-9223372036854775808", None);
        there_and_back::<NumberKey>("LygHa16AHYF", Some(Format::Number(Radix::Base62)));
        there_and_back::<WideKey>("01939c2b-5a3b-7cc4-8f3d-6b4f5d2a1c9e", None);
        there_and_back::<WideKey>("01ARZ3NDEKTSV4RRFFQ69G5FAV", None);
        there_and_back::<TextKey>("INV-2026-000001", None);
        there_and_back::<TextKey>(&"x".repeat(TEXT_BYTES_MAX), None);
    }

    /// As without a form, which means the same.
    #[test]
    fn decimal_form_has_negative_numbers() {
        let decimal = Some(Format::default());
        let key = NumberKey::read("-1", decimal).unwrap();
        assert_eq!(key, NumberKey::read("-1", None).unwrap());
        assert!(NumberKey::is_negative("-1", decimal) && !NumberKey::is_negative("1", decimal));
        assert_eq!((key.show(decimal, true), key.show(None, true)), ("-1".into(), "-1".into()));
        assert!(!NumberKey::is_negative("-1", Some(Format::Number(Radix::Hex))));
    }

    #[test]
    fn texts_that_have_no_key_are_refused() {
        assert!(NumberKey::read("-0", None).is_err());
        assert!(NumberKey::read("-1", Some(Format::Number(Radix::Hex))).is_err());
        assert!(WideKey::read("12", None).is_err());
        assert!(TextKey::read(&"x".repeat(TEXT_BYTES_MAX + 1), None).is_err());
        assert!(TextKey::read("a\0", None).is_err());
    }
}
