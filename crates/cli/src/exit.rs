//! How a command ends: the one table of exit codes, and the error that carries one.

use std::fmt;
use std::process::ExitCode;

use clap::error::ContextValue;
use snowmint_coord::label::Visible;
use snowmint_wire::error::Code;

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

/// What is wrong with a command line, said without passwords of URLs in it.
pub(crate) fn unparsed(mut error: clap::Error) -> clap::Error {
    let shown: Vec<_> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) if text.contains('@') || text.contains("password=") => {
                Some((kind, ContextValue::String(snowmint_stores::shown(text))))
            }
            _ => None,
        })
        .collect();
    for (kind, value) in shown {
        error.insert(kind, value);
    }
    error
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
