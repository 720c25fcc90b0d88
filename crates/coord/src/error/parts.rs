//! Error kinds as rows of plain values, and back, for transport between processes.

use super::{Error, ErrorKind, PoolFull};
use crate::lease::{Mark, Term};

/// All values of an error kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorParts {
    /// Stable name: [`ErrorKind::code`].
    pub code: String,
    /// Texts of the kind, in order of declaration.
    pub texts: Vec<String>,
    /// Numbers of the kind, in order of declaration.
    pub numbers: Vec<u64>,
    /// Details of [`ErrorKind::PoolFull`].
    pub full: Option<PoolFull>,
}

/// A number in a kind of error.
trait Number: Sized {
    fn number(&self) -> u64;
    fn of(number: u64) -> Option<Self>;
}

impl Number for u64 {
    fn number(&self) -> u64 {
        *self
    }

    fn of(number: u64) -> Option<Self> {
        Some(number)
    }
}

impl Number for u16 {
    fn number(&self) -> u64 {
        (*self).into()
    }

    fn of(number: u64) -> Option<Self> {
        number.try_into().ok()
    }
}

impl Number for Term {
    fn number(&self) -> u64 {
        self.get()
    }

    fn of(number: u64) -> Option<Self> {
        Some(Self::new(number))
    }
}

impl Number for Mark {
    fn number(&self) -> u64 {
        self.get()
    }

    fn of(number: u64) -> Option<Self> {
        Some(Self::new(number))
    }
}

/// Both conversions come from one list, so that they agree: the code, texts and numbers of each
/// kind.
macro_rules! kinds {
    ($($code:literal = $kind:ident { $($text:ident),* ; $($number:ident),* })*) => {
        impl ErrorKind {
            /// The codes of all kinds, each once.
            pub const CODES: &'static [&'static str] = &["pool_full", $($code),*];

            /// Returns all values of the kind, as plain values.
            #[must_use]
            pub fn parts(&self) -> ErrorParts {
                let code = self.code().to_owned();
                match self {
                    $(Self::$kind { $($text,)* $($number,)* } => ErrorParts {
                        code,
                        texts: vec![$($text.clone()),*],
                        numbers: vec![$(Number::number($number)),*],
                        full: None,
                    },)*
                    Self::PoolFull(full) => {
                        ErrorParts { code, full: Some((**full).clone()), ..ErrorParts::default() }
                    }
                }
            }

            /// Returns the kind with these values, or `None` when the code is unknown or the values
            /// do not fit it.
            fn from_parts(parts: ErrorParts) -> Option<Self> {
                let ErrorParts { code, texts, numbers, full } = parts;
                let (mut texts, mut numbers) = (texts.into_iter(), numbers.into_iter());
                Some(match code.as_str() {
                    "pool_full" => Self::PoolFull(Box::new(full?)),
                    $($code => Self::$kind {
                        $($text: texts.next()?,)*
                        $($number: Number::of(numbers.next()?)?,)*
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
        let kind = ErrorKind::from_parts(parts)
            .unwrap_or_else(|| ErrorKind::Unsupported { what: String::new() });
        match message.as_str() {
            "" => Self::of(kind, "server gave no reason"),
            _ => Self::of(kind, message),
        }
    }
}

kinds! {
    "unavailable" = Unavailable { what; }
    "fenced" = Fenced { slot; held, newest }
    "mark_moved" = MarkMoved { what; expected, found }
    "clock_ahead" = ClockAhead { compared_with; ahead_ms, limit_ms }
    "clock_behind" = ClockBehind { compared_with; behind_ms, limit_ms }
    "not_found" = NotFound { what; }
    "conflict" = Conflict { what, stored, wanted; }
    "invalid" = Invalid { what; }
    "store_went_back" = StoreWentBack { witness; seen, found }
    "other_store" = OtherStore { witness, expected, found; }
    "journal_refused" = JournalRefused { path, reason, way_out; }
    "locked" = Locked { what; }
    "exhausted" = Exhausted { what; limit }
    "tick_full" = TickFull { ; next_in_ms }
    "window_spent" = WindowSpent { ; mark }
    "epoch_spent" = EpochSpent { name; }
    "closed" = Closed { what; }
    "disabled" = Disabled { name; }
    "elsewhere" = Elsewhere { address; section }
    "too_many" = TooMany { what; wanted, limit }
    "corrupt" = Corrupt { what; }
    "storage_full" = StorageFull { what; }
    "unwritable" = Unwritable { what; }
    "no_right" = NoRight { what; }
    "unsafe_store" = UnsafeStore { what; }
    "unsupported" = Unsupported { what; }
    "internal" = Internal { what; }
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
            let texts = ["one", "two", "three"].map(str::to_owned).to_vec();
            let full = (code == "pool_full").then(|| full.clone());
            let parts = ErrorParts { code: code.into(), texts, numbers: vec![1, 2], full };
            ErrorKind::from_parts(parts).unwrap_or_else(|| panic!("{code}"))
        };
        ErrorKind::CODES.iter().map(made).collect()
    }

    #[test]
    fn every_kind_comes_back_as_it_was() {
        for kind in kinds() {
            let parts = kind.parts();
            assert_eq!(parts.code, kind.code());
            let error = Error::from_parts(parts, "it happened".into());
            assert_eq!((error.kind(), &*error.message()), (&kind, "it happened"));
        }
    }

    #[test]
    fn what_says_less_than_its_kind_is_none() {
        for mut parts in kinds().iter().map(ErrorKind::parts) {
            let had = parts.texts.pop().is_some() || parts.numbers.pop().is_some();
            let had = had || parts.full.take().is_some();
            assert!(had, "{} says nothing", parts.code);
            assert_eq!(ErrorKind::from_parts(parts.clone()), None, "{parts:?}");
        }
        let unknown = ErrorParts { code: "of_tomorrow".into(), ..ErrorParts::default() };
        assert_eq!(ErrorKind::from_parts(unknown.clone()), None);
        let error = Error::from_parts(unknown.clone(), "it happened".into());
        assert_eq!((error.kind().code(), &*error.message()), ("unsupported", "it happened"));
        assert_eq!(Error::from_parts(unknown, String::new()).message(), "server gave no reason");
        let texts = vec!["here:7701".to_owned()];
        let section =
            ErrorParts { code: "elsewhere".into(), texts, numbers: vec![65_536], full: None };
        assert_eq!(ErrorKind::from_parts(section), None, "no section has this number");
    }
}
