//! A row of the table of commands, and what a command leaves to do.

use futures_util::future::BoxFuture;
use snowmint_wire::resp::Command;

use super::reply;
use crate::error::Error;
use crate::resp::session::Session;
use crate::resp::transaction::Transaction;
use crate::service::UnsentPermit;

/// A command of the table.
#[derive(Clone, Copy, Debug)]
pub(in crate::resp) struct Spec {
    /// Name, in lower case.
    pub(in crate::resp) name: &'static str,
    /// Number of arguments, the name included; negative: the least number. Redis counts in this
    /// way.
    pub(super) arity: i8,
    /// Description, in a sentence.
    pub(super) summary: &'static str,
    /// Group in Redis's documents.
    pub(super) group: &'static str,
    /// Whether its first argument names a source, in the place of Redis's key.
    pub(in crate::resp) takes_source: bool,
    /// Whether clients may send it before they authenticate.
    pub(super) is_for_all: bool,
    pub(super) run: Run,
}

/// Function that runs a command.
pub(super) type Run = fn(&mut Session, &Command<'_>, &mut Vec<u8>) -> Flow;

impl Spec {
    /// Returns whether it has this name, in either case.
    pub(super) fn has_name(&self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(self.name.as_bytes())
    }

    pub(super) fn accepts(&self, args: usize) -> bool {
        let needed = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { (needed..=self.args_max()).contains(&args) } else { args == needed }
    }

    /// Returns the greatest number of arguments, the name included. Redis has none in its table:
    /// its commands check it when they run, which is too late for a queued command.
    fn args_max(&self) -> usize {
        if self.name == "mint" { 3 } else { usize::MAX }
    }

    /// Returns the place of the last key, which is the first one unless there may be several;
    /// negative: counted from the end. Redis counts in this way.
    pub(super) fn last_key(&self) -> i64 {
        if self.has_many_keys() { -1 } else { 1 }
    }

    /// Returns whether every argument is a key.
    pub(super) fn has_many_keys(&self) -> bool {
        matches!(self.name, "exists" | "mget" | "touch" | "watch")
    }

    /// Returns whether the command only reads.
    pub(super) fn is_read(&self) -> bool {
        matches!(
            self.name,
            "exists"
                | "expiretime"
                | "get"
                | "mget"
                | "pexpiretime"
                | "pttl"
                | "touch"
                | "ttl"
                | "type"
        )
    }

    /// Returns whether the command is queued for `EXEC` after `MULTI`; the rest run immediately, as
    /// in Redis.
    pub(super) fn waits_for_exec(&self) -> bool {
        !matches!(self.name, "multi" | "exec" | "discard" | "watch" | "reset" | "quit")
    }
}

/// Next step after a command.
pub(in crate::resp) enum Flow {
    /// The reply is written; the next command follows.
    Next,
    /// The reply is written; the connection closes.
    Close,
    /// The reply needs a wait.
    Wait(Box<dyn CommandWork>),
    /// The replies of these commands are its reply; the head of their array is written.
    Exec(Box<Transaction>),
}

/// A command that has to wait: for the store, or for the next tick.
pub(in crate::resp) trait CommandWork: Send {
    /// Does the work, and writes the reply. Keep the result until the reply is sent.
    fn run<'a>(
        self: Box<Self>,
        session: &'a mut Session,
        output: &'a mut Vec<u8>,
    ) -> BoxFuture<'a, UnsentPermit>;
}

/// A command that waits for one result, and then writes it.
pub(super) trait Query: Send + 'static {
    type Found: Send;

    /// Waits for the result.
    fn find(&self, session: &Session) -> impl Future<Output = Result<Self::Found, Error>> + Send;

    fn write(&self, found: Self::Found, session: &mut Session, output: &mut Vec<u8>);

    fn write_error(&self, error: &Error, session: &mut Session, output: &mut Vec<u8>) {
        reply::error(error, session, output);
    }
}

impl<T: Query> CommandWork for T {
    fn run<'a>(
        self: Box<Self>,
        session: &'a mut Session,
        output: &'a mut Vec<u8>,
    ) -> BoxFuture<'a, UnsentPermit> {
        Box::pin(async move {
            match self.find(session).await {
                Ok(found) => self.write(found, session, output),
                Err(error) => self.write_error(&error, session, output),
            }
            UnsentPermit::default()
        })
    }
}

impl Flow {
    /// Returns the step of a command whose arguments were read: its work, or an error.
    pub(super) fn of(
        work: Result<impl CommandWork + 'static, Error>,
        session: &Session,
        output: &mut Vec<u8>,
    ) -> Self {
        match work {
            Ok(work) => Self::Wait(Box::new(work)),
            Err(error) => {
                reply::error(&error, session, output);
                Self::Next
            }
        }
    }
}
