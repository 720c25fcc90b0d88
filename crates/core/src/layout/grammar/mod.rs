//! Layouts as text: a preset's name, a preset with overrides, or written out in full.
//!
//! ```text
//! twitter
//! twitter,epoch=2021-01-01T00:00:00Z
//! time=41,clock=3,worker=7,sequence=12,unit=1ms,epoch=2024-01-01T00:00:00+08:00
//! ```
//!
//! Fields stand in the order of their bits, highest first. `worker=5+5` splits the worker for
//! display, and `time=31+10` makes the low part count the units of a second. `unit` is a number of
//! `ns`, `us`, `ms` or `s`; `epoch` is RFC 3339 or Unix milliseconds. After a preset, a field
//! changes the width of the preset's field.
//!
//! A text is read as a [`ReadableLayout`]. It is a [`Layout`] if IDs can be minted with it.

use core::fmt;
use core::str::FromStr;

mod error;
mod keys;

pub use error::{ParseLayoutError, Word};

use self::error::nearest;
use self::keys::KEYS;
use super::preset::{PRESETS, Preset};
use super::readable::{MS_NS, UNIT_NS_MAX};
use super::{EPOCH_DEFAULT, Field, Layout, LayoutError, ReadableLayout};
use crate::civil::Rfc3339;
use crate::time::UnixMillis;

const FIELDS_MAX: usize = 4;

/// The first time that RFC 3339 cannot write: the start of the year 10000.
const YEAR_10000: UnixMillis = UnixMillis::new(253_402_300_800_000);

/// The layout as described by the words read so far.
struct Draft {
    preset: Option<&'static Preset>,
    fields: [(Field, u8); FIELDS_MAX],
    fields_len: usize,
    written: [Option<&'static str>; KEYS.len()],
    worker_low_bits: u8,
    time_low_bits: u8,
    unit_ns: u64,
    epoch: UnixMillis,
}

impl FromStr for Layout {
    type Err = ParseLayoutError;

    fn from_str(text: &str) -> Result<Self, ParseLayoutError> {
        let draft = Draft::of(text)?;
        let layout = draft.finish()?.mintable()?;
        match draft.preset {
            Some(preset) if !preset.can_mint() => {
                Err(ParseLayoutError::OnlyDecodes { preset: preset.name() })
            }
            _ => Ok(layout),
        }
    }
}

impl FromStr for ReadableLayout {
    type Err = ParseLayoutError;

    fn from_str(text: &str) -> Result<Self, ParseLayoutError> {
        Ok(Draft::of(text)?.finish()?)
    }
}

impl Draft {
    /// Reads every word of a text.
    fn of(text: &str) -> Result<Self, ParseLayoutError> {
        let mut draft = Self::empty();
        let mut position = 0_usize;
        for (index, raw) in text.split(',').enumerate() {
            let word = raw.trim_matches(' ');
            if word.is_empty() {
                return Err(ParseLayoutError::EmptyWord { position });
            }
            position = position.saturating_add(raw.len()).saturating_add(1);
            match word.split_once('=') {
                Some((key, value)) => draft.set(key, value)?,
                None if index == 0 => draft = Self::of_preset(word)?,
                None => return Err(ParseLayoutError::NoValue { word: Word::new(word) }),
            }
        }
        Ok(draft)
    }

    const fn empty() -> Self {
        Self {
            preset: None,
            fields: [(Field::Id, 0); FIELDS_MAX],
            fields_len: 0,
            written: [None; KEYS.len()],
            worker_low_bits: 0,
            time_low_bits: 0,
            unit_ns: MS_NS,
            epoch: EPOCH_DEFAULT,
        }
    }

    fn of_preset(name: &str) -> Result<Self, ParseLayoutError> {
        let Some(preset) = Preset::named(name) else {
            return Err(ParseLayoutError::UnknownName {
                word: Word::new(name),
                nearest: nearest(name, PRESETS.iter().map(Preset::name)),
            });
        };
        let layout = preset.layout();
        let mut draft = Self {
            preset: Some(preset),
            worker_low_bits: layout.worker_low_bits(),
            time_low_bits: layout.time_low_bits(),
            unit_ns: layout.unit_ns(),
            epoch: layout.epoch(),
            ..Self::empty()
        };
        for (slot, field) in draft.fields.iter_mut().zip(layout.fields()) {
            *slot = field;
            draft.fields_len = draft.fields_len.saturating_add(1);
        }
        Ok(draft)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ParseLayoutError> {
        let known = KEYS.into_iter().zip(self.written.iter_mut()).find(|(known, _)| *known == key);
        let Some((key, written)) = known else {
            return Err(ParseLayoutError::UnknownKey {
                word: Word::new(key),
                nearest: nearest(key, KEYS.into_iter()),
            });
        };
        if written.replace(key).is_some() {
            return Err(ParseLayoutError::Repeated { key });
        }
        match key {
            "time" => self.set_width(Field::Time, value),
            "clock" => self.set_width(Field::Clock, value),
            "worker" => self.set_width(Field::Worker, value),
            "sequence" => self.set_width(Field::Sequence, value),
            "unit" => {
                self.unit_ns = parse_unit_ns(value)?;
                Ok(())
            }
            _ => {
                self.epoch = parse_epoch(value)?;
                Ok(())
            }
        }
    }

    fn set_width(&mut self, field: Field, value: &str) -> Result<(), ParseLayoutError> {
        let split = || ParseLayoutError::Split { key: field.name(), word: Word::new(value) };
        let (bits, low_bits) = match value.split_once('+') {
            None => (parse_bits(field, value)?, 0),
            Some((high, low))
                if matches!(field, Field::Worker | Field::Time)
                    && !high.is_empty()
                    && !low.is_empty() =>
            {
                let (high, low) = (parse_bits(field, high)?, parse_bits(field, low)?);
                if high == 0 || low == 0 {
                    return Err(split());
                }
                (high.saturating_add(low), low)
            }
            Some(_) => return Err(split()),
        };
        match field {
            Field::Worker => self.worker_low_bits = low_bits,
            Field::Time => self.time_low_bits = low_bits,
            _ => {}
        }
        if let Some(preset) = self.preset {
            let Some((_, old)) = self.fields.iter_mut().find(|(known, _)| *known == field) else {
                return Err(ParseLayoutError::NotInPreset { field, preset: preset.name() });
            };
            *old = bits;
            return Ok(());
        }
        // Each field occurs once, so there is room.
        if let Some(slot) = self.fields.get_mut(self.fields_len) {
            *slot = (field, bits);
            self.fields_len = self.fields_len.saturating_add(1);
        }
        Ok(())
    }

    fn finish(&self) -> Result<ReadableLayout, LayoutError> {
        let fields = self.fields.get(..self.fields_len).unwrap_or_default();
        let mut layout = ReadableLayout::from_fields(fields)?
            .with_unit_ns(self.unit_ns)?
            .with_epoch(self.epoch)?;
        if self.time_low_bits > 0 {
            layout = layout.with_time_split(self.time_low_bits)?;
        }
        if self.worker_low_bits > 0 {
            layout = layout.with_worker_split(self.worker_low_bits)?;
        }
        Ok(layout)
    }
}

/// Parses digits only: `parse` alone would also accept a plus sign.
fn parse_digits(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn parse_bits(field: Field, text: &str) -> Result<u8, ParseLayoutError> {
    let min = u64::from(field == Field::Time);
    parse_digits(text)
        .filter(|bits| (min..=63).contains(bits))
        .and_then(|bits| u8::try_from(bits).ok())
        .ok_or_else(|| ParseLayoutError::Number {
            key: field.name(),
            word: Word::new(text),
            min,
            max: 63,
        })
}

/// Units of a tick by their name, in nanoseconds. A name that ends another one stands after it.
const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", MS_NS), ("s", 1_000 * MS_NS)];

fn parse_unit_ns(text: &str) -> Result<u64, ParseLayoutError> {
    let wrong = ParseLayoutError::Unit { word: Word::new(text) };
    let named = |(name, unit_ns)| text.strip_suffix(name).map(|number| (number, unit_ns));
    let Some((number, unit_ns)) = UNITS.into_iter().find_map(named) else { return Err(wrong) };
    if number.is_empty() {
        return Err(wrong);
    }
    let max = UNIT_NS_MAX.checked_div(unit_ns).unwrap_or_default();
    parse_digits(number)
        .filter(|count| (1..=max).contains(count))
        .map(|count| count.saturating_mul(unit_ns))
        .ok_or_else(|| ParseLayoutError::Number {
            key: "unit",
            word: Word::new(number),
            min: 1,
            max,
        })
}

fn parse_epoch(text: &str) -> Result<UnixMillis, ParseLayoutError> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(UnixMillis::new).map_err(|_| ParseLayoutError::Number {
            key: "epoch",
            word: Word::new(text),
            min: 0,
            max: u64::MAX,
        });
    }
    match text.parse() {
        Ok(Rfc3339(epoch)) => Ok(epoch),
        Err(error) => Err(ParseLayoutError::Epoch { word: Word::new(text), error }),
    }
}

/// Writes the full form, which parses back to the same layout.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.readable(), f)
    }
}

/// Writes the full form, which parses back to the same layout.
impl fmt::Display for ReadableLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (field, bits) in self.fields() {
            let low_bits = match field {
                Field::Worker => self.worker_low_bits(),
                Field::Time => self.time_low_bits(),
                _ => 0,
            };
            if low_bits > 0 {
                write!(f, "{field}={}+{low_bits},", bits.saturating_sub(low_bits))?;
            } else {
                write!(f, "{field}={bits},")?;
            }
        }
        let whole = |(name, unit_ns)| match self.unit_ns().checked_div(unit_ns) {
            Some(count) if count.saturating_mul(unit_ns) == self.unit_ns() => Some((count, name)),
            _ => None,
        };
        // Every number of nanoseconds is whole in the first unit.
        let (count, unit) =
            UNITS.into_iter().rev().find_map(whole).unwrap_or((self.unit_ns(), "ns"));
        write!(f, "unit={count}{unit}")?;
        let epoch = self.epoch();
        if epoch >= YEAR_10000 {
            write!(f, ",epoch={}", epoch.get())
        } else if epoch.get() % 1_000 == 0 {
            write!(f, ",epoch={:.0}", Rfc3339(epoch))
        } else {
            write!(f, ",epoch={}", Rfc3339(epoch))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    fn parse(text: &str) -> Result<Layout, ParseLayoutError> {
        text.parse()
    }

    fn parse_readable(text: &str) -> Result<ReadableLayout, ParseLayoutError> {
        text.parse()
    }

    #[test]
    fn every_preset_is_found_and_writes_itself_in_full() {
        for preset in &PRESETS {
            assert_eq!(parse_readable(preset.name()), Ok(preset.layout()));
            assert_eq!(parse_readable(&preset.layout().to_string()), Ok(preset.layout()));
        }
        assert_eq!(
            Layout::TWITTER_DC.to_string(),
            "time=41,worker=5+5,sequence=12,unit=1ms,epoch=2010-11-04T01:42:54.657Z"
        );
        assert_eq!(
            Layout::JS53.to_string(),
            "time=33,worker=4,sequence=15,unit=1s,epoch=1970-01-01T00:00:00Z"
        );
    }

    #[test]
    fn overrides_change_the_preset_and_nothing_else() {
        let layout = parse("twitter, epoch=2021-01-01T00:00:00Z").unwrap();
        assert_eq!(layout, Layout::TWITTER.with_epoch(UnixMillis::new(1_609_459_200_000)).unwrap());
        let layout = parse("twitter-dc,worker=8,sequence=14").unwrap();
        assert_eq!(layout.bits(Field::Worker), 8);
        assert_eq!(layout.worker_low_bits(), 0);
        assert_eq!(layout.bits(Field::Sequence), 14);
        assert_eq!(layout.epoch(), Layout::TWITTER.epoch());
        assert_eq!(parse("sonyflake,unit=1s").unwrap().unit_ms(), 1_000);
    }

    #[test]
    fn the_full_form_keeps_the_written_order() {
        let layout = parse(
            "time=41,sequence=12,clock=3,worker=3+4,unit=10ms,epoch=2024-01-01T00:00:00+08:00",
        )
        .unwrap();
        assert_eq!(layout.shift(Field::Worker), 0);
        assert_eq!(layout.shift(Field::Clock), 7);
        assert_eq!(layout.shift(Field::Sequence), 10);
        assert_eq!(layout.split_worker(0b101_1001), Some((0b101, 0b1001)));
        assert_eq!(layout.epoch(), UnixMillis::new(1_704_038_400_000));
        assert_eq!(layout.unit_ms(), 10);
        assert_eq!(parse("time=41,sequence=22").unwrap().epoch(), EPOCH_DEFAULT);
        assert_eq!(parse("time=41,worker=0,sequence=22"), parse("time=41,sequence=22"));
        assert_eq!(
            parse("time=40,sequence=9,epoch=253402300800000").unwrap().to_string(),
            "time=40,sequence=9,unit=1ms,epoch=253402300800000"
        );
    }

    #[test]
    fn units_below_a_millisecond_and_split_times_are_read() {
        for (text, unit_ns) in [
            ("time=48,worker=15,unit=10us,epoch=2015-01-01T00:00:00Z", 10_000),
            ("time=50,worker=4,unit=100ns,epoch=1970-01-01T00:00:00Z", 100),
            ("worker=10,time=41,sequence=12,unit=1ms,epoch=2020-05-02T16:00:00Z", MS_NS),
            ("time=31+10,worker=9+1,sequence=12,unit=1ms,epoch=2025-10-01T00:00:00Z", MS_NS),
            ("time=31,sequence=12,unit=1500us,epoch=1970-01-01T00:00:00Z", 1_500_000),
            ("time=20,unit=86400s,epoch=1970-01-01T00:00:00Z", UNIT_NS_MAX),
        ] {
            let layout = parse_readable(text).unwrap();
            assert_eq!(layout.unit_ns(), unit_ns, "{text}");
            assert_eq!(layout.to_string(), text);
        }
        assert_eq!(parse_readable("time=41,sequence=0"), parse_readable("time=41"));
        assert_eq!(parse_readable("nextcloud,time=32").unwrap().time_low_bits(), 0);
        for (text, message) in [
            (
                "time=31+9,sequence=12",
                "9 low bits of the time cannot count the units of 1000000 ns in a second: give them more bits, and leave some to the seconds",
            ),
            (
                "time=31,unit=0ns",
                "`unit` cannot be `0`: it is a whole number from 1 to 86400000000000",
            ),
            ("time=31,unit=us", "`unit` cannot be `us`: write 10us, 1ms or 1s, or a number of ns"),
        ] {
            assert_eq!(parse_readable(text).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn a_layout_that_only_reads_names_its_reason() {
        for (text, message) in [
            (
                "seata",
                "time is not the layout's first field, so it cannot mint: IDs would not sort by time",
            ),
            (
                "cockroachdb",
                "a time unit of 10000 ns cannot mint: clocks are read in milliseconds, so take 1ms or more",
            ),
            (
                "cockroachdb,unit=1ms",
                "the layout has no bits for sequence, so it cannot mint: two IDs of one tick would be the same",
            ),
            (
                "baidu-2016,epoch=2026-01-01T00:00:00Z",
                "`baidu-2016` only decodes: to mint with these bits, write the layout out in full",
            ),
            (
                "nextcloud",
                "the layout's time has two parts, so it cannot mint: write the time as one number",
            ),
        ] {
            assert!(parse_readable(text).is_ok(), "{text}");
            assert_eq!(parse(text).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn wrong_texts_name_the_word_and_its_limits() {
        for (text, message) in [
            (
                "",
                "no word at byte 0: write a layout as `twitter` or `time=41,worker=10,sequence=12`",
            ),
            (
                "twitter,,unit=1s",
                "no word at byte 8: write a layout as `twitter` or `time=41,worker=10,sequence=12`",
            ),
            ("twiter", "no layout is called `twiter`: did you mean `twitter`?"),
            (
                "time=41,wroker=10,sequence=12",
                "a layout has no key `wroker`: did you mean `worker`?",
            ),
            ("twitter,discord", "`discord` has no value: after the first word, write key=value"),
            ("time=41,time=41,sequence=1", "`time` stands twice"),
            ("time=64,sequence=12", "`time` cannot be `64`: it is a whole number from 1 to 63"),
            (
                "time=+41,sequence=12",
                "`time` cannot be `+41`: only worker and time have two parts, as worker=5+5",
            ),
            (
                "time=41,sequence=5+7",
                "`sequence` cannot be `5+7`: only worker and time have two parts, as worker=5+5",
            ),
            (
                "time=41,sequence=0",
                "the layout has no bits for sequence, so it cannot mint: two IDs of one tick would be the same",
            ),
            (
                "time=41,worker=99999999999999999999,sequence=1",
                "`worker` cannot be `99999999999999999999`: it is a whole number from 0 to 63",
            ),
            (
                "time=41,worker=0+10,sequence=1",
                "`worker` cannot be `0+10`: only worker and time have two parts, as worker=5+5",
            ),
            ("twitter,unit=1", "`unit` cannot be `1`: write 10us, 1ms or 1s, or a number of ns"),
            ("twitter,unit=ms", "`unit` cannot be `ms`: write 10us, 1ms or 1s, or a number of ns"),
            ("twitter,unit=0s", "`unit` cannot be `0`: it is a whole number from 1 to 86400"),
            (
                "twitter,epoch=soon",
                "`epoch` cannot be `soon`: expected four-digit year at byte 0: write a time as 2026-01-01T00:00:00Z, or with an offset such as +08:00; or give Unix milliseconds as a whole number",
            ),
            (
                "twitter,epoch=99999999999999999999",
                "`epoch` cannot be `99999999999999999999`: it is a whole number from 0 to 18446744073709551615",
            ),
            (
                "twitter,epoch=18446744073709551615",
                "the last tick lies beyond what 64 bits of milliseconds can hold: take fewer time bits or a smaller unit",
            ),
            (
                "twitter,clock=3",
                "`twitter` has no clock whose width could change: write the layout out in full",
            ),
            (
                "time=41,worker=11,sequence=13",
                "the fields add up to 65 bits; a layout holds at most 64",
            ),
            (
                "worker=10,time=41,sequence=12",
                "time is not the layout's first field, so it cannot mint: IDs would not sort by time",
            ),
            (
                "time=41",
                "the layout has no bits for sequence, so it cannot mint: two IDs of one tick would be the same",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn unknown_name_is_escaped_and_lists_the_known() {
        let error = parse("\u{1b}[2J").unwrap_err().to_string();
        let (named, known) = error.split_once(": there are ").unwrap();
        assert_eq!(named, "no layout is called `\\u{1b}[2J`");
        let all: std::vec::Vec<_> =
            PRESETS.iter().map(|preset| std::format!("`{}`", preset.name())).collect();
        assert_eq!(known, all.join(", "));
    }

    #[test]
    fn long_words_are_cut_at_a_character() {
        let long = "ä".repeat(40);
        let Err(ParseLayoutError::UnknownName { word, nearest: None }) = parse(&long) else {
            panic!("must be unknown")
        };
        assert_eq!(word.as_str(), "ä".repeat(16));
        assert_eq!(word.to_string(), std::format!("`{}…`", "ä".repeat(16)));
    }
}
