//! Conversion of the errors of a generator or the system to [`Error`].

use std::io;
use std::path::Path;

use snowmint_core::Refusal;

use crate::error::{Error, ErrorKind, Retry};
use crate::lease::Mark;

impl Error {
    /// Creates the error for the generator of `name`, which minted nothing.
    #[must_use]
    pub fn refused(name: &str, why: Refusal) -> Self {
        let kind = match why {
            Refusal::TickFull { retry_after_ms, .. } => {
                ErrorKind::TickFull { next_in_ms: retry_after_ms }
            }
            Refusal::ClockBehind { by_ms, limit_ms, .. } => ErrorKind::ClockBehind {
                behind_ms: by_ms,
                limit_ms,
                compared_with: format!("the last ID of {name}"),
            },
            Refusal::NoClockValue { values, by_ms } => ErrorKind::ClockBehind {
                behind_ms: by_ms,
                limit_ms: 0,
                compared_with: format!("the last IDs of all {values} clock values of {name}"),
            },
            Refusal::BeforeEpoch { by_ms } => ErrorKind::ClockBehind {
                behind_ms: by_ms,
                limit_ms: 0,
                compared_with: format!("the epoch of {name}"),
            },
            Refusal::WindowSpent { mark } => ErrorKind::WindowSpent { mark: Mark::new(mark.get()) },
            Refusal::EpochSpent { .. } => ErrorKind::EpochSpent { name: name.into() },
            Refusal::Closed => ErrorKind::Closed { what: name.into() },
            other => {
                let why =
                    format!("internal error: unknown error of {name}: {other}; please report it");
                return Self::internal(why);
            }
        };
        Self::from(kind).with_retry(why.retry_after_ms().map_or(Retry::Never, Retry::AfterMs))
    }

    /// Creates the error for a failed operation on the file or directory at `path`.
    #[must_use]
    pub fn io(path: &Path, error: io::Error) -> Self {
        let what = path.display().to_string();
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                ErrorKind::StorageFull { what }
            }
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::IsADirectory => ErrorKind::Unwritable { what },
            _ => ErrorKind::Unavailable { what },
        };
        Self::from(kind).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmint_core::UnixMillis;

    #[test]
    fn every_refusal_keeps_its_numbers_and_its_retry() {
        let next = UnixMillis::new(9);
        for (why, code, retry) in [
            (Refusal::TickFull { next, retry_after_ms: 3 }, "tick_full", Retry::AfterMs(3)),
            (
                Refusal::ClockBehind { by_ms: 9, limit_ms: 5, retry_after_ms: 4 },
                "clock_behind",
                Retry::AfterMs(4),
            ),
            (Refusal::NoClockValue { values: 8, by_ms: 7 }, "clock_behind", Retry::AfterMs(7)),
            (Refusal::BeforeEpoch { by_ms: 6 }, "clock_behind", Retry::AfterMs(6)),
            (Refusal::WindowSpent { mark: next }, "window_spent", Retry::AfterMs(1)),
            (Refusal::EpochSpent { end: next }, "epoch_spent", Retry::Never),
            (Refusal::Closed, "closed", Retry::Never),
        ] {
            let error = Error::refused("orders", why);
            assert_eq!((error.kind().code(), error.retry()), (code, retry), "{why:?}");
        }
        let behind = Refusal::ClockBehind { by_ms: 9, limit_ms: 5, retry_after_ms: 4 };
        assert_eq!(
            Error::refused("orders", behind).to_string(),
            "9 ms behind the last ID of orders, where 5 ms are allowed; check the clock"
        );
    }
}
