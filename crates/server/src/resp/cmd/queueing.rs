//! Commands between `MULTI` and `EXEC`. As in Redis, a command that cannot run is rejected when it
//! is queued: a client of a cluster then follows `MOVED`, and sends the whole transaction there.
//! Values such as a count are checked when the command runs.

use snowmint_wire::error::Code;
use snowmint_wire::resp::Command;

use super::owners::{KeyCheck, KeyOwners};
use super::spec::{Flow, Query, Spec};
use super::subcommand::{self, Unfit};
use super::target::targets_of;
use super::{client, cluster, command as command_table, config, reply};
use crate::access::Right;
use crate::error::Error;
use crate::resp::buffered_bytes;
use crate::resp::session::{IdTarget, Session, text};
use crate::resp::transaction::{NotQueued, TRANSACTION_BYTES_MAX, Transaction};
use crate::service::Route;

/// Check of a queued command, which may have to look its source up in the store.
#[derive(Debug)]
struct QueuedRequest {
    targets: Vec<IdTarget>,
    check: KeyCheck,
    /// Whether an argument names the source, and none is a key of another form.
    names_source: bool,
}

/// Queues a command for `EXEC`.
#[cold]
pub(super) fn queue(
    spec: &Spec,
    session: &mut Session,
    command: &Command<'_>,
    output: &mut Vec<u8>,
) -> Flow {
    if let Err(unfit) = check_form(spec, command) {
        session.abort_transaction();
        unfit.write(spec.name, command, session, output);
        return Flow::Next;
    }
    if let Err(not_queued) = keep(session, command) {
        reject(not_queued, session, output);
        return Flow::Next;
    }
    let request = match request_of(spec, command, session) {
        None => None,
        Some(Ok(request)) => Some(request),
        Some(Err(error)) => {
            refuse(&error, session, output);
            return Flow::Next;
        }
    };
    if let (Some(request), Some(transaction)) = (&request, &mut session.transaction)
        && request.targets.iter().any(|target| target.key.is_some())
    {
        transaction.note_key();
    }
    match request {
        Some(request) => Flow::Wait(Box::new(request)),
        None => {
            session.reply(output).simple("QUEUED");
            Flow::Next
        }
    }
}

/// Checks that the command can run with some values.
fn check_form(spec: &Spec, command: &Command<'_>) -> Result<(), Unfit> {
    match spec.name {
        "client" => subcommand::find(spec.name, client::SUBCOMMANDS, command).map(drop),
        "cluster" => subcommand::find(spec.name, cluster::SUBCOMMANDS, command).map(drop),
        "command" => command_table::find(command).map(drop),
        "config" => subcommand::find(spec.name, config::SUBCOMMANDS, command).map(drop),
        _ => Ok(()),
    }
}

fn keep(session: &mut Session, command: &Command<'_>) -> Result<(), NotQueued> {
    let (requests, connection) = (&session.state.requests, session.guard.connection());
    let transaction = session.transaction.as_mut();
    transaction.map_or(Ok(()), |transaction| transaction.queue(command, requests, connection))
}

fn reject(not_queued: NotQueued, session: &Session, output: &mut Vec<u8>) {
    match not_queued {
        NotQueued::Full(length, full) => {
            let requests = &session.state.requests;
            let refused = buffered_bytes::limit_error("a transaction", length, full, requests);
            reply::error(&refused, session, output);
        }
        NotQueued::TooLong(length) => {
            session.refused(Code::LimitExceeded, None);
            let message = format!(
                "commands since MULTI have {length} bytes, maximum {TRANSACTION_BYTES_MAX}; send \
                 EXEC more often, or ask for many IDs by one MINT"
            );
            session.reply(output).error("ERR", &message);
        }
    }
}

/// Writes the error of a command that cannot run, and aborts the transaction.
fn refuse(error: &Error, session: &mut Session, output: &mut Vec<u8>) {
    session.abort_transaction();
    reply::error(error, session, output);
}

/// Returns the request of a command with a source.
fn request_of(
    spec: &Spec,
    command: &Command<'_>,
    session: &Session,
) -> Option<Result<QueuedRequest, Error>> {
    let (targets, right) = match spec.name {
        "decode" => {
            let source = text(command.arg(2).unwrap_or_default());
            let target = |source: &str| IdTarget { source: source.to_owned(), key: None };
            (source.map(|source| vec![target(source)]), Some(Right::Decode))
        }
        "incr" | "incrby" | "mint" | "get" | "hincrby" | "hget" => {
            (targets_of(spec, command, session)?, Some(Right::Mint))
        }
        _ => (targets_of(spec, command, session)?, None),
    };
    // The owner of a field is called for the client.
    let route = if is_of_hash(spec) { Route::Owner } else { session.route() };
    let check = KeyCheck { right, route, takes_unknown: spec.has_many_keys() };
    let names_source = is_of_hash(spec) || matches!(spec.name, "mint" | "decode");
    Some(targets.map(|targets| QueuedRequest { targets, check, names_source }))
}

fn is_of_hash(spec: &Spec) -> bool {
    matches!(spec.name, "hincrby" | "hget")
}

impl Query for QueuedRequest {
    type Found = KeyOwners;

    async fn find(&self, session: &Session) -> Result<KeyOwners, Error> {
        self.check.run(session, &self.targets).await
    }

    fn write(&self, owners: KeyOwners, session: &mut Session, output: &mut Vec<u8>) {
        match owners {
            KeyOwners::Here => session.reply(output).simple("QUEUED"),
            KeyOwners::Several => {
                session.abort_transaction();
                reply::cross_slot(session, output);
            }
        }
    }

    fn write_error(&self, error: &Error, session: &mut Session, output: &mut Vec<u8>) {
        if self.names_source {
            return refuse(error, session, output);
        }
        session.abort_transaction();
        reply::error_of_key(error, session, output);
    }
}

/// Returns the error of the first queued command whose key another server counts: its section may
/// have moved since it was queued. As in Redis, `EXEC` then runs no command.
pub(super) fn moved(
    transaction: &Transaction,
    known: impl Fn(&Command<'_>) -> Option<&'static Spec>,
    session: &Session,
) -> Option<Error> {
    if !transaction.has_keys() || session.route() == Route::Owner {
        return None;
    }
    transaction.find_map(|command| {
        let spec = known(command).filter(|spec| !is_of_hash(spec))?;
        let targets = targets_of(spec, command, session)?.ok()?;
        let is_moved = |target: IdTarget| session.service.moved(&target.source, &target.key?);
        targets.into_iter().find_map(is_moved)
    })
}
