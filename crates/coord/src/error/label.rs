//! Labels: names of members, holders and doubts, for people. The named party chooses the text, and
//! other people read it on a terminal and in a log.

use std::fmt;

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
