//! The friendly form: the time in UTC, then the layout's other fields in the order of their bits.
//!
//! The time is always UTC: local time repeats an hour when summer ends, and with it the text.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "lengths are at most 48; the time has 17 digits, and the other fields have 63 bits at most, so 22 digits and 3 hyphens"
)]

use super::buffer::{TEXT_BYTES_MAX, Text};
use super::error::TextError;
use super::radix::{DIGITS_MAX, Radix};
use crate::civil::{Civil, TimeError};
use crate::layout::{Field, Layout, Parts};
use crate::time::UnixMillis;

const TIME_DIGITS: usize = 17;

/// The first time with a five-digit year.
const YEAR_10000: UnixMillis = UnixMillis::new(253_402_300_800_000);

struct Writer {
    bytes: [u8; TEXT_BYTES_MAX],
    end: usize,
}

impl Writer {
    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.end) {
            *slot = byte;
            self.end += 1;
        }
    }

    /// Writes the number with at least `width` digits.
    fn number(&mut self, value: u64, width: usize) {
        let mut digits = [0; DIGITS_MAX];
        let written = Radix::Decimal.write_padded(value, &mut digits);
        let length = Radix::Decimal.encode(value).as_bytes().len().max(width);
        for &digit in written.iter().skip(written.len().saturating_sub(length)) {
            self.push(digit);
        }
    }
}

fn digits_of(max: u64) -> usize {
    Radix::Decimal.encode(max).as_bytes().len()
}

const fn value_of(parts: &Parts, field: Field) -> u64 {
    match field {
        Field::Clock => parts.clock,
        Field::Worker => parts.worker,
        Field::Sequence => parts.sequence,
        Field::Time | Field::Id => parts.tick.get(),
    }
}

const fn max_of(layout: &Layout, field: Field) -> u64 {
    match field {
        Field::Clock => layout.clock_max(),
        Field::Worker => layout.worker_max(),
        Field::Sequence => layout.sequence_max(),
        Field::Time | Field::Id => layout.tick_max().get(),
    }
}

pub(super) fn encode(id: u64, layout: &Layout, padded: bool) -> Result<Text, TextError> {
    let parts = layout.unpack(id)?;
    let time = layout.start_of(parts.tick);
    if time >= YEAR_10000 {
        return Err(TextError::YearPast9999);
    }
    let civil = Civil::from_unix(time);
    let mut writer = Writer { bytes: [0; TEXT_BYTES_MAX], end: 0 };
    writer.number(civil.year, 4);
    for part in [civil.month, civil.day, civil.hour, civil.minute, civil.second] {
        writer.number(part, 2);
    }
    writer.number(civil.milli, 3);
    for (field, _) in layout.fields().skip(1) {
        writer.push(b'-');
        let width = if padded { digits_of(max_of(layout, field)) } else { 1 };
        writer.number(value_of(&parts, field), width);
    }
    // At most 48.
    Ok(Text { bytes: writer.bytes, start: 0, end: writer.end.to_le_bytes()[0] })
}

pub(super) fn decode(text: &str, layout: &Layout, padded: bool) -> Result<u64, TextError> {
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(TextError::TooLong { bytes: text.len(), bytes_max: TEXT_BYTES_MAX });
    }
    let (parts, parts_wanted) = (text.split('-').count(), layout.fields().count());
    if parts != parts_wanted {
        return Err(TextError::Parts { parts, parts_wanted });
    }
    let mut words = text.split('-');
    let time_word = words.next().unwrap_or_default();
    let time = Civil::from_digits(time_word).map_err(TextError::Time)?;
    let tick = layout.tick_at(time)?;
    let after_start_ms = time.since(layout.start_of(tick));
    if after_start_ms > 0 {
        return Err(TextError::WithinTick { unit_ms: layout.unit_ms(), after_start_ms });
    }
    let mut parts = Parts { tick, ..Parts::default() };
    let mut position = time_word.len() + 1;
    for ((field, _), word) in layout.fields().skip(1).zip(words) {
        let wrong = TextError::Field { field, position };
        let value = read(word, padded, max_of(layout, field)).ok_or(wrong)?;
        match field {
            Field::Clock => parts.clock = value,
            Field::Worker => parts.worker = value,
            _ => parts.sequence = value,
        }
        position += word.len() + 1;
    }
    Ok(layout.pack(parts)?)
}

/// Reads a number in the format's form.
fn read(word: &str, padded: bool, max: u64) -> Option<u64> {
    if !padded {
        return Radix::Decimal.decode(word).ok();
    }
    if word.len() != digits_of(max) || !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    word.parse().ok()
}

impl Civil {
    /// Parses a time of 17 digits.
    fn from_digits(word: &str) -> Result<UnixMillis, TimeError> {
        let fine = word.bytes().take(TIME_DIGITS).take_while(u8::is_ascii_digit).count();
        if fine < TIME_DIGITS {
            return Err(TimeError::Shape { position: fine, expected: "digit" });
        }
        if word.len() > TIME_DIGITS {
            return Err(TimeError::Shape { position: TIME_DIGITS, expected: "end" });
        }
        let part = |range: core::ops::Range<usize>| {
            let digits = word.get(range).unwrap_or_default();
            digits.bytes().fold(0, |value, digit| value * 10 + u64::from(digit & 0xF))
        };
        let civil = Self {
            year: part(0..4),
            month: part(4..6),
            day: part(6..8),
            hour: part(8..10),
            minute: part(10..12),
            second: part(12..14),
            milli: part(14..17),
        };
        civil.to_unix_utc()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::OutOfRange;
    use crate::text::Format;

    #[test]
    fn the_documented_discord_id_reads_as_its_time() {
        let id = 175_928_847_299_117_063;
        let layout = Some(&Layout::DISCORD);
        let text = Format::Friendly.encode(id, layout).unwrap();
        assert_eq!(text, "20160430111825796-32-7");
        assert_eq!(Format::Friendly.decode(&text, layout), Ok(id));
        let text = Format::FriendlyPadded.encode(id, layout).unwrap();
        assert_eq!(text, "20160430111825796-0032-0007");
        assert_eq!(Format::FriendlyPadded.decode(&text, layout), Ok(id));
    }

    #[test]
    fn fields_stand_in_the_order_of_their_bits() {
        let id = Layout::SONYFLAKE.compose(UnixMillis::new(1_600_000_000_010), 65_535, 3).unwrap();
        let text = Format::FriendlyPadded.encode(id, Some(&Layout::SONYFLAKE)).unwrap();
        assert_eq!(text, "20200913122640010-003-65535");
        let lone: Layout = "time=41,sequence=22".parse().unwrap();
        assert_eq!(Format::Friendly.encode(5, Some(&lone)).unwrap(), "20260101000000000-5");
    }

    #[test]
    fn the_longest_text_fits() {
        let layout: Layout =
            "time=1,clock=21,worker=21,sequence=21,epoch=2026-01-01T00:00:00Z".parse().unwrap();
        let text = Format::Friendly.encode(layout.id_max(), Some(&layout)).unwrap();
        assert_eq!(text, "20260101000000000-2097151-2097151-2097151");
        let layout: Layout = "time=1,clock=1,worker=1,sequence=60".parse().unwrap();
        let text = Format::FriendlyPadded.encode(layout.id_max(), Some(&layout)).unwrap();
        assert_eq!(text, "20260101000000001-1-1-1152921504606846975");
    }

    #[test]
    fn wrong_texts_are_refused_with_their_reason() {
        use TextError::{Field as Wrong, Parts, Time, WithinTick};
        let layout = Some(&Layout::BAIDU);
        let shape = |position, expected| Time(TimeError::Shape { position, expected });
        for (text, error) in [
            ("", TextError::Empty),
            ("20260101000000000", Parts { parts: 1, parts_wanted: 3 }),
            ("20260101000000000-1-2-3", Parts { parts: 4, parts_wanted: 3 }),
            ("2026010100000000-1-2", shape(16, "digit")),
            ("202601010000000000-1-2", shape(17, "end")),
            ("20260101T00000000-1-2", shape(8, "digit")),
            (
                "20261301000000000-1-2",
                Time(TimeError::Part { part: "month", value: 13, min: 1, max: 12 }),
            ),
            ("20260101000000001-1-2", WithinTick { unit_ms: 1_000, after_start_ms: 1 }),
            ("20260101000000000-01-2", Wrong { field: Field::Worker, position: 18 }),
            ("20260101000000000-1-", Wrong { field: Field::Sequence, position: 20 }),
            ("20260101000000000-1-+2", Wrong { field: Field::Sequence, position: 20 }),
            (
                "20260101000000000-1-8192",
                TextError::OutOfRange(OutOfRange::Field {
                    field: Field::Sequence,
                    value: 8_192,
                    max: 8_191,
                }),
            ),
            (
                "20251231235959000-1-2",
                TextError::OutOfRange(OutOfRange::BeforeEpoch {
                    time: UnixMillis::new(1_767_225_599_000),
                    epoch: Layout::BAIDU.epoch(),
                }),
            ),
        ] {
            assert_eq!(Format::Friendly.decode(text, layout), Err(error), "{text}");
        }
        assert_eq!(
            Format::FriendlyPadded.decode("20260101000000000-1-0002", layout),
            Err(Wrong { field: Field::Worker, position: 18 })
        );
        assert_eq!(Format::Friendly.decode("1", None), Err(TextError::NeedsLayout));
        assert_eq!(
            Format::Friendly.encode(Layout::YITTER.id_max(), Some(&Layout::YITTER)),
            Err(TextError::YearPast9999)
        );
    }
}
