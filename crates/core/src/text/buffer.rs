//! The buffer of a text.

use core::fmt;
use core::ops::Deref;

/// Length of the longest text in bytes: a friendly one.
pub(super) const TEXT_BYTES_MAX: usize = 48;

/// A text on the stack.
#[derive(Clone, Copy)]
pub struct Text {
    pub(super) bytes: [u8; TEXT_BYTES_MAX],
    pub(super) start: u8,
    pub(super) end: u8,
}

impl Text {
    /// Returns the text as ASCII bytes, at no cost.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(usize::from(self.start)..usize::from(self.end)).unwrap_or_default()
    }

    /// Returns the text. Checks again that it is valid UTF-8, which takes some nanoseconds.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only ASCII is ever written.
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
