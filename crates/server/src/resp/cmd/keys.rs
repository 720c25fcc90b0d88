//! Commands that read what a key names: a source, or a counter (`source:key`). None takes a number.

use snowmint_coord::spec::Kind;
use snowmint_wire::error::Code;
use snowmint_wire::resp::{Command, Encoder};

use super::owners::{KeyCheck, KeyOwners};
use super::spec::{Flow, Query, Spec};
use super::{reply, target};
use crate::access::Right;
use crate::error::Error;
use crate::resp::session::{IdTarget, Session};

/// State of a key: the thing that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyState {
    /// A counter whose key has no numbers yet, or no source of this name.
    Absent,
    /// A counter whose key may have returned this number, and no higher one.
    Counter { bound: u64 },
    /// A counter source: its keys are named `source:key`.
    CounterSource,
    /// Any other source.
    Source,
}

/// Looks up what a key names.
///
/// # Errors
/// Without the right to mint, for an unknown source, for a key of another server's section, or when
/// the store does not respond.
pub(super) async fn look_up(session: &Session, target: &IdTarget) -> Result<KeyState, Error> {
    let IdTarget { source, key } = target;
    Ok(match key {
        Some(key) => match session.service.bound_of(source, key, session.route()).await? {
            0 => KeyState::Absent,
            bound => KeyState::Counter { bound },
        },
        None => match session.service.kind_of(source).await? {
            Kind::Counter => KeyState::CounterSource,
            _ => KeyState::Source,
        },
    })
}

/// `EXISTS key [key...]`, and `TOUCH`, which is the same where no key is ever evicted.
pub(super) const EXISTS: Spec = Spec {
    name: "exists",
    arity: -2,
    summary: "Counts the keys that are a source, or a counter with numbers.",
    group: "generic",
    takes_source: true,
    is_for_all: false,
    run: |session, command, output| read(session, command, output, write_count),
};

pub(super) const TOUCH: Spec = Spec { name: "touch", ..EXISTS };

fn write_count(found: &[KeyState], reply: &mut Encoder<'_>) {
    let count = found.iter().filter(|named| **named != KeyState::Absent).count();
    reply.id(u64::try_from(count).unwrap_or(u64::MAX));
}

/// `TTL key` and its like: no key has an expiry.
pub(super) const TTL: Spec = Spec {
    name: "ttl",
    arity: 2,
    summary: "Returns -1 for a source or a counter, which never expire, and -2 for neither.",
    group: "generic",
    takes_source: true,
    is_for_all: false,
    run: |session, command, output| read(session, command, output, write_expiry),
};

pub(super) const PTTL: Spec = Spec { name: "pttl", ..TTL };
pub(super) const EXPIRETIME: Spec = Spec { name: "expiretime", ..TTL };
pub(super) const PEXPIRETIME: Spec = Spec { name: "pexpiretime", ..TTL };

fn write_expiry(found: &[KeyState], reply: &mut Encoder<'_>) {
    reply.integer(if found.contains(&KeyState::Absent) { -2 } else { -1 });
}

/// `PERSIST key`: no key has an expiry to remove.
pub(super) const PERSIST: Spec = Spec {
    name: "persist",
    arity: 2,
    summary: "Returns 0: sources and counters have no expiry to remove.",
    group: "generic",
    takes_source: true,
    is_for_all: false,
    run: |session, command, output| read(session, command, output, |_, reply| reply.integer(0)),
};

/// `TYPE key`.
pub(super) const TYPE: Spec = Spec {
    name: "type",
    arity: 2,
    summary: "Returns string for a counter or a source, and hash for a counter source.",
    group: "generic",
    takes_source: true,
    is_for_all: false,
    run: |session, command, output| read(session, command, output, write_type),
};

fn write_type(found: &[KeyState], reply: &mut Encoder<'_>) {
    reply.simple(match found.first() {
        None | Some(KeyState::Absent) => "none",
        // HINCRBY counts its keys as fields.
        Some(KeyState::CounterSource) => "hash",
        Some(KeyState::Counter { .. } | KeyState::Source) => "string",
    });
}

/// `MGET key [key...]`: `GET` of each; null for what is not a counter.
pub(super) const MGET: Spec = Spec {
    name: "mget",
    arity: -2,
    summary: "Returns the highest numbers that counters (source:key) may have returned.",
    group: "string",
    takes_source: true,
    is_for_all: false,
    run: |session, command, output| read(session, command, output, write_values),
};

fn write_values(found: &[KeyState], reply: &mut Encoder<'_>) {
    reply.array(found.len());
    for named in found {
        match named {
            KeyState::Counter { bound } => reply.bulk(bound.to_string().as_bytes()),
            KeyState::Absent | KeyState::CounterSource | KeyState::Source => reply.null(),
        }
    }
}

/// Function that writes the reply from what the keys name.
type Write = fn(&[KeyState], &mut Encoder<'_>);

/// Keys to look up.
#[derive(Debug)]
struct ReadKeys {
    targets: Vec<IdTarget>,
    write: Write,
}

fn read(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>, write: Write) -> Flow {
    let targets: Result<_, Error> =
        command.args().skip(1).map(|arg| target::key(session, arg)).collect();
    Flow::of(targets.map(|targets| ReadKeys { targets, write }), session, output)
}

impl Query for ReadKeys {
    /// States of the keys; `None` when no server has all of them.
    type Found = Option<Vec<KeyState>>;

    /// Looks up each key, one after the other. All of them together wait about as long as one key
    /// may.
    async fn find(&self, session: &Session) -> Result<Self::Found, Error> {
        let wait_ms = session.service.live().limit(|limits| limits.wait_max.ms());
        let timer = &session.state.timer;
        let begun = timer.elapsed();
        let mut found = Vec::with_capacity(self.targets.len());
        for target in &self.targets {
            if timer.elapsed().since(begun) > wait_ms {
                let (at, all) = (found.len(), self.targets.len());
                return Err(Error::new(
                    Code::Unavailable,
                    format!(
                        "keys looked up after {wait_ms} ms (limits.wait_max): {at} of {all}; retry, \
                         with fewer keys"
                    ),
                ));
            }
            found.push(match look_up(session, target).await {
                Err(error) if error.code() == Code::UnknownSource => KeyState::Absent,
                Err(error) if error.code() == Code::NotOwner => {
                    return self.redirect(error, session).await;
                }
                found => found?,
            });
        }
        Ok(Some(found))
    }

    fn write(&self, found: Self::Found, session: &mut Session, output: &mut Vec<u8>) {
        match found {
            Some(found) => (self.write)(&found, &mut session.reply(output)),
            None => reply::cross_slot(session, output),
        }
    }
}

impl ReadKeys {
    /// Returns the redirect of one key, if its owner has the others, too.
    async fn redirect(
        &self,
        error: Error,
        session: &Session,
    ) -> Result<Option<Vec<KeyState>>, Error> {
        let route = session.route();
        let check = KeyCheck { right: Some(Right::Mint), route, takes_unknown: true };
        match check.run(session, &self.targets).await? {
            KeyOwners::Several => Ok(None),
            KeyOwners::Here => Err(error),
        }
    }
}
