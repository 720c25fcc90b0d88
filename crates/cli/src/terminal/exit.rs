//! Ends of a command: the table of exit codes, and the error that carries one.

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use snowmint_coord::label::Visible;
use snowmint_wire::error::Code;

use crate::system::secret::{NOT_SHOWN, TOKEN_PREFIX, may_be_token};

/// Result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Exit codes for scripts. The numbers are those of [`snowmint_wire::error`]'s table, so an error
/// ends a command in the same way wherever it was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The request was valid, and the result is negative.
    No = 1,
    /// Wrong usage, or wrong configuration.
    Usage = 2,
    /// Rejected, because continuing could make duplicates.
    Unsafe = 3,
    /// A required service does not respond; a retry may help.
    Unavailable = 4,
}

/// Reason of a command's failure.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Closed standard output. It is not an error: `snowmint mint -n 9 | head -1`.
    ClosedPipe,
    /// Negative result that is on standard output already.
    Negative,
    /// Message for standard error, with an exit code.
    Explained {
        /// The exit code.
        exit: Exit,
        /// A full sentence, without the leading `snowmint:`.
        message: String,
    },
}

impl Failure {
    pub(crate) fn no(message: impl Into<String>) -> Self {
        Self::Explained { exit: Exit::No, message: message.into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Explained { exit: Exit::Usage, message: message.into() }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Explained { exit: Exit::Unsafe, message: message.into() }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::Explained { exit: Exit::Unavailable, message: message.into() }
    }

    /// Returns the failure for a condition that only a bug can cause.
    pub(crate) fn internal(cause: impl fmt::Display) -> Self {
        Self::unavailable(format!("internal error: {cause}; please report it"))
    }

    /// Returns the same failure with a prefix.
    pub(crate) fn after(self, first: &str) -> Self {
        match self {
            Self::Explained { exit, message } => {
                Self::Explained { exit, message: format!("{first}: {message}") }
            }
            other => other,
        }
    }

    /// Returns the failure of a code in the table, whatever raised it.
    pub(crate) fn coded(code: Code, message: impl Into<String>) -> Self {
        let exit = match code.row().exit {
            1 => Exit::No,
            2 => Exit::Usage,
            3 => Exit::Unsafe,
            _ => Exit::Unavailable,
        };
        Self::Explained { exit, message: message.into() }
    }
}

/// Prints the message on standard error, and returns the exit code.
pub(crate) fn code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Negative) => Exit::No.into(),
        Err(Failure::Explained { exit, message }) => {
            complain(message);
            exit.into()
        }
    }
}

/// Removes possible secrets from an error about the command line: the password of a URL, a token,
/// and whatever a command about tokens does not accept.
pub(crate) fn unparsed(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let of_tokens = arguments.iter().any(|argument| argument == "token");
    let shown: Vec<_> = error
        .context()
        .filter_map(|(kind, value)| {
            let ContextValue::String(text) = value else { return None };
            let is_secret = match (error.kind(), kind) {
                (ErrorKind::UnknownArgument, ContextKind::InvalidArg)
                | (ErrorKind::InvalidSubcommand, ContextKind::InvalidSubcommand) => {
                    of_tokens || may_be_token(text)
                }
                (_, ContextKind::InvalidValue) => of_tokens || text.contains(TOKEN_PREFIX),
                _ => false,
            };
            Some((kind, without_secret(text, is_secret)?))
        })
        .collect();
    if shown.is_empty() {
        return error;
    }
    for (kind, text) in shown {
        error.insert(kind, ContextValue::String(text));
    }
    // The tip replaces suggestions that would repeat the text.
    let tip = "text that may be secret is hidden, and other users can read a command line: give a token on standard input \
               (snowmint token hash < FILE) or in SNOWMINT_TOKEN_FILE, and a password in the configuration file";
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    error
}

/// Returns the replacement for a text; `None` if the text itself may be shown.
fn without_secret(text: &str, is_secret: bool) -> Option<String> {
    if is_secret {
        return Some(NOT_SHOWN.to_owned());
    }
    let is_url = text.contains('@') || text.contains("password=");
    is_url.then(|| snowmint_stores::shown(text))
}

/// Prints one line on standard error. A closed standard error is not an error.
pub(crate) fn complain(message: impl fmt::Display) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "snowmint: {}", Visible(&message.to_string()));
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_table_ends_a_command_with_its_own_number() {
        for &code in Code::ALL {
            let Failure::Explained { exit, .. } = Failure::coded(code, "") else {
                panic!("{code} says nothing")
            };
            assert_eq!(exit as u8, code.row().exit, "{code}");
        }
    }
}
