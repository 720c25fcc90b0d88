//! The commands, and their table.

mod auth;
mod client;
mod cluster;
mod command;
mod config;
mod connection;
mod decode;
mod get;
mod hash;
mod hello;
mod ids;
mod incr;
mod incrby;
mod info;
mod keys;
mod mint;
mod no_ops;
mod owners;
mod queueing;
mod rejected;
mod reply;
mod set;
mod spec;
mod subcommand;
mod target;
#[cfg(test)]
mod tests;
mod transaction;
mod web;

use snowmint_wire::error::Code;
use snowmint_wire::resp::{Command, Encoder};

pub(super) use self::spec::{CommandWork, Flow};
pub(super) use self::target::target_of;

use self::rejected::{CHANGES_VALUE, Rejected};
use self::reply::wrong_arity;
use self::spec::Spec;
use super::session::Session;

/// Every command; the most used first.
static COMMANDS: &[Spec] = &[
    incr::SPEC,
    mint::SPEC,
    incrby::SPEC,
    get::SPEC,
    hash::HINCRBY,
    hash::HGET,
    connection::PING,
    transaction::MULTI,
    transaction::exec_spec(execute),
    transaction::DISCARD,
    decode::SPEC,
    connection::ECHO,
    hello::SPEC,
    auth::SPEC,
    connection::SELECT,
    client::SPEC,
    command::spec(describe),
    info::SPEC,
    config::SPEC,
    cluster::SPEC,
    connection::RESET,
    connection::QUIT,
    set::SET,
    set::SETNX,
    keys::EXISTS,
    keys::TTL,
    keys::PTTL,
    keys::TYPE,
    keys::PERSIST,
    keys::MGET,
    keys::TOUCH,
    keys::EXPIRETIME,
    keys::PEXPIRETIME,
    no_ops::READONLY,
    no_ops::READWRITE,
    no_ops::ASKING,
    no_ops::WATCH,
    no_ops::UNWATCH,
    no_ops::ROLE,
    no_ops::DBSIZE,
];

/// Runs `COMMAND` on the table.
fn describe(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    command::run(COMMANDS, session, command, output)
}

/// Runs `EXEC`, which finds queued commands in the table.
fn execute(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    transaction::exec(known, session, output)
}

/// Runs a command, or returns the work that has to wait.
pub(super) fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let name = command.arg(0).unwrap_or_default();
    let Some(spec) = find(name) else {
        // Before authentication, Redis does not list its commands either. A misspelt AUTH has a
        // token after it, which must not be repeated.
        if web::speaks(name) {
            return Flow::Close;
        }
        if session.is_anonymous {
            return unauthenticated(session, output);
        }
        session.abort_transaction();
        if let Some(rejected) = Rejected::find(name) {
            rejected.write(session, output);
        } else {
            session.refused(Code::BadRequest, None);
            unknown(command, &mut session.reply(output));
        }
        return Flow::Next;
    };
    if !spec.accepts(command.len()) {
        session.abort_transaction();
        session.refused(Code::BadRequest, None);
        wrong_arity(spec.name, &mut session.reply(output));
        return Flow::Next;
    }
    if session.is_anonymous && !spec.is_for_all {
        return unauthenticated(session, output);
    }
    if session.wants_cache && client::rejects_cached(spec, session, output) {
        return Flow::Next;
    }
    if session.transaction.is_some() && spec.waits_for_exec() {
        return queueing::queue(spec, session, command, output);
    }
    (spec.run)(session, command, output)
}

/// Rejects a command that exceeds a limit: with the reason for which it is rejected in any length,
/// or with the limit.
pub(super) fn reject_oversized(
    session: &mut Session,
    command: &Command<'_>,
    excess: &str,
    output: &mut Vec<u8>,
) {
    session.abort_transaction();
    let Some(spec) = find(command.arg(0).unwrap_or_default()) else {
        run(session, command, output);
        return;
    };
    if matches!(spec.name, "set" | "setnx") {
        return rejected::write(spec.name, CHANGES_VALUE, session, output);
    }
    session.refused(Code::LimitExceeded, None);
    let name = spec.name.to_ascii_uppercase();
    session.reply(output).error("ERR", &format!("{name} has {excess}; send less at once"));
}

/// Returns the table's entry of a command, if its arguments fit the entry.
pub(super) fn known(command: &Command<'_>) -> Option<&'static Spec> {
    find(command.arg(0).unwrap_or_default()).filter(|spec| spec.accepts(command.len()))
}

/// Returns the name of a rejected command of Redis.
pub(super) fn rejected_name(command: &Command<'_>) -> Option<&'static str> {
    Rejected::find(command.arg(0).unwrap_or_default()).map(|rejected| rejected.name)
}

/// Returns whether a command, sent after `MULTI`, is queued for `EXEC`.
pub(super) fn waits_for_exec(command: &Command<'_>) -> bool {
    known(command).is_some_and(Spec::waits_for_exec)
}

/// Counts any command of an unauthenticated client: its attempts must be visible.
fn unauthenticated(session: &mut Session, output: &mut Vec<u8>) -> Flow {
    session.abort_transaction();
    // A certificate without a token leaves an audit line.
    let _ = session.service.caller().must_be_known();
    session.refused(Code::Unauthenticated, None);
    session.reply(output).error("NOAUTH", "Authentication required.");
    Flow::Next
}

fn find(name: &[u8]) -> Option<&'static Spec> {
    COMMANDS.iter().find(|spec| spec.has_name(name))
}

/// Writes the error in Redis's words, since clients look for them.
fn unknown(command: &Command<'_>, reply: &mut Encoder<'_>) {
    const SHOWN_BYTES: usize = 64;
    const SHOWN_ARGS: usize = 4;
    let cut = |arg: &[u8]| arg.get(..SHOWN_BYTES).unwrap_or(arg).escape_ascii().to_string();
    let mut args = command.args().map(cut);
    let mut message = format!(
        "unknown command '{}', with args beginning with: ",
        args.next().unwrap_or_default()
    );
    for arg in args.take(SHOWN_ARGS) {
        message.push_str(&format!("'{arg}' "));
    }
    reply.error("ERR", &message);
}
