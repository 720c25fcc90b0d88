//! One key of a source: a row of the table.

use std::ops::RangeInclusive;

use super::duration::Span;
use super::kind::{
    Confirm, DisguiseMode, KeyNames, Kind, MintBy, OnEmpty, OnRollback, Order, SerialReset,
    StepRule, Unique,
};
use super::words::words;

/// Written form of a key's value.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// Text, in quotes in TOML and JSON.
    Text,
    /// One of these words, as a text.
    Word(fn() -> &'static [&'static str]),
    /// Duration, as a text: `5s`.
    Duration,
    /// Whole number.
    Number,
    /// `true` or `false`.
    Flag,
}

/// One key of a source.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name, with dots: `prefill.boost`.
    pub name: &'static str,
    /// Written form of its value.
    pub takes: Takes,
    /// Default, as text; empty where there is nothing to write.
    pub default: &'static str,
    /// Kinds of source for which it has a meaning: `all`, or names of kinds, each perhaps with a
    /// condition (`segment; snowflake with mint = store`).
    pub kinds: &'static str,
    /// Comment that has its meaning, with `{words}` in place of the words that it takes.
    about: &'static str,
    /// Least and most that any source may have; of a duration in milliseconds. Other keys may
    /// narrow it.
    pub within: Option<(u64, u64)>,
    /// Whether it is part of the source's identity, which no `alter` changes.
    pub fixed: bool,
}

impl Key {
    /// Creates a key without a default and bounds, and with the comment of its field.
    pub(super) const fn new(
        name: &'static str,
        takes: Takes,
        kinds: &'static str,
        about: &'static str,
    ) -> Self {
        Self { name, takes, default: "", kinds, about, within: None, fixed: false }
    }

    /// Returns its meaning, in a sentence, without capital and full stop.
    #[must_use]
    pub fn doc(&self) -> String {
        let text = self.about.trim().replace('`', "");
        let whole = text.strip_suffix('.').filter(|text| !text.ends_with('.')).unwrap_or(&text);
        let mut letters = whole.chars();
        let first =
            letters.next().filter(|_| letters.clone().next().is_some_and(char::is_lowercase));
        let meaning = match first {
            Some(first) => first.to_lowercase().chain(letters).collect(),
            // A name, or a number.
            None => whole.to_owned(),
        };
        match self.takes {
            Takes::Word(words) => meaning.replace("{words}", &either(words())),
            _ => meaning,
        }
    }

    /// Returns the name of its table, or its own where it is in none.
    pub(super) fn table(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(table, _)| table)
    }

    /// Returns whether it has a meaning for sources of this kind, perhaps under a condition.
    #[must_use]
    pub fn is_for(&self, kind: Kind) -> bool {
        let mut parts = self.kinds.split([',', ';']);
        self.kinds == "all" || parts.any(|part| part.split_whitespace().next() == Some(kind.name()))
    }

    /// Returns the condition under which it has a meaning for this kind (`with mint = store`);
    /// empty if there is none.
    #[must_use]
    pub fn condition(&self, kind: Kind) -> &'static str {
        let parts = self.kinds.split(';').map(str::trim);
        let mut conditions = parts.filter_map(|part| part.strip_prefix(kind.name()));
        // A list of kinds is no condition.
        conditions.find(|rest| rest.starts_with(' ')).map_or("", str::trim)
    }

    /// Returns the key with bounds.
    pub(super) const fn within(mut self, bounds: &RangeInclusive<u64>) -> Self {
        self.within = Some((*bounds.start(), *bounds.end()));
        self
    }

    /// Returns the key as a part of the source's identity, or not.
    pub(super) const fn fixed(mut self, fixed: bool) -> Self {
        self.fixed = fixed;
        self
    }

    /// Returns the key with a default.
    pub(super) const fn or(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    /// Returns the bounds in words, if it has any: `1s to 1d`.
    #[must_use]
    pub fn bounds(&self) -> Option<String> {
        let (least, most) = self.within?;
        let shown = |bound| match self.takes {
            Takes::Duration => Span::from_ms(bound).to_string(),
            _ => bound.to_string(),
        };
        Some(match most {
            u64::MAX => format!("at least {}", shown(least)),
            _ => format!("{} to {}", shown(least), shown(most)),
        })
    }
}

/// Returns words as a choice: `a, b or c`.
fn either(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}

/// One field of the keys as written.
#[derive(Debug)]
pub(super) enum Row {
    /// A key.
    Key(Key),
    /// A table of keys.
    Table(&'static [Self]),
}

impl Row {
    /// Returns the key, or those of the table.
    pub(super) fn keys(&self) -> impl DoubleEndedIterator<Item = &Key> {
        let (key, table) = match self {
            Self::Key(key) => (Some(key), &[][..]),
            Self::Table(rows) => (None, *rows),
        };
        let of_table = table.iter().filter_map(|row| match row {
            Self::Key(key) => Some(key),
            // No table has tables.
            Self::Table(_) => None,
        });
        key.into_iter().chain(of_table)
    }
}

/// Type of a key's value.
pub(super) trait Taken {
    /// Written form of the value.
    const TAKES: Takes;
}

/// Implements [`Taken`].
macro_rules! taken {
    ($($takes:expr => $($type:ty),*;)*) => {$($(
        impl Taken for $type {
            const TAKES: Takes = $takes;
        }
    )*)*};
}

taken! {
    Takes::Text => String;
    Takes::Duration => Span;
    Takes::Number => u64, u32, u8;
    Takes::Flag => bool;
    Takes::Word(words::<Self>) => Kind, MintBy, Unique, Order, OnRollback, OnEmpty, DisguiseMode,
        StepRule, Confirm, KeyNames, SerialReset;
}
