//! Sub-commands of the containers `CLIENT`, `CLUSTER`, `COMMAND` and `CONFIG`. Each is looked up
//! before it runs: `MULTI` rejects an unknown one, as Redis does.

use snowmint_wire::error::Code;
use snowmint_wire::resp::Command;

use super::rejected::Rejected;
use super::reply::{unknown_subcommand, wrong_arity};
use super::spec::Flow;
use crate::resp::session::Session;

/// Name, the least and the most of the arguments, and what runs it.
pub(super) type Subcommand<T> = (&'static str, usize, usize, T);

/// Function that runs a sub-command of `CLIENT` or `CONFIG`.
pub(super) type Run = fn(&mut Session, &Command<'_>, &mut Vec<u8>);

/// Reason why a command cannot run, whatever its values are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unfit {
    /// The container has no such sub-command.
    Unknown,
    /// The named sub-command has another number of arguments.
    Arity(&'static str),
    /// Redis has it, and this server rejects it.
    Rejected(Rejected),
}

/// Finds the sub-command of a request.
pub(super) fn find<T: Copy>(
    container: &str,
    table: &[Subcommand<T>],
    command: &Command<'_>,
) -> Result<T, Unfit> {
    let given = command.arg(1).unwrap_or_default();
    let args = command.len().saturating_sub(2);
    match table.iter().find(|(name, ..)| given.eq_ignore_ascii_case(name.as_bytes())) {
        Some((_, least, most, run)) if (*least..=*most).contains(&args) => Ok(*run),
        Some((name, ..)) => Err(Unfit::Arity(name)),
        None => Err(Rejected::find_sub(container, command).map_or(Unfit::Unknown, Unfit::Rejected)),
    }
}

/// Runs the sub-command of a request, or writes why it cannot run.
pub(super) fn run(
    container: &str,
    table: &[Subcommand<Run>],
    session: &mut Session,
    command: &Command<'_>,
    output: &mut Vec<u8>,
) -> Flow {
    match find(container, table, command) {
        Ok(run) => run(session, command, output),
        Err(unfit) => unfit.write(container, command, session, output),
    }
    Flow::Next
}

impl Unfit {
    /// Writes the error, and counts it.
    pub(super) fn write(
        self,
        container: &str,
        command: &Command<'_>,
        session: &Session,
        output: &mut Vec<u8>,
    ) {
        if let Self::Rejected(rejected) = self {
            return rejected.write(session, output);
        }
        session.refused(Code::BadRequest, None);
        let mut reply = session.reply(output);
        match self {
            Self::Arity(name) => wrong_arity(&format!("{container}|{name}"), &mut reply),
            _ => unknown_subcommand(container, command.arg(1).unwrap_or_default(), &mut reply),
        }
    }
}

/// Writes the lines of a container's `HELP`.
pub(super) fn help(lines: &[&str], session: &Session, output: &mut Vec<u8>) {
    let mut reply = session.reply(output);
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.simple(line));
}
