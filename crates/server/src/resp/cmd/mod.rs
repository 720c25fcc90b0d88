//! The commands: one file each, and their table.

mod auth;
mod client;
mod cluster;
mod command;
mod config;
mod decode;
mod discard;
mod echo;
mod exec;
mod get;
mod hello;
mod incr;
mod incrby;
mod info;
mod mint;
mod multi;
mod ping;
mod quit;
mod reset;
mod select;
mod web;

use snowmint_wire::error::Code;
use snowmint_wire::resp::{Command, Encoder};

use super::buffered_bytes;
use super::session::Session;
use super::transaction::{NotQueued, TRANSACTION_BYTES_MAX, Transaction};
use crate::advertised_addrs::AdvertisedAddrs;
use crate::error::{Error, SectionOwner};
use crate::service::UnsentPermit;

/// A command of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    /// Name, in lower case.
    pub(super) name: &'static str,
    /// Number of arguments, the name included; negative: the least number. Redis counts in this
    /// way.
    arity: i8,
    /// Description, in a sentence.
    summary: &'static str,
    /// Group in Redis's documents.
    group: &'static str,
    /// Whether its first argument names a source, in the place of Redis's key.
    pub(super) takes_source: bool,
    /// Whether clients may send it before they authenticate.
    is_for_all: bool,
    run: fn(&mut Session, &Command<'_>, &mut Vec<u8>) -> Flow,
}

/// Every command; the most used first.
static COMMANDS: &[Spec] = &[
    incr::SPEC,
    mint::SPEC,
    incrby::SPEC,
    get::SPEC,
    ping::SPEC,
    multi::SPEC,
    exec::SPEC,
    discard::SPEC,
    decode::SPEC,
    echo::SPEC,
    hello::SPEC,
    auth::SPEC,
    select::SPEC,
    client::SPEC,
    command::SPEC,
    info::SPEC,
    config::SPEC,
    cluster::SPEC,
    reset::SPEC,
    quit::SPEC,
];

/// Next step after a command.
pub(super) enum Flow {
    /// The reply is written; the next command follows.
    Next,
    /// The reply is written; the connection closes.
    Close,
    /// The reply needs a wait.
    Wait(Box<CommandWork>),
    /// The replies of these commands are its reply; the head of their array is written.
    Exec(Box<Transaction>),
}

/// A command that has to wait: for the store, or for the next tick.
pub(super) enum CommandWork {
    Mint(mint::Mint),
    InARow(incrby::InARow),
    Get(get::Get),
    Decode(decode::Decode),
}

impl CommandWork {
    /// Does the work, and writes the reply. Keep the result until the reply is sent.
    pub(super) async fn run(self, session: &mut Session, output: &mut Vec<u8>) -> UnsentPermit {
        match self {
            Self::Mint(work) => work.run(session, output).await,
            Self::InARow(work) => work.run(session, output).await,
            Self::Get(work) => work.run(session, output).await,
            Self::Decode(work) => work.run(session, output).await,
        }
    }
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
        session.refused(Code::BadRequest, None);
        unknown(command, &mut session.reply(output));
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
    if session.transaction.is_some() && spec.waits_for_exec() {
        return queue(session, command, output);
    }
    (spec.run)(session, command, output)
}

/// Returns the table's entry of a command, if its arguments fit the entry.
pub(super) fn known(command: &Command<'_>) -> Option<&'static Spec> {
    find(command.arg(0).unwrap_or_default()).filter(|spec| spec.accepts(command.len()))
}

/// Returns whether a command, sent after `MULTI`, is queued for `EXEC`.
pub(super) fn waits_for_exec(command: &Command<'_>) -> bool {
    known(command).is_some_and(Spec::waits_for_exec)
}

/// Queues a command for `EXEC`.
#[cold]
fn queue(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let (requests, connection) = (&session.state.requests, session.guard.connection());
    let transaction = session.transaction.as_mut();
    let queued =
        transaction.map_or(Ok(()), |transaction| transaction.queue(command, requests, connection));
    match queued {
        Ok(()) => session.reply(output).simple("QUEUED"),
        Err(NotQueued::Full(length, full)) => {
            let refused = buffered_bytes::limit_error("a transaction", length, full, requests);
            error(&refused, session, output);
        }
        Err(NotQueued::TooLong(length)) => {
            session.refused(Code::LimitExceeded, None);
            let message = format!(
                "commands since MULTI have {length} bytes, maximum {TRANSACTION_BYTES_MAX}; send \
                 EXEC more often, or ask for many IDs by one MINT"
            );
            session.reply(output).error("ERR", &message);
        }
    }
    Flow::Next
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
    COMMANDS.iter().find(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes()))
}

impl Spec {
    fn accepts(&self, args: usize) -> bool {
        let needed = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { args >= needed } else { args == needed }
    }

    /// Returns whether the command is queued for `EXEC` after `MULTI`; the rest run immediately, as
    /// in Redis.
    fn waits_for_exec(&self) -> bool {
        !matches!(self.name, "multi" | "exec" | "discard" | "reset" | "quit")
    }
}

fn wrong_arity(name: &str, reply: &mut Encoder<'_>) {
    reply.error("ERR", &format!("wrong number of arguments for '{name}' command"));
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

/// Writes the error of an unknown sub-command.
fn unknown_subcommand(container: &str, given: &[u8], reply: &mut Encoder<'_>) {
    let given = given.get(..64).unwrap_or(given).escape_ascii();
    let container = container.to_ascii_uppercase();
    reply.error("ERR", &format!("unknown subcommand '{given}'. Try {container} HELP."));
}

/// Writes an error of the service, and counts it.
fn error(error: &Error, session: &Session, output: &mut Vec<u8>) {
    session.refused(error.code(), error.cause());
    let mut reply = session.reply(output);
    if let Some(SectionOwner {
        section,
        advertised_addrs: AdvertisedAddrs { resp: Some(address), .. },
    }) = error.owner()
    {
        // Redis's words, which its cluster clients follow.
        return reply.error("MOVED", &format!("{section} {address}"));
    }
    let prefix = error.code().row().resp.as_str();
    match error.detail() {
        Some(_) if session.service.caller().sees_details() => {
            reply.error(prefix, &error.full_message());
        }
        _ => reply.error(prefix, error.message()),
    }
}
