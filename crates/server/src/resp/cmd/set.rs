//! `SET key value NX` and `SETNX key value`, with which programs prepare a counter.
//!
//! A counter begins at 0 by itself, and a source exists from its definition on. So neither command
//! changes anything, and the reply is that of Redis for an existing key. A reply of
//! OK would go to several callers, and each might use the value as a number of its own.

use snowmint_wire::resp::Command;

use super::keys::{self, KeyState};
use super::rejected::{self, CHANGES_VALUE, EXPIRES, LOCKS};
use super::reply::{self, SYNTAX};
use super::spec::{Flow, Query, Spec};
use super::target;
use crate::error::{Error, shown};
use crate::resp::session::{IdTarget, Session};

/// `SET key value NX [GET] [KEEPTTL]`.
pub(super) const SET: Spec = Spec {
    name: "set",
    arity: -3,
    summary: "With NX, returns null: a counter begins at 0 by itself. Rejected without NX.",
    group: "string",
    takes_source: true,
    is_for_all: false,
    run: set,
};

/// `SETNX key value`.
pub(super) const SETNX: Spec = Spec {
    name: "setnx",
    arity: 3,
    summary: "Returns 0: a counter begins at 0 by itself.",
    group: "string",
    takes_source: true,
    is_for_all: false,
    run: |session, command, output| prepare(session, command, output, SetReply::Number),
};

fn set(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let reason = match Options::read(command) {
        None => {
            session.reply(output).error("ERR", SYNTAX);
            return Flow::Next;
        }
        Some(Options { expires: true, nx: true, .. }) => LOCKS,
        Some(Options { expires: true, .. }) => EXPIRES,
        Some(Options { nx: false, .. }) => CHANGES_VALUE,
        Some(Options { get: true, .. }) => {
            return prepare(session, command, output, SetReply::Value);
        }
        Some(_) => return prepare(session, command, output, SetReply::Null),
    };
    rejected::write(SET.name, reason, session, output);
    Flow::Next
}

/// Options of `SET`.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    nx: bool,
    get: bool,
    expires: bool,
}

impl Options {
    /// Reads the options, in any order and case. Returns `None` for what Redis does not know.
    fn read(command: &Command<'_>) -> Option<Self> {
        let mut options = Self::default();
        let (mut xx, mut expiries) = (false, 0);
        let mut args = command.args().skip(3);
        while let Some(arg) = args.next() {
            let is = |name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
            if is("nx") {
                options.nx = true;
            } else if is("xx") {
                xx = true;
            } else if is("get") {
                options.get = true;
            } else if is("keepttl") {
                expiries += 1;
            } else if is("ex") || is("px") || is("exat") || is("pxat") {
                args.next()?;
                options.expires = true;
                expiries += 1;
            } else {
                return None;
            }
        }
        (!(options.nx && xx) && expiries <= 1).then_some(options)
    }
}

/// Form of the reply for a key that exists.
#[derive(Clone, Copy, Debug)]
enum SetReply {
    Null,
    Number,
    /// `SET key value NX GET`.
    Value,
}

/// A counter to prepare.
#[derive(Debug)]
struct Prepare {
    target: IdTarget,
    value: Vec<u8>,
    reply: SetReply,
}

fn prepare(
    session: &mut Session,
    command: &Command<'_>,
    output: &mut Vec<u8>,
    form: SetReply,
) -> Flow {
    let target = target::key(session, command.arg(1).unwrap_or_default());
    let value = || command.arg(2).unwrap_or_default().to_owned();
    let work = target.map(|target| Prepare { target, value: value(), reply: form });
    Flow::of(work, session, output)
}

impl Query for Prepare {
    type Found = KeyState;

    async fn find(&self, session: &Session) -> Result<KeyState, Error> {
        let named = keys::look_up(session, &self.target).await?;
        let IdTarget { source, key } = &self.target;
        match key {
            Some(key) if named == KeyState::Absent && self.value != b"0" => {
                let value = shown(&String::from_utf8_lossy(&self.value)).to_string();
                Err(Error::bad_request(format!(
                    "key {} has no numbers yet and begins at 1, not at {value}; to begin above N, \
                     send PUT /v1/counters/{source}/KEY with {{\"bound\":\"N\"}} over HTTP",
                    shown(key)
                )))
            }
            _ => Ok(named),
        }
    }

    fn write_error(&self, error: &Error, session: &mut Session, output: &mut Vec<u8>) {
        reply::error_of_key(error, session, output);
    }

    fn write(&self, found: KeyState, session: &mut Session, output: &mut Vec<u8>) {
        match (found, self.reply) {
            (_, SetReply::Number) => session.reply(output).integer(0),
            (KeyState::Counter { bound }, SetReply::Value) => {
                session.reply(output).bulk(bound.to_string().as_bytes());
            }
            _ => session.reply(output).null(),
        }
    }
}
