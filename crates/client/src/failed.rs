//! Why a server gave no answer, and what of it may have been done.

use std::error::Error as StdError;

use snowmint_coord::error::chain;
use snowmint_coord::{Error, ErrorKind, Retry};
use snowmint_wire::error::{Code, RespPrefix};
use tonic::{ConnectError, Status};
use tonic_types::StatusExt as _;

/// Why a server did not answer a call.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Nothing was done: anybody may be asked.
    NotDone(Error),
    /// Nothing was done, because there was less time than a server is given to take a connection.
    TooLate(Error),
    /// It may have been done, or may be yet: only what may be repeated is.
    Unknown(Error),
    /// The same, because the server does not reach its store; perhaps others do.
    Cut(Error),
    /// Nothing was done, and this server will not do it: it is not what is looked for. Others may be.
    Wrong(Error),
    /// Nothing was done, and by nobody will be for so many milliseconds.
    Later(Error, u64),
    /// Nothing was answered, since the server is cut off from what it needs, as others may not be; so many
    /// milliseconds may help, too.
    Away(Error, u64),
    /// Nothing was done, because the caller is over its rate, and will be for so many milliseconds.
    Limited(Error, u64),
    /// Nothing was done, because what was shown says to nobody there who asks.
    Stranger(Error),
    /// Asking again, here or elsewhere, does not help.
    Refused(Error),
}

impl Failed {
    /// The same of a call that is not made again, so its caller knows that nothing was done. Of others an
    /// earlier call may have been.
    pub(crate) fn of_one_call(self) -> Self {
        match self {
            Self::NotDone(why) => Self::NotDone(why.with_nothing_done()),
            Self::TooLate(why) => Self::TooLate(why.with_nothing_done()),
            Self::Limited(why, ms) => Self::Limited(why.with_nothing_done(), ms),
            other => other,
        }
    }
}

/// A server that cannot be asked.
pub(crate) fn unavailable(op: &'static str, address: &str, why: &str) -> Error {
    let what = format!("the server at {address} ({why})");
    Error::new(op, ErrorKind::Unavailable { what })
}

/// A call that may have been done.
pub(crate) fn unknown(op: &'static str, address: &str, why: &str) -> Failed {
    let what = format!("an answer of the server at {address} ({why}; it may have been done)");
    Failed::Unknown(Error::new(op, ErrorKind::Unavailable { what }))
}

/// The code that a server of ours gave as its reason.
pub(crate) fn reason(status: &Status) -> Option<Code> {
    let info = status.get_details_error_info()?;
    Code::from_name(&info.reason.to_ascii_lowercase())
}

/// In how many milliseconds a server would answer, if it says so.
fn hint_ms(status: &Status) -> u64 {
    let hint = status.get_details_retry_info().and_then(|info| info.retry_delay);
    hint.map_or(0, |hint| u64::try_from(hint.as_millis()).unwrap_or(u64::MAX))
}

/// What a status says about a call of the store, whose own refusals are answers.
pub(crate) fn of_store(op: &'static str, address: &str, status: &Status) -> Failed {
    let unavailable = || unavailable(op, address, &why(status));
    match reason(status) {
        None if is_connect(status) => Failed::NotDone(unavailable()),
        // Somebody else's way to say the same.
        None if status.code() == tonic::Code::Unimplemented => {
            Failed::Wrong(older(op, address, status))
        }
        Some(Code::Closed | Code::Overloaded) => Failed::NotDone(unavailable()),
        Some(Code::RateLimited) => {
            let ms = hint_ms(status);
            Failed::Limited(unavailable().with_retry(Retry::AfterMs(ms)), ms)
        }
        Some(Code::Unsupported) => Failed::Wrong(older(op, address, status)),
        Some(Code::Unauthenticated) => Failed::Stranger(stranger(op, address, status)),
        Some(Code::Forbidden | Code::Misdirected) => {
            Failed::Refused(forbidden(op, address, status))
        }
        Some(Code::BadRequest | Code::TooMany) => {
            let what = format!("the server at {address} refuses: {}", status.message());
            Failed::Refused(Error::invalid(op, what))
        }
        _ => unknown(op, address, &why(status)),
    }
}

/// What a status says about IDs that were asked for: a repeat takes others, so all may be repeated.
pub(crate) fn of_mint(op: &'static str, address: &str, source: &str, status: &Status) -> Failed {
    let Some(code) = reason(status) else {
        return match status.code() {
            // As of the store.
            tonic::Code::Unimplemented => Failed::Wrong(older(op, address, status)),
            _ => Failed::NotDone(unavailable(op, address, &why(status))),
        };
    };
    let message = status.message().to_owned();
    let kind = match code {
        Code::Unauthenticated => return Failed::Stranger(stranger(op, address, status)),
        Code::Forbidden | Code::Misdirected => {
            return Failed::Refused(forbidden(op, address, status));
        }
        Code::UnknownSource => ErrorKind::NotFound { what: format!("source {source:?}") },
        Code::Disabled => ErrorKind::Disabled { name: source.into() },
        Code::EpochSpent => ErrorKind::EpochSpent { name: source.into() },
        Code::BadRequest | Code::TooMany => ErrorKind::Invalid { what: message },
        Code::Exhausted => exhausted(message),
        // A newer server may have it.
        Code::Unsupported => {
            return Failed::Wrong(Error::new(op, ErrorKind::Unsupported { what: message }));
        }
        Code::Closed | Code::Overloaded => {
            return Failed::NotDone(unavailable(op, address, &message));
        }
        code => {
            let error = unavailable(op, address, &message);
            let is_later = code.row().resp == RespPrefix::TryAgain;
            let hint_ms = hint_ms(status);
            let error = error.with_retry(Retry::AfterMs(hint_ms));
            return match code {
                Code::RateLimited => Failed::Limited(error, hint_ms),
                Code::Unavailable => Failed::Away(error, hint_ms),
                _ if is_later => Failed::Later(error, hint_ms),
                _ => Failed::Refused(error.with_retry(Retry::Never)),
            };
        }
    };
    Failed::Refused(Error::new(op, kind))
}

/// A number, and not what is said behind it.
fn digits(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_ascii_digit());
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// What is used up, of which a server says no more than its text.
fn exhausted(message: String) -> ErrorKind {
    let parts = message.split_once(" is used up: the limit is ");
    let read =
        parts.and_then(|(what, limit)| Some((what.to_owned(), digits(limit).parse::<u64>().ok()?)));
    let (what, limit) = read.unwrap_or((message, 0));
    ErrorKind::Exhausted { what, limit }
}

/// A verb, or what it says, that a server does not know.
fn older(op: &'static str, address: &str, status: &Status) -> Error {
    let said = match status.message() {
        "" => String::new(),
        message => format!(" ({message})"),
    };
    let what = format!(
        "the server at {address} is older than this program and cannot {op}{said}: update the server, or ask \
         a newer one"
    );
    Error::new(op, ErrorKind::Unsupported { what })
}

/// Nobody there describes a store.
pub(crate) fn offers_none(op: &'static str, address: &str, status: &Status) -> Error {
    let what = format!(
        "the server at {address} offers no store to programs that mint in their own process: set store.offered = \
         true in its configuration, or update it if it is too old: {}",
        status.message()
    );
    Error::new(op, ErrorKind::Unsupported { what })
}

fn forbidden(op: &'static str, address: &str, status: &Status) -> Error {
    let what = format!("the server at {address} refuses: {}", status.message());
    Error::new(op, ErrorKind::Unsupported { what })
}

fn stranger(op: &'static str, address: &str, status: &Status) -> Error {
    let what = format!(
        "the server at {address} refuses: {} (SNOWMINT_TOKEN or SNOWMINT_TOKEN_FILE, or store.token of a \
         configuration, says what is shown to it)",
        status.message()
    );
    Error::new(op, ErrorKind::Unsupported { what })
}

/// Whether the call never left, because nobody takes the connection.
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

/// What a status says, and what caused it.
pub(crate) fn why(status: &Status) -> String {
    let message = status.message();
    let Some(cause) = status.source() else { return message.to_owned() };
    let causes = chain(cause).to_string();
    // What the transport makes of an error says what the error does.
    if causes.starts_with(message) { causes } else { format!("{message}: {causes}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use tonic::Code as Grpc;
    use tonic_types::ErrorDetails;

    fn said(code: Code) -> Status {
        let reason = code.row().name.to_ascii_uppercase();
        let details = ErrorDetails::with_error_info(reason, "snowmint", HashMap::new());
        Status::with_error_details(Grpc::Unavailable, "it happened", details)
    }

    #[test]
    fn only_what_was_surely_not_done_says_so() {
        for &code in Code::ALL {
            let failed = of_store("extend", "here:1", &said(code));
            let nothing_done = match code {
                Code::Closed | Code::Overloaded => matches!(failed, Failed::NotDone(_)),
                Code::RateLimited => matches!(failed, Failed::Limited(..)),
                Code::Unsupported => matches!(failed, Failed::Wrong(_)),
                Code::Unauthenticated => matches!(failed, Failed::Stranger(_)),
                Code::Forbidden | Code::Misdirected | Code::BadRequest | Code::TooMany => {
                    matches!(failed, Failed::Refused(_))
                }
                // Such as one that took too long.
                _ => matches!(failed, Failed::Unknown(_)),
            };
            assert!(nothing_done, "{code}: {failed:?}");
        }
        // A connection that broke, and nobody of ours at the other end.
        for code in [Grpc::Unavailable, Grpc::Unknown, Grpc::Cancelled, Grpc::Internal] {
            let failed = of_store("extend", "here:1", &Status::new(code, "broken"));
            assert!(matches!(failed, Failed::Unknown(_)), "{failed:?}");
        }
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let status = Status::from_error(Box::new(ConnectError(Box::new(refused))));
        let failed = of_store("extend", "here:1", &status);
        let Failed::NotDone(error) = failed else { panic!("{failed:?}") };
        assert!(error.to_string().contains("here:1"), "{error}");
    }

    #[test]
    fn ids_are_asked_for_again_unless_that_does_not_help() {
        for &code in Code::ALL {
            let failed = of_mint("count", "here:1", "messages", &said(code));
            let later = code.row().resp == RespPrefix::TryAgain;
            match failed {
                Failed::Refused(error) => {
                    assert!(!later, "{code}");
                    assert_eq!(error.retry(), Retry::Never, "{code}");
                }
                Failed::NotDone(_) | Failed::Later(..) => assert!(later, "{code}"),
                Failed::Wrong(_) => assert_eq!(code, Code::Unsupported),
                Failed::Away(..) => assert_eq!(code, Code::Unavailable),
                Failed::Limited(..) => assert_eq!(code, Code::RateLimited),
                Failed::Stranger(_) => assert_eq!(code, Code::Unauthenticated),
                failed => panic!("{code}: {failed:?}"),
            }
        }
        let asked = of_mint("count", "here:1", "messages", &said(Code::Unsupported));
        assert!(matches!(asked, Failed::Wrong(_)), "a newer server may: {asked:?}");
        let no_such = of_mint("bound", "here:1", "messages", &Status::unimplemented(""));
        assert!(matches!(no_such, Failed::Wrong(_)), "a newer server may: {no_such:?}");
        let broken = of_mint("count", "here:1", "messages", &Status::unknown("broken"));
        assert!(matches!(broken, Failed::NotDone(_)), "{broken:?}");
    }

    #[test]
    fn what_is_used_up_is_told_as_that() {
        let kind = ErrorKind::Exhausted { what: "source \"bills\"".into(), limit: 9_000 };
        let message = kind.to_string();
        for (said_by, expected) in [
            (message.as_str(), kind.clone()),
            (&*format!("{message}; asked there"), kind),
            ("all gone", ErrorKind::Exhausted { what: "all gone".into(), limit: 0 }),
        ] {
            let reason = "EXHAUSTED";
            let details = ErrorDetails::with_error_info(reason, "snowmint", HashMap::new());
            let status = Status::with_error_details(Grpc::ResourceExhausted, said_by, details);
            let failed = of_mint("count", "here:1", "bills", &status);
            let Failed::Refused(error) = failed else { panic!("{failed:?}") };
            assert_eq!(error.kind(), &expected);
        }
    }
}
