//! Failures of calls to servers, by how much may have been applied.

use std::error::Error as StdError;

use snowmint_coord::error::chain;
use snowmint_coord::{Error, Retry};
use snowmint_wire::error::{Code, RespPrefix};
use tonic::{ConnectError, Status};
use tonic_types::StatusExt as _;

/// Reason why a server did not respond to a call with a result.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// Not applied: any server may be called.
    NotApplied(Error),
    /// Not applied, because less time was left than a server gets for accepting a connection.
    DeadlineTooShort(Error),
    /// Possibly applied, or may be yet: only a call that may be repeated is retried.
    Unknown(Error),
    /// The same, because the server cannot reach its store; perhaps other servers can.
    BackendLost(Error),
    /// Not applied, and this server will not do it: it is not the right one. Another may be.
    WrongServer(Error),
    /// Not applied, and no server will do it for this many milliseconds.
    RetryAfter(Error, u64),
    /// No result, since the server is cut off from its dependencies; another server may not be.
    /// Waiting for this many milliseconds may help, too.
    Degraded(Error, u64),
    /// Not applied, because the caller exceeds its rate, and will for this many milliseconds.
    RateLimited(Error, u64),
    /// Not applied, because the server cannot identify the caller by its credentials.
    Unauthenticated(Error),
    /// A retry, here or at another server, does not help.
    Refused(Error),
}

impl CallFailure {
    /// Marks a failure as not applied for a call that is made once. With retries, an earlier
    /// attempt may have been applied.
    pub(crate) fn of_one_call(self) -> Self {
        match self {
            Self::NotApplied(cause) => Self::NotApplied(cause.with_not_applied()),
            Self::DeadlineTooShort(cause) => Self::DeadlineTooShort(cause.with_not_applied()),
            Self::RateLimited(cause, ms) => Self::RateLimited(cause.with_not_applied(), ms),
            other => other,
        }
    }
}

/// Names a server in the detail of an error: the program that calls it may be a server itself, with
/// callers that may not learn the address.
pub(crate) fn at(address: &str, error: Error) -> Error {
    error.with_detail(format!("server {address}"))
}

/// Returns the error for a server that cannot be called. The cause may name an address.
pub(crate) fn unavailable(address: &str, cause: &str) -> Error {
    Error::unavailable("server is unavailable; check that it runs and is reachable")
        .with_detail(format!("server {address}: {cause}"))
}

/// Returns the code that a Snowmint server gave as its reason.
pub(crate) fn reason(status: &Status) -> Option<Code> {
    let info = status.get_details_error_info()?;
    Code::from_name(&info.reason.to_ascii_lowercase())
}

/// Returns the server's retry delay in milliseconds, or 0 without one.
fn hint_ms(status: &Status) -> u64 {
    let hint = status.get_details_retry_info().and_then(|info| info.retry_delay);
    hint.map_or(0, |hint| u64::try_from(hint.as_millis()).unwrap_or(u64::MAX))
}

/// Classifies the status of a store call; errors of the store itself arrive in responses.
pub(crate) fn of_store(path: &str, address: &str, status: &Status) -> CallFailure {
    match reason(status) {
        None if is_connect(status) => CallFailure::NotApplied(unavailable(address, &cause(status))),
        // gRPC's own code with the same meaning.
        None if status.code() == tonic::Code::Unimplemented => {
            CallFailure::WrongServer(older(path, address, status))
        }
        Some(Code::Closed | Code::Overloaded) => {
            CallFailure::NotApplied(at(address, Error::unavailable(rejected(status))))
        }
        Some(Code::RateLimited) => {
            let ms = hint_ms(status);
            let error = at(address, Error::unavailable(rejected(status)));
            CallFailure::RateLimited(error.with_retry(Retry::AfterMs(ms)), ms)
        }
        Some(Code::Unsupported) => CallFailure::WrongServer(older(path, address, status)),
        Some(Code::Unauthenticated) => {
            CallFailure::Unauthenticated(unauthenticated(address, status))
        }
        Some(Code::Forbidden | Code::Misdirected) => {
            CallFailure::Refused(forbidden(address, status))
        }
        Some(Code::BadRequest | Code::LimitExceeded) => {
            CallFailure::Refused(at(address, Error::invalid(rejected(status))))
        }
        _ => CallFailure::Unknown(
            Error::unavailable("server sent no result; the call may have been applied")
                .with_detail(format!("server {address}: {}", cause(status))),
        ),
    }
}

/// Classifies the status of a request for IDs; a retry takes other IDs, so all may be retried.
pub(crate) fn of_mint(path: &str, address: &str, source: &str, status: &Status) -> CallFailure {
    let Some(code) = reason(status) else {
        return match status.code() {
            // The same as in `of_store`.
            tonic::Code::Unimplemented => CallFailure::WrongServer(older(path, address, status)),
            _ => CallFailure::NotApplied(unavailable(address, &cause(status))),
        };
    };
    let message = status.message().to_owned();
    let error = match code {
        Code::Unauthenticated => {
            return CallFailure::Unauthenticated(unauthenticated(address, status));
        }
        Code::Forbidden | Code::Misdirected => {
            return CallFailure::Refused(forbidden(address, status));
        }
        Code::UnknownSource => {
            Error::not_found(format!("source {source:?} does not exist; define it"))
        }
        Code::Disabled => Error::disabled(format!(
            "source {source:?} is disabled; enable it (snowmint source enable NAME)"
        )),
        Code::EpochSpent => Error::epoch_spent(format!(
            "no time left in the layout of source {source:?}; define a source with a newer epoch"
        )),
        Code::BadRequest | Code::LimitExceeded => Error::invalid(message),
        Code::Exhausted => Error::exhausted(message),
        // A newer server may support it.
        Code::Unsupported => return CallFailure::WrongServer(Error::unsupported(message)),
        Code::Closed | Code::Overloaded => {
            return CallFailure::NotApplied(at(address, Error::unavailable(rejected(status))));
        }
        code => {
            let error = at(address, Error::unavailable(rejected(status)));
            let is_later = code.row().resp == RespPrefix::TryAgain;
            let hint_ms = hint_ms(status);
            let error = error.with_retry(Retry::AfterMs(hint_ms));
            return match code {
                Code::RateLimited => CallFailure::RateLimited(error, hint_ms),
                Code::Unavailable => CallFailure::Degraded(error, hint_ms),
                _ if is_later => CallFailure::RetryAfter(error, hint_ms),
                _ => CallFailure::Refused(error.with_retry(Retry::Never)),
            };
        }
    };
    CallFailure::Refused(error)
}

/// Returns the error for a verb, or a part of its message, that a server does not know.
fn older(path: &str, address: &str, status: &Status) -> Error {
    let message = format!("server does not support {path}; update the server");
    at(address, Error::unsupported(message)).with_source(status.clone())
}

/// Returns the error for a server that describes no store.
pub(crate) fn offers_none(address: &str, status: &Status) -> Error {
    let message = "server offers no store to embedded clients; set store.offered = true there, or \
                   update it";
    at(address, Error::unsupported(message)).with_source(status.clone())
}

/// Returns the sentence for a call that a server rejected: its own message says what to do.
fn rejected(status: &Status) -> String {
    format!("server rejected the call: {}", status.message())
}

fn forbidden(address: &str, status: &Status) -> Error {
    at(address, Error::unsupported(rejected(status)))
}

fn unauthenticated(address: &str, status: &Status) -> Error {
    let message = format!(
        "server rejected the credentials: {}; set SNOWMINT_TOKEN, SNOWMINT_TOKEN_FILE or \
         store.token",
        status.message()
    );
    at(address, Error::unsupported(message))
}

/// Returns whether the call was never sent, because no server accepted the connection.
fn is_connect(status: &Status) -> bool {
    let mut cause: Option<&(dyn StdError + 'static)> = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Returns the message of a status and its causes.
pub(crate) fn cause(status: &Status) -> String {
    let message = status.message();
    let Some(cause) = status.source() else { return message.to_owned() };
    let causes = chain(cause).to_string();
    // The transport's message for an error repeats the error's own message.
    if causes.starts_with(message) { causes } else { format!("{message}: {causes}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use tonic::Code as Grpc;
    use tonic_types::ErrorDetails;

    fn status_of(code: Code) -> Status {
        let reason = code.row().name.to_ascii_uppercase();
        let details = ErrorDetails::with_error_info(reason, "snowmint", HashMap::new());
        Status::with_error_details(Grpc::Unavailable, "it happened", details)
    }

    #[test]
    fn only_unapplied_calls_are_marked_not_applied() {
        for &code in Code::ALL {
            let failed = of_store("/snowmint.store.v1.Store/Extend", "here:1", &status_of(code));
            let nothing_done = match code {
                Code::Closed | Code::Overloaded => matches!(failed, CallFailure::NotApplied(_)),
                Code::RateLimited => matches!(failed, CallFailure::RateLimited(..)),
                Code::Unsupported => matches!(failed, CallFailure::WrongServer(_)),
                Code::Unauthenticated => matches!(failed, CallFailure::Unauthenticated(_)),
                Code::Forbidden | Code::Misdirected | Code::BadRequest | Code::LimitExceeded => {
                    matches!(failed, CallFailure::Refused(_))
                }
                // For example a call that took too long.
                _ => matches!(failed, CallFailure::Unknown(_)),
            };
            assert!(nothing_done, "{code}: {failed:?}");
        }
        // A broken connection, or a server that is not Snowmint.
        for code in [Grpc::Unavailable, Grpc::Unknown, Grpc::Cancelled, Grpc::Internal] {
            let failed =
                of_store("/snowmint.store.v1.Store/Extend", "here:1", &Status::new(code, "broken"));
            assert!(matches!(failed, CallFailure::Unknown(_)), "{failed:?}");
        }
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let status = Status::from_error(Box::new(ConnectError(Box::new(refused))));
        let failed = of_store("/snowmint.store.v1.Store/Extend", "here:1", &status);
        let CallFailure::NotApplied(error) = failed else { panic!("{failed:?}") };
        assert!(error.to_string().contains("here:1"), "{error}");
        assert!(!error.message().contains("here:1"), "{error}");
    }

    #[test]
    fn ids_are_requested_again_unless_useless() {
        for &code in Code::ALL {
            let failed = of_mint("/snowmint.v1.Mint/Mint", "here:1", "messages", &status_of(code));
            let later = code.row().resp == RespPrefix::TryAgain;
            match failed {
                CallFailure::Refused(error) => {
                    assert!(!later, "{code}");
                    assert_eq!(error.retry(), Retry::Never, "{code}");
                }
                CallFailure::NotApplied(_) | CallFailure::RetryAfter(..) => {
                    assert!(later, "{code}")
                }
                CallFailure::WrongServer(_) => assert_eq!(code, Code::Unsupported),
                CallFailure::Degraded(..) => assert_eq!(code, Code::Unavailable),
                CallFailure::RateLimited(..) => assert_eq!(code, Code::RateLimited),
                CallFailure::Unauthenticated(_) => assert_eq!(code, Code::Unauthenticated),
                failed => panic!("{code}: {failed:?}"),
            }
        }
        let newer =
            of_mint("/snowmint.v1.Mint/Mint", "here:1", "messages", &status_of(Code::Unsupported));
        assert!(matches!(newer, CallFailure::WrongServer(_)), "a newer server may: {newer:?}");
        let no_such =
            of_mint("/snowmint.v1.Mint/Bound", "here:1", "messages", &Status::unimplemented(""));
        assert!(matches!(no_such, CallFailure::WrongServer(_)), "a newer server may: {no_such:?}");
        let broken =
            of_mint("/snowmint.v1.Mint/Mint", "here:1", "messages", &Status::unknown("broken"));
        assert!(matches!(broken, CallFailure::NotApplied(_)), "{broken:?}");
    }

    #[test]
    fn server_message_stays_unchanged() {
        let message = "source \"bills\" has no numbers left, maximum 9000; define another source";
        let details = ErrorDetails::with_error_info("EXHAUSTED", "snowmint", HashMap::new());
        let status = Status::with_error_details(Grpc::ResourceExhausted, message, details);
        let failed = of_mint("/snowmint.v1.Mint/Mint", "here:1", "bills", &status);
        let CallFailure::Refused(error) = failed else { panic!("{failed:?}") };
        assert_eq!((error.kind().code(), &*error.message()), ("exhausted", message));
    }

    #[test]
    fn older_server_is_named_with_the_missing_method() {
        let path = "/snowmint.store.v1.Store/Claim";
        let failed = of_store(path, "here:1", &Status::unimplemented("no such method"));
        let CallFailure::WrongServer(error) = failed else { panic!("{failed:?}") };
        let expected = format!("server does not support {path}; update the server");
        assert_eq!((error.message(), error.detail()), (expected.into(), Some("server here:1")));
        assert!(chain(&error).to_string().contains("no such method"), "{error:?}");
    }
}
