//! `GET source:key`: the bound of a counter, taking nothing.

use snowmint_wire::resp::Command;

use super::{CommandWork, Flow, Session, Spec};
use crate::error::Error;
use crate::resp::session::IdTarget;
use crate::service::UnsentPermit;

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
pub(in crate::resp) struct Get {
    target: IdTarget,
}

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let arg = command.arg(1).unwrap_or_default();
    match IdTarget::counter(arg, &session.state.settings.default_counter_source) {
        Ok(target) => Flow::Wait(Box::new(CommandWork::Get(Get { target }))),
        Err(error) => {
            super::error(&error, session, output);
            Flow::Next
        }
    }
}

impl Get {
    pub(super) async fn run(self, session: &mut Session, output: &mut Vec<u8>) -> UnsentPermit {
        match self.bound(session).await {
            // Redis's form: the value of a key is a text, and null before the first.
            Ok(0) => session.reply(output).null(),
            Ok(bound) => session.reply(output).bulk(bound.to_string().as_bytes()),
            Err(error) => super::error(&error, session, output),
        }
        UnsentPermit::default()
    }

    async fn bound(&self, session: &Session) -> Result<u64, Error> {
        let IdTarget { source, key } = &self.target;
        let Some(key) = key else {
            return Err(Error::bad_request("GET needs the key of a counter; write source:key"));
        };
        session.service.bound_of(source, key).await
    }
}
