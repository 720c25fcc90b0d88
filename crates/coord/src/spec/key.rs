//! One key of a source: a row of the table in `keys`.

use std::ops::RangeInclusive;

use super::duration::Span;
use super::kind::Kind;

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
    /// Meaning, in a sentence, with `{words}` in place of the words that it takes.
    pub(super) doc: &'static str,
    /// Least and most that any source may have; of a duration in milliseconds. Other keys may
    /// narrow it.
    pub within: Option<(u64, u64)>,
    /// Whether it is part of the source's identity, which no `alter` changes.
    pub fixed: bool,
}

impl Key {
    /// Returns its meaning, in a sentence.
    #[must_use]
    pub fn doc(&self) -> String {
        match self.takes {
            Takes::Word(words) => self.doc.replace("{words}", &either(words())),
            _ => self.doc.into(),
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

    /// Returns the key as a part of the source's identity.
    pub(super) const fn fixed(mut self) -> Self {
        self.fixed = true;
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

/// Returns a key without bounds.
pub(super) const fn key(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    kinds: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, takes, default, kinds, doc, within: None, fixed: false }
}
