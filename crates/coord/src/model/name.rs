//! Names of sources, stores and namespaces, and labels for people.

use crate::error::label::{Visible, is_control};
use crate::error::{Error, Result};

/// Maximum length of the name of a source or namespace, in bytes.
pub const NAME_BYTES_MAX: usize = 63;

/// Maximum length of an owner or host label, in bytes.
pub const LABEL_BYTES_MAX: usize = 255;

/// Checks the name of a source or a namespace; `what` names the kind for the error.
///
/// # Errors
/// `Invalid` for an empty, over-long or ill-formed name.
pub fn check_name(what: &str, name: &str) -> Result<()> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(legal) {
        return Err(Error::invalid(format!(
            "{what} {:?} is not a valid name; use 1 to {NAME_BYTES_MAX} of A-Z a-z 0-9 _ . -",
            name.chars().take(80).collect::<String>()
        )));
    }
    Ok(())
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
