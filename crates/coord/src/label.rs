//! Labels: names of members, holders and doubts, for people. The named party chooses the text, and
//! other people read it on a terminal and in a log.

use std::fmt;

use crate::error::{Error, Result};

/// Returns whether a character has an effect where it is shown, instead of being visible. These are
/// control characters, line and paragraph separators, and characters that change the direction of
/// text or have no width.
#[must_use]
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A text on one line, with its control characters escaped: visible and without effect.
#[derive(Clone, Copy, Debug)]
pub struct Visible<'a>(pub &'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(is_control) {
            let (before, after) = rest.split_at(at);
            f.write_str(before)?;
            let mut after = after.chars();
            if let Some(control) = after.next() {
                write!(f, "{}", control.escape_default())?;
            }
            rest = after.as_str();
        }
        f.write_str(rest)
    }
}

/// Returns a text on one line, with its control characters escaped: [`Visible`], for a text that
/// rarely has any.
#[must_use]
pub fn visible(text: String) -> String {
    if text.contains(is_control) { Visible(&text).to_string() } else { text }
}

/// Checks that a text may be shown to people unchanged, and has at most `bytes_max` bytes.
///
/// # Errors
/// `Invalid` for an over-long text, and for a text with a control character.
pub fn check_label(what: &str, label: &str, bytes_max: usize) -> Result<()> {
    let bytes = label.len();
    if bytes > bytes_max {
        let message = format!("{what} label has {bytes} bytes, maximum {bytes_max}; shorten it");
        return Err(Error::invalid(message));
    }
    let Some((at, control)) = label.char_indices().find(|(_, c)| is_control(*c)) else {
        return Ok(());
    };
    Err(Error::invalid(format!(
        "{what} label \"{}\" has control character {control:?} at byte {at}; remove it",
        Visible(label)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROLS: &[char] = &[
        '\0', '\n', '\r', '\t', '\u{7}', '\u{1b}', '\u{7f}', '\u{85}', '\u{9b}', '\u{2028}',
        '\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}',
    ];

    #[test]
    fn labels_have_no_control_characters() {
        for label in ["", "snowmint-0", "a b", "Jose\u{301}", "日本語", "\"'\\", "🦀"] {
            check_label("owner", label, 255).unwrap();
            assert_eq!(Visible(label).to_string(), label);
        }
        for control in CONTROLS {
            let label = format!("a{control}b");
            let refused = check_label("owner", &label, 255).unwrap_err().to_string();
            assert!(refused.contains("owner label") && refused.contains("at byte 1"), "{refused}");
            let shown = Visible(&label).to_string();
            for text in [refused, shown] {
                assert!(!text.contains(is_control), "{text:?}");
            }
        }
        assert_eq!(Visible("\u{1b}[2Ja\nb\u{9b}").to_string(), "\\u{1b}[2Ja\\nb\\u{9b}");
        check_label("host", &"a".repeat(256), 255).unwrap_err();
    }
}
