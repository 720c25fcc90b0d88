//! Secrets: their stored form, and their comparison.
//!
//! The server keeps the SHA-256 of a token. A hash suffices for a random token, which is too long
//! to guess. A password that a person invented would need a slow hash, and is rejected where tokens
//! are made.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use axum::http::HeaderValue;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Prefix of the text form of a hash.
const SCHEME: &str = "sha256:";
/// Shortest token that may be made, in bytes.
const TOKEN_BYTES_MIN: usize = 32;
/// Fewest distinct bytes of a token that may be made.
const DIFFERENT_BYTES_MIN: usize = 10;

/// Hash of a token. Its text form is `sha256:HEX`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Hashes a token.
    #[must_use]
    pub fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Hashes a new token, which must be hard to guess.
    ///
    /// # Errors
    /// The defect, without the token.
    pub fn of_new(token: &str) -> Result<Self, String> {
        let mut seen = [false; 256];
        token.bytes().for_each(|byte| seen[usize::from(byte)] = true);
        let different = seen.iter().filter(|&&seen| seen).count();
        if token.len() < TOKEN_BYTES_MIN || different < DIFFERENT_BYTES_MIN {
            return Err(format!(
                "token is easy to guess; use at least {TOKEN_BYTES_MIN} random characters, of \
                 which {DIFFERENT_BYTES_MIN} differ"
            ));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("token has blanks, or characters beyond ASCII; remove them".to_owned());
        }
        Ok(Self::of(token.as_bytes()))
    }

    /// Returns a part of the hash as a table key. An attacker who tries tokens cannot steer it.
    fn head(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }

    /// Compares in a time that does not depend on where the hashes differ.
    fn same(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl FromStr for TokenHash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The text may be a token, put here by mistake: the error does not show it.
        let wrong = || {
            format!(
                "invalid hash; write {SCHEME} and 64 hexadecimal digits (`snowmint token new` \
                 makes it)"
            )
        };
        let digits = text.strip_prefix(SCHEME).map(str::as_bytes).ok_or_else(wrong)?;
        if digits.len() != 64 {
            return Err(wrong());
        }
        let digit =
            |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = pair else { return Err(wrong()) };
            let (high, low) = (digit(high).ok_or_else(wrong)?, digit(low).ok_or_else(wrong)?);
            *byte = high << 4 | low;
        }
        Ok(Self(hash))
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    /// Writes enough of the hash to distinguish two in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{:02x}{:02x}…", self.0[0], self.0[1])
    }
}

/// A secret that has to be sent or compared. No output shows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret with this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, for the one place that needs it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns the header value, which is never logged.
    pub(crate) fn bearer(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Values by token.
#[derive(Clone, Debug)]
pub(crate) struct ByToken<T> {
    /// Entries by the head of their hash, nearly always one each.
    entries: HashMap<u64, Vec<(TokenHash, T)>>,
}

impl<T> Default for ByToken<T> {
    fn default() -> Self {
        Self { entries: HashMap::new() }
    }
}

impl<T> ByToken<T> {
    /// Inserts a value; returns false when the token has one already.
    pub(crate) fn insert(&mut self, hash: TokenHash, value: T) -> bool {
        if self.find(&hash).is_some() {
            return false;
        }
        self.entries.entry(hash.head()).or_default().push((hash, value));
        true
    }

    /// Returns the value of a token, by its hash.
    pub(crate) fn find(&self, hash: &TokenHash) -> Option<&T> {
        let near = self.entries.get(&hash.head())?;
        near.iter().find(|(known, _)| known.same(hash)).map(|(_, value)| value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_sha_256_and_round_trips() {
        let hash = TokenHash::of(b"abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.to_string(), text);
        assert_eq!(text.parse(), Ok(hash));
        assert_eq!(text.replace("sha256:ba", "sha256:BA").parse(), Ok(hash));
        assert_ne!(TokenHash::of(b"abd"), hash);
        assert!(!format!("{hash:?}").contains("8f01cfea"));
    }

    #[test]
    fn invalid_hash_is_rejected_and_not_shown() {
        let long = format!("sha256:{}", "a".repeat(65));
        let odd = format!("sha256:{}", "g".repeat(64));
        let plus = format!("sha256:{}", "+1".repeat(32));
        for text in ["", "sha256:", "hunter22", "md5:0000", &long, &odd, &plus] {
            let error = text.parse::<TokenHash>().unwrap_err();
            assert!(text.len() < 8 || !error.contains(text), "{error}");
        }
    }

    #[test]
    fn password_like_token_is_rejected() {
        for short in
            ["", "hunter2", &"a".repeat(64), &"abcdefghi".repeat(8), &"ab cdefghijkl".repeat(8)]
        {
            let error = TokenHash::of_new(short).unwrap_err();
            assert!(short.is_empty() || !error.contains(short), "{error}");
        }
        assert!(TokenHash::of_new("0123456789abcdef0123456789abcdef").is_ok());
    }

    #[test]
    fn a_table_finds_by_the_whole_hash() {
        let mut table = ByToken::default();
        assert!(table.is_empty());
        let (one, mut other) = (TokenHash::of(b"one"), TokenHash::of(b"one"));
        other.0[31] ^= 1;
        assert!(table.insert(one, 1) && table.insert(other, 2));
        assert!(!table.insert(one, 3));
        assert_eq!((table.find(&one), table.find(&other)), (Some(&1), Some(&2)));
        other.0[30] ^= 1;
        assert_eq!(table.find(&other), None);
    }

    #[test]
    fn a_secret_does_not_show() {
        assert!(!format!("{:?}", Some(Secret::new("hunter2"))).contains("hunter2"));
    }
}
