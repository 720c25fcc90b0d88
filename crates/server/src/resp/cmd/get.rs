//! `GET source:key`: the bound of a counter, taking nothing.

use snowmint_wire::resp::Command;

use super::reply;
use super::spec::{Flow, Query, Spec};
use crate::error::Error;
use crate::resp::session::{IdTarget, Session};
use crate::service::Route;

pub(super) const SPEC: Spec = Spec {
    name: "get",
    arity: 2,
    summary: "Returns the highest number that a counter (source:key) may have returned.",
    group: "string",
    takes_source: true,
    is_for_all: false,
    run,
};

/// Read of a counter.
#[derive(Debug)]
pub(super) struct Get {
    pub(super) target: IdTarget,
    /// Whether the key is the field of a hash, whose owner is called for the client.
    pub(super) is_field: bool,
}

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let arg = command.arg(1).unwrap_or_default();
    let target = IdTarget::counter(arg, &session.state.settings.default_counter_source);
    Flow::of(target.map(|target| Get { target, is_field: false }), session, output)
}

impl Query for Get {
    type Found = u64;

    async fn find(&self, session: &Session) -> Result<u64, Error> {
        let IdTarget { source, key } = &self.target;
        let Some(key) = key else {
            return Err(Error::bad_request("GET needs the key of a counter; write source:key"));
        };
        let route = if self.is_field { Route::Owner } else { session.route() };
        session.service.bound_of(source, key, route).await
    }
    fn write(&self, bound: u64, session: &mut Session, output: &mut Vec<u8>) {
        // Redis's form: the value of a key is a text, and null before the first.
        match bound {
            0 => session.reply(output).null(),
            bound => session.reply(output).bulk(bound.to_string().as_bytes()),
        }
    }

    fn write_error(&self, error: &Error, session: &mut Session, output: &mut Vec<u8>) {
        if self.is_field {
            reply::error_of_field(error, session, output);
        } else {
            reply::error_of_key(error, session, output);
        }
    }
}
