//! Ends of a command: the table of exit codes, and the error that carries one.

use std::error::Error as _;
use std::ffi::OsString;
use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use snowmint_coord::error::json;
use snowmint_coord::label::Visible;
use snowmint_wire::error::Code;

use crate::system::secret::{NOT_SHOWN, TOKEN_PREFIX, may_be_token};

/// Result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Exit codes and their meaning, as `--help` and the manual pages list them.
pub(crate) const EXIT_CODES: [(u8, &str); 5] = [
    (0, "done"),
    (1, "negative result"),
    (2, "wrong usage or configuration"),
    (3, "rejected for safety"),
    (4, "not available (a retry may help)"),
];

/// Style of the word that begins an error.
const ERROR: Style = AnsiColor::Red.on_default().bold();

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
        /// The code that ends the message; `None` if the message has one of a newer server.
        code: Option<Code>,
        /// A full sentence, without the leading `snowmint:`.
        message: String,
    },
}

impl Failure {
    /// Negative result with exit code 1, whatever exit code the table has.
    pub(crate) fn no(code: Code, message: impl Into<String>) -> Self {
        Self::Explained { exit: Exit::No, code: Some(code), message: message.into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::coded(Code::BadRequest, message)
    }

    /// Rejection for safety with exit code 3, whatever exit code the table has.
    pub(crate) fn refused(code: Code, message: impl Into<String>) -> Self {
        Self::Explained { exit: Exit::Unsafe, code: Some(code), message: message.into() }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::coded(Code::Unavailable, message)
    }

    /// Returns the failure for a condition that only a bug can cause.
    pub(crate) fn internal(cause: impl fmt::Display) -> Self {
        Self::coded(Code::Internal, format!("internal error: {cause}; please report it"))
    }

    /// Returns the message, or a text in its place where there is none.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Explained { message, .. } => message,
            Self::ClosedPipe | Self::Negative => "no reason is known",
        }
    }

    /// Returns the same failure with a prefix.
    pub(crate) fn after(self, first: &str) -> Self {
        match self {
            Self::Explained { exit, code, message } => {
                Self::Explained { exit, code, message: format!("{first}: {message}") }
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
        Self::Explained { exit, code: Some(code), message: message.into() }
    }

    /// Returns the failure for a code of a newer server, which this program has no row for.
    pub(crate) fn of_newer_server(exit: Exit, code: &str, message: &str) -> Self {
        Self::Explained { exit, code: None, message: format!("{message} [{code}]") }
    }
}

/// Prints the message on standard error, and returns the exit code.
pub(crate) fn code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Negative) => Exit::No.into(),
        Err(Failure::Explained { exit, code, message }) => {
            report(code, &message);
            hint(code);
            exit.into()
        }
    }
}

/// Prints an error on standard error, ended by its code. A closed standard error is not an error.
pub(crate) fn report(code: Option<Code>, message: &str) {
    let code = code.map(|code| format!(" [{code}]")).unwrap_or_default();
    let message = Visible(message);
    // The stream leaves the colour out where it does not belong: NO_COLOR, or not a terminal.
    let _ = writeln!(anstream::stderr(), "{ERROR}snowmint:{ERROR:#} {message}{code}");
}

/// Tells a person where the code is explained. A message of wrong usage says it all.
fn hint(code: Option<Code>) {
    let code = code.filter(|code| !matches!(code, Code::BadRequest | Code::Internal));
    if let (Some(code), true) = (code, std::io::stderr().is_terminal()) {
        complain(format_args!("`snowmint explain {code}` has causes and remedies"));
    }
}

/// Prints an error about the command line, or the help that was asked for. Returns the exit code.
pub(crate) fn unparsed(error: clap::Error, arguments: &[OsString]) -> ExitCode {
    let error = without_secrets(error, arguments);
    let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_help || !error.use_stderr() {
        let _ = error.print();
        return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    let rendered = in_plain_words(&error, error.render().ansi().to_string());
    let _ = writeln!(anstream::stderr(), "{}", with_code(&rendered));
    Exit::Usage.into()
}

/// Replaces the text of the language's own parser, such as that of a number, in an error about the
/// command line.
fn in_plain_words(error: &clap::Error, rendered: String) -> String {
    let Some(cause) = error.source().map(ToString::to_string) else { return rendered };
    let plain = within(&cause).or_else(|| json::in_plain_words(&cause).map(str::to_owned));
    let Some(plain) = plain else { return rendered };
    rendered.replacen(&format!(": {cause}"), &format!(": {plain}"), 1)
}

/// Returns the bounds of a number as people write them; `None` for another error.
fn within(cause: &str) -> Option<String> {
    let (_, range) = cause.split_once(" is not in ")?;
    let (from, to) = range.split_once("..=")?;
    Some(format!("expected {from} to {to}"))
}

/// Adds the code to the message of an error about the command line, which tips and usage follow.
fn with_code(rendered: &str) -> String {
    let code = Code::BadRequest;
    match rendered.trim_end().split_once("\n\n") {
        Some((message, rest)) => format!("{message} [{code}]\n\n{rest}"),
        None => format!("{} [{code}]", rendered.trim_end()),
    }
}

/// Removes possible secrets from an error about the command line: the password of a URL, a token,
/// and whatever a command about tokens does not accept.
fn without_secrets(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
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
            let Failure::Explained { exit, code: Some(named), .. } = Failure::coded(code, "")
            else {
                panic!("{code} says nothing")
            };
            assert_eq!((exit as u8, named), (code.row().exit, code));
            assert!(EXIT_CODES.iter().any(|(number, _)| *number == exit as u8), "{code}");
        }
    }

    #[test]
    fn error_about_the_command_line_has_its_code_before_tips() {
        for (rendered, expected) in [
            ("error: no\n", "error: no [bad_request]"),
            ("error: no\n\nUsage: x\n", "error: no [bad_request]\n\nUsage: x"),
            ("error: lacks:\n  <A>\n\nUsage: x", "error: lacks:\n  <A> [bad_request]\n\nUsage: x"),
        ] {
            assert_eq!(with_code(rendered), expected);
        }
    }
}
