//! The errors of a layout's text, with suggestions for correcting it.

use core::fmt;

use super::keys::KEYS;
use crate::civil::TimeError;
use crate::layout::{Field, LayoutError, PRESETS, Preset};

/// Up to 32 bytes of a word from a user's text, kept for error messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word {
    bytes: [u8; Self::BYTES_MAX],
    length: u8,
    cut: bool,
}

impl Word {
    const BYTES_MAX: usize = 32;

    pub(super) fn new(text: &str) -> Self {
        let mut end = text.len().min(Self::BYTES_MAX);
        while !text.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        let mut bytes = [0; Self::BYTES_MAX];
        for (to, from) in bytes.iter_mut().zip(text.bytes().take(end)) {
            *to = from;
        }
        // At most 32.
        Self { bytes, length: end.to_le_bytes()[0], cut: end < text.len() }
    }

    /// Returns the beginning of the word: all of it, unless it is longer than 32 bytes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.length)).unwrap_or_default();
        // Cut at a character boundary, so always valid text.
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Escaped: user input must not control the terminal that shows it.
        write!(f, "`{}{}`", self.as_str().escape_debug(), if self.cut { "…" } else { "" })
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error of a text that is not a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseLayoutError {
    /// A word is missing: the text is empty, or has two commas in a row.
    EmptyWord {
        /// Position in the text, in bytes.
        position: usize,
    },
    /// The first word is not the name of a preset.
    UnknownName {
        /// The word.
        word: Word,
        /// The preset with the most similar name.
        nearest: Option<&'static str>,
    },
    /// The word before `=` is not a key.
    UnknownKey {
        /// The word.
        word: Word,
        /// The most similar key.
        nearest: Option<&'static str>,
    },
    /// A word after the first has no `=`.
    NoValue {
        /// The word.
        word: Word,
    },
    /// A key occurs twice.
    Repeated {
        /// The key.
        key: &'static str,
    },
    /// A value is not a whole number, or out of range.
    Number {
        /// The key.
        key: &'static str,
        /// The value.
        word: Word,
        /// The lowest allowed number.
        min: u64,
        /// The highest allowed number.
        max: u64,
    },
    /// A value has a `+` outside worker and time, or splits one of them into parts without bits.
    Split {
        /// The key.
        key: &'static str,
        /// The value.
        word: Word,
    },
    /// A unit is not a number of `ns`, `us`, `ms` or `s`.
    Unit {
        /// The value.
        word: Word,
    },
    /// The epoch is neither a number of milliseconds nor a time.
    Epoch {
        /// The value.
        word: Word,
        /// The error of the value as a time.
        error: TimeError,
    },
    /// The preset does not have the field, so its width cannot change.
    NotInPreset {
        /// The field.
        field: Field,
        /// The preset.
        preset: &'static str,
    },
    /// The preset only decodes, also with overrides.
    OnlyDecodes {
        /// The preset.
        preset: &'static str,
    },
    /// Every word is valid, but together they make no layout.
    Layout(LayoutError),
}

impl fmt::Display for ParseLayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyWord { position } => write!(
                f,
                "no word at byte {position}: write a layout as `twitter` or `time=41,worker=10,sequence=12`"
            ),
            Self::UnknownName { word, nearest } => {
                write!(f, "no layout is called {word}")?;
                suggest(f, *nearest, PRESETS.iter().map(Preset::name))
            }
            Self::UnknownKey { word, nearest } => {
                write!(f, "a layout has no key {word}")?;
                suggest(f, *nearest, KEYS.into_iter())
            }
            Self::NoValue { word } => {
                write!(f, "{word} has no value: after the first word, write key=value")
            }
            Self::Repeated { key } => write!(f, "`{key}` stands twice"),
            Self::Number { key, word, min, max } => {
                write!(f, "`{key}` cannot be {word}: it is a whole number from {min} to {max}")
            }
            Self::Split { key, word } => write!(
                f,
                "`{key}` cannot be {word}: only worker and time have two parts, as worker=5+5"
            ),
            Self::Unit { word } => {
                write!(f, "`unit` cannot be {word}: write 10us, 1ms or 1s, or a number of ns")
            }
            Self::Epoch { word, error } => write!(
                f,
                "`epoch` cannot be {word}: {error}; or give Unix milliseconds as a whole number"
            ),
            Self::NotInPreset { field, preset } => write!(
                f,
                "`{preset}` has no {field} whose width could change: write the layout out in full"
            ),
            Self::OnlyDecodes { preset } => write!(
                f,
                "`{preset}` only decodes: to mint with these bits, write the layout out in full"
            ),
            Self::Layout(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl core::error::Error for ParseLayoutError {}

impl From<LayoutError> for ParseLayoutError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

fn suggest(
    f: &mut fmt::Formatter<'_>,
    nearest: Option<&str>,
    all: impl Iterator<Item = &'static str>,
) -> fmt::Result {
    if let Some(nearest) = nearest {
        return write!(f, ": did you mean `{nearest}`?");
    }
    for (index, name) in all.enumerate() {
        write!(f, "{}`{name}`", if index == 0 { ": there are " } else { ", " })?;
    }
    Ok(())
}

/// Returns the candidate that at most two typing errors turn into `word`.
pub(super) fn nearest(
    word: &str,
    candidates: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 2 && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns how many bytes must be added, dropped or changed to turn `from` into `to`.
fn distance(from: &str, to: &str) -> usize {
    // One row of the usual table; the names known here have at most 14 bytes.
    let mut row = [0_usize; 16];
    let Some(row) = row.get_mut(..=to.len()) else { return usize::MAX };
    if from.len() > 32 {
        return usize::MAX;
    }
    for (index, cell) in row.iter_mut().enumerate() {
        *cell = index;
    }
    for from_byte in from.bytes() {
        let mut diagonal = row[0];
        row[0] = diagonal.saturating_add(1);
        let mut left = row[0];
        for (cell, to_byte) in row.iter_mut().skip(1).zip(to.bytes()) {
            let change = diagonal.saturating_add(usize::from(from_byte != to_byte));
            diagonal = *cell;
            let move_one = left.min(diagonal).saturating_add(1);
            left = change.min(move_one);
            *cell = left;
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances_match_known_values() {
        for (from, to, slips) in [
            ("", "leaf", 4),
            ("leaf", "leaf", 0),
            ("leef", "leaf", 1),
            ("laef", "leaf", 2),
            ("redis", "js53", 5),
        ] {
            assert_eq!(distance(from, to), slips, "{from} {to}");
        }
    }
}
