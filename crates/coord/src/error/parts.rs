//! Error kinds as rows of plain values, and back, for transport between processes.

use super::{Error, ErrorKind, PoolFull};
use crate::ids::Mark;

/// All values of an error kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorParts {
    /// Stable name: [`ErrorKind::code`].
    pub code: String,
    /// Texts on which programs act, in order of declaration; empty for most kinds.
    pub texts: Vec<String>,
    /// Numbers on which programs act, in order of declaration; empty for most kinds.
    pub numbers: Vec<u64>,
    /// Details of [`ErrorKind::PoolFull`].
    pub full: Option<PoolFull>,
}

/// A number in a kind of error.
trait KindNumber: Sized {
    fn number(&self) -> u64;
    fn of(number: u64) -> Option<Self>;
}

impl KindNumber for u64 {
    fn number(&self) -> u64 {
        *self
    }

    fn of(number: u64) -> Option<Self> {
        Some(number)
    }
}

impl KindNumber for u16 {
    fn number(&self) -> u64 {
        (*self).into()
    }

    fn of(number: u64) -> Option<Self> {
        number.try_into().ok()
    }
}

impl KindNumber for Mark {
    fn number(&self) -> u64 {
        self.get()
    }

    fn of(number: u64) -> Option<Self> {
        Some(Self::new(number))
    }
}

/// Codes and both conversions come from one list, so that they agree: the code of each kind, with
/// the texts and numbers of those that have some.
macro_rules! kinds {
    (
        $($plain_code:literal = $plain:ident;)*
        values:
        $($code:literal = $kind:ident { $($text:ident),* ; $($number:ident),* })*
    ) => {
        impl ErrorKind {
            /// The codes of all kinds, each once.
            pub const CODES: &'static [&'static str] = &["pool_full", $($plain_code,)* $($code),*];

            /// Returns a short, stable name for machines, such as `pool_full`.
            #[must_use]
            pub fn code(&self) -> &'static str {
                match self {
                    Self::PoolFull(_) => "pool_full",
                    $(Self::$plain => $plain_code,)*
                    $(Self::$kind { .. } => $code,)*
                }
            }

            /// Returns all values of the kind, as plain values.
            #[must_use]
            pub fn parts(&self) -> ErrorParts {
                let mut parts = ErrorParts { code: self.code().to_owned(), ..ErrorParts::default() };
                match self {
                    $(Self::$plain => {})*
                    $(Self::$kind { $($text,)* $($number,)* } => {
                        parts.texts = vec![$($text.clone()),*];
                        parts.numbers = vec![$(KindNumber::number($number)),*];
                    })*
                    Self::PoolFull(full) => parts.full = Some((**full).clone()),
                }
                parts
            }

            /// Returns the kind with these values, or `None` when the code is unknown or the values
            /// do not fit it. Further values are ignored.
            fn from_parts(parts: ErrorParts) -> Option<Self> {
                let ErrorParts { code, texts, numbers, full } = parts;
                let (mut texts, mut numbers) = (texts.into_iter(), numbers.into_iter());
                Some(match code.as_str() {
                    "pool_full" => Self::PoolFull(Box::new(full?)),
                    $($plain_code => Self::$plain,)*
                    $($code => Self::$kind {
                        $($text: texts.next()?,)*
                        $($number: KindNumber::of(numbers.next()?)?,)*
                    },)*
                    _ => return None,
                })
            }
        }
    };
}

impl Error {
    /// Returns the error of these values with this message. It is `Unsupported` when the code is
    /// unknown or the values do not fit it: a newer process sent it.
    #[must_use]
    pub fn from_parts(parts: ErrorParts, message: String) -> Self {
        let kind = ErrorKind::from_parts(parts).unwrap_or(ErrorKind::Unsupported);
        match message.as_str() {
            "" => Self::of(kind, "server gave no reason"),
            _ => Self::of(kind, message),
        }
    }
}

kinds! {
    "unavailable" = Unavailable;
    "fenced" = Fenced;
    "not_found" = NotFound;
    "conflict" = Conflict;
    "invalid" = Invalid;
    "store_mismatch" = StoreMismatch;
    "journal_refused" = JournalRefused;
    "locked" = Locked;
    "exhausted" = Exhausted;
    "epoch_spent" = EpochSpent;
    "closed" = Closed;
    "disabled" = Disabled;
    "limit_exceeded" = LimitExceeded;
    "corrupt" = Corrupt;
    "storage_full" = StorageFull;
    "store_read_only" = StoreReadOnly;
    "store_permission_denied" = StorePermissionDenied;
    "unsafe_store" = UnsafeStore;
    "unsupported" = Unsupported;
    "internal" = Internal;
    values:
    "mark_moved" = MarkMoved { ; expected, found }
    "clock_ahead" = ClockAhead { ; ahead_ms, limit_ms }
    "clock_behind" = ClockBehind { ; behind_ms, limit_ms }
    "store_rolled_back" = StoreRolledBack { evidence; seen, found }
    "tick_full" = TickFull { ; next_in_ms }
    "window_spent" = WindowSpent { ; mark }
    "not_owner" = NotOwner { address; section }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one error of each kind, with distinct values.
    fn kinds() -> Vec<ErrorKind> {
        let full = PoolFull {
            pool: "workers-10".into(),
            groups: 1024,
            only: Some(7),
            held: 3,
            marked_ahead: 2,
            holders: Vec::new(),
            usable_at: None,
            usable_in_ms: Some(9),
            by_recovery: false,
        };
        let made = |&code: &&str| {
            let texts = vec!["one".to_owned()];
            let full = (code == "pool_full").then(|| full.clone());
            let parts = ErrorParts { code: code.into(), texts, numbers: vec![1, 2], full };
            ErrorKind::from_parts(parts).unwrap_or_else(|| panic!("{code}"))
        };
        ErrorKind::CODES.iter().map(made).collect()
    }

    #[test]
    fn error_kinds_survive_a_round_trip() {
        for kind in kinds() {
            let parts = kind.parts();
            assert_eq!(parts.code, kind.code());
            let error = Error::from_parts(parts, "it happened".into());
            assert_eq!((error.kind(), &*error.message()), (&kind, "it happened"));
        }
    }

    #[test]
    fn missing_values_make_no_error_kind() {
        for mut parts in kinds().iter().map(ErrorKind::parts) {
            let had = parts.texts.pop().is_some() || parts.numbers.pop().is_some();
            if had || parts.full.take().is_some() {
                assert_eq!(ErrorKind::from_parts(parts.clone()), None, "{parts:?}");
            }
        }
        let unknown = ErrorParts { code: "of_tomorrow".into(), ..ErrorParts::default() };
        assert_eq!(ErrorKind::from_parts(unknown.clone()), None);
        let error = Error::from_parts(unknown.clone(), "it happened".into());
        assert_eq!((error.kind().code(), &*error.message()), ("unsupported", "it happened"));
        assert_eq!(Error::from_parts(unknown, String::new()).message(), "server gave no reason");
        let texts = vec!["here:7701".to_owned()];
        let section =
            ErrorParts { code: "not_owner".into(), texts, numbers: vec![65_536], full: None };
        assert_eq!(ErrorKind::from_parts(section), None, "no section has this number");
    }
}
