//! `INCRBY source n`, `INCRBY source:key n`: takes n numbers in a row and returns the last, as
//! Redis does. With n = 1 it equals `INCR`, of any source: libraries such as redis-py write every
//! `INCR` so.

use snowmint_coord::Source;
use snowmint_wire::http::Count;
use snowmint_wire::resp::Command;

use super::mint::read_count;
use super::spec::{Flow, Query, Spec};
use super::{ids, incr, reply};
use crate::error::Error;
use crate::resp::session::{IdTarget, Session};
use crate::service::Route;

pub(super) const SPEC: Spec = Spec {
    name: "incrby",
    arity: 3,
    summary: "Takes numbers in a row of a segment source or a counter; returns the last.",
    group: "string",
    takes_source: true,
    is_for_all: false,
    run,
};

/// Numbers to take in a row.
#[derive(Debug)]
pub(super) struct InARow {
    pub(super) target: IdTarget,
    pub(super) length: Count,
    /// Whether the key is the field of a hash, whose owner is called for the client.
    pub(super) is_field: bool,
}

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let arg = command.arg(1).unwrap_or_default();
    let default = &session.state.settings.default_counter_source;
    let work = IdTarget::counter(arg, default).and_then(|target| {
        let length = read_count(command.arg(2).unwrap_or_default())?;
        Ok(InARow { target, length, is_field: false })
    });
    match work {
        Ok(InARow { length, .. }) if length.get() == 1 => {
            (incr::SPEC.run)(session, command, output)
        }
        work => Flow::of(work, session, output),
    }
}

impl Query for InARow {
    /// The source, and the last number.
    type Found = (Source, u64);

    async fn find(&self, session: &Session) -> Result<Self::Found, Error> {
        let (service, length) = (&session.service, self.length.get());
        let IdTarget { source, key } = &self.target;
        let last = match key {
            Some(key) => {
                let route = if self.is_field { Route::Owner } else { session.route() };
                service.count(source, key, length, route).await?.last
            }
            None => service.reserve_consecutive(source, length).await?.last,
        };
        Ok((service.source(source).await?, last))
    }
    fn write(&self, (source, last): Self::Found, session: &mut Session, output: &mut Vec<u8>) {
        ids::write_one(last, &source, session, output);
    }

    fn write_error(&self, error: &Error, session: &mut Session, output: &mut Vec<u8>) {
        if self.is_field {
            reply::error_of_field(error, session, output);
        } else {
            reply::error_of_key(error, session, output);
        }
    }
}
