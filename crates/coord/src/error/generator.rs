//! Conversion of the errors of a generator or the system to [`Error`].

use std::path::Path;
use std::{fmt, io};

use snowmint_core::MintError;

use crate::error::{Error, Retry};
use crate::ids::Mark;

impl Error {
    /// Creates the error for the generator of `name`, such as `worker 7`, which minted nothing.
    #[must_use]
    pub fn refused(name: impl fmt::Display, reason: MintError) -> Self {
        let error = match reason {
            MintError::TickFull { retry_after_ms, .. } => Self::tick_full(retry_after_ms),
            MintError::ClockBehind { by_ms, limit_ms, .. } => {
                let message = format!(
                    "clock is {by_ms} ms behind the last ID of {name}, limit {limit_ms} ms; \
                     wait or correct the clock"
                );
                Self::clock_behind(by_ms, limit_ms, message)
            }
            MintError::NoClockValue { values, by_ms } => {
                let message = format!(
                    "clock is {by_ms} ms behind the last IDs of all {values} clock values of \
                     {name}; wait or correct the clock"
                );
                Self::clock_behind(by_ms, 0, message)
            }
            MintError::BeforeEpoch { by_ms } => {
                let message = format!(
                    "clock is {by_ms} ms before the epoch of {name}; \
                     correct the clock or choose an earlier epoch"
                );
                Self::clock_behind(by_ms, 0, message)
            }
            MintError::WindowSpent { mark } => Self::window_spent(Mark::new(mark.get())),
            MintError::EpochSpent { .. } => Self::epoch_spent(format!(
                "no time left in the layout of {name}; define a source with a newer epoch"
            )),
            MintError::Closed => Self::closed(format!("{name} is closed; open it again")),
            other => {
                let message =
                    format!("internal error: unknown error of {name}: {other}; please report it");
                return Self::internal(message);
            }
        };
        error.with_retry(reason.retry_after_ms().map_or(Retry::Never, Retry::AfterMs))
    }

    /// Creates the error for a failed operation on the file or directory at `path`.
    #[must_use]
    pub fn io(path: &Path, error: io::Error) -> Self {
        let failed = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::storage_full(
                "no space left for a local file; free space (acknowledged data is safe)",
            ),
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::IsADirectory => Self::store_read_only(
                "local file or directory cannot be written; check owner, permissions and mount",
            ),
            _ => Self::unavailable(
                "local file or directory cannot be accessed; check the disk, then retry",
            ),
        };
        failed.with_detail(format!("{path:?}")).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmint_core::UnixMillis;

    #[test]
    fn file_errors_name_the_path_in_their_detail_alone() {
        for kind in
            [io::ErrorKind::StorageFull, io::ErrorKind::PermissionDenied, io::ErrorKind::Other]
        {
            let error = Error::io(Path::new("/var/lib/ids"), io::Error::from(kind));
            assert!(!error.message().contains('/'), "{kind}: {error}");
            assert!(error.to_string().ends_with(" (\"/var/lib/ids\")"), "{kind}: {error}");
        }
    }

    #[test]
    fn every_mint_error_keeps_numbers_and_retry() {
        let next = UnixMillis::new(9);
        for (reason, code, retry) in [
            (MintError::TickFull { next, retry_after_ms: 3 }, "tick_full", Retry::AfterMs(3)),
            (
                MintError::ClockBehind { by_ms: 9, limit_ms: 5, retry_after_ms: 4 },
                "clock_behind",
                Retry::AfterMs(4),
            ),
            (MintError::NoClockValue { values: 8, by_ms: 7 }, "clock_behind", Retry::AfterMs(7)),
            (MintError::BeforeEpoch { by_ms: 6 }, "clock_behind", Retry::AfterMs(6)),
            (MintError::WindowSpent { mark: next }, "window_spent", Retry::AfterMs(1)),
            (MintError::EpochSpent { end: next }, "epoch_spent", Retry::Never),
            (MintError::Closed, "closed", Retry::Never),
        ] {
            let error = Error::refused("worker 7", reason);
            assert_eq!((error.kind().code(), error.retry()), (code, retry), "{reason:?}");
        }
        let behind = MintError::ClockBehind { by_ms: 9, limit_ms: 5, retry_after_ms: 4 };
        assert_eq!(
            Error::refused("worker 7", behind).message(),
            "clock is 9 ms behind the last ID of worker 7, limit 5 ms; wait or correct the clock"
        );
    }
}
