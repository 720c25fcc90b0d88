//! How a command ends: the one table of exit codes, and the error that carries one.

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use snowmint_coord::label::Visible;
use snowmint_wire::error::Code;

use crate::secret::{NOT_SHOWN, TOKEN_PREFIX, may_be_token};

/// What a command comes to.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// What scripts see. The numbers are those of [`snowmint_wire::error`]'s table, so that a refusal
/// ends a command in the same way wherever it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The question was fine, and the answer is no.
    No = 1,
    /// Wrong usage, or wrong configuration.
    Usage = 2,
    /// Refused, because going on could make duplicates.
    Unsafe = 3,
    /// Something needed does not answer; a retry may help.
    Unavailable = 4,
}

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody reads standard output any more. That is no error: `snowmint mint -n 9 | head -1`.
    ClosedPipe,
    /// The result is on standard output already, and it is a no.
    SaidNo,
    /// What to say on standard error, and how to end.
    Said {
        /// The exit code.
        exit: Exit,
        /// A full sentence, without the leading `snowmint:`.
        message: String,
    },
}

impl Failure {
    pub(crate) fn no(message: impl Into<String>) -> Self {
        Self::Said { exit: Exit::No, message: message.into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Said { exit: Exit::Usage, message: message.into() }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Said { exit: Exit::Unsafe, message: message.into() }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::Said { exit: Exit::Unavailable, message: message.into() }
    }

    /// The same end, said after something else.
    pub(crate) fn after(self, first: &str) -> Self {
        match self {
            Self::Said { exit, message } => {
                Self::Said { exit, message: format!("{first}: {message}") }
            }
            other => other,
        }
    }

    /// What a code of the table says, wherever it was said.
    pub(crate) fn coded(code: Code, message: impl Into<String>) -> Self {
        let exit = match code.row().exit {
            1 => Exit::No,
            2 => Exit::Usage,
            3 => Exit::Unsafe,
            _ => Exit::Unavailable,
        };
        Self::Said { exit, message: message.into() }
    }
}

/// Says what is left to say, on standard error, and gives the process its exit code.
pub(crate) fn code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::SaidNo) => Exit::No.into(),
        Err(Failure::Said { exit, message }) => {
            complain(message);
            exit.into()
        }
    }
}

/// What is wrong with a command line, said without what may be a secret in it: the password of a URL, a token, and
/// whatever a command about tokens does not take.
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
    // In place of what says it once more.
    let tip = "what may be a secret is not shown, and others can read a command line: give a token on standard input \
               (snowmint token hash < FILE) or in SNOWMINT_TOKEN_FILE, and a password in the configuration file";
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    error
}

/// What is shown in place of a text; none where it can be shown itself.
fn without_secret(text: &str, is_secret: bool) -> Option<String> {
    if is_secret {
        return Some(NOT_SHOWN.to_owned());
    }
    let is_url = text.contains('@') || text.contains("password=");
    is_url.then(|| snowmint_stores::shown(text))
}

/// One line on standard error. Nobody may be reading it, which is no error either.
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
            let Failure::Said { exit, .. } = Failure::coded(code, "") else {
                panic!("{code} says nothing")
            };
            assert_eq!(exit as u8, code.row().exit, "{code}");
        }
    }
}
