//! `GET source:key`: the bound of a counter, taking nothing.

use futures_util::future::BoxFuture;
use snowmint_wire::resp::Command;

use super::reply;
use super::spec::{CommandWork, Flow, Spec};
use crate::error::Error;
use crate::resp::session::{IdTarget, Session};
use crate::service::{Route, UnsentPermit};

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
    match IdTarget::counter(arg, &session.state.settings.default_counter_source) {
        Ok(target) => Flow::Wait(Box::new(Get { target, is_field: false })),
        Err(error) => {
            reply::error(&error, session, output);
            Flow::Next
        }
    }
}

impl CommandWork for Get {
    fn run<'a>(
        self: Box<Self>,
        session: &'a mut Session,
        output: &'a mut Vec<u8>,
    ) -> BoxFuture<'a, UnsentPermit> {
        Box::pin(async move {
            match self.bound(session).await {
                // Redis's form: the value of a key is a text, and null before the first.
                Ok(0) => session.reply(output).null(),
                Ok(bound) => session.reply(output).bulk(bound.to_string().as_bytes()),
                Err(error) if self.is_field => reply::error_of_field(&error, session, output),
                Err(error) => reply::error(&error, session, output),
            }
            UnsentPermit::default()
        })
    }
}

impl Get {
    async fn bound(&self, session: &Session) -> Result<u64, Error> {
        let IdTarget { source, key } = &self.target;
        let Some(key) = key else {
            return Err(Error::bad_request("GET needs the key of a counter; write source:key"));
        };
        let route = if self.is_field { Route::Owner } else { session.route() };
        session.service.bound_of(source, key, route).await
    }
}
