//! `INCRBY source n`: n numbers in a row, of which the last is answered, as Redis does.

use snowmint_coord::Row;
use snowmint_wire::http::Count;
use snowmint_wire::resp::Command;

use super::mint::read_count;
use super::{Flow, Session, Spec, Work};
use crate::resp::session::Target;
use crate::service::{Error, Hold};

pub(super) const SPEC: Spec = Spec {
    name: "incrby",
    arity: 3,
    summary: "Takes numbers in a row of a segment source; answers the last.",
    group: "string",
    takes_source: true,
    run,
};

/// Numbers to be taken in a row.
#[derive(Debug)]
pub(in crate::resp) struct InARow {
    target: Target,
    length: Count,
}

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let work = Target::read(command.arg(1).unwrap_or_default()).and_then(|target| {
        Ok(InARow { target, length: read_count(command.arg(2).unwrap_or_default())? })
    });
    match work {
        Ok(work) => Flow::Wait(Box::new(Work::InARow(work))),
        Err(error) => {
            super::error(&error, &mut session.reply(output));
            Flow::Next
        }
    }
}

impl InARow {
    pub(super) async fn run(self, session: &mut Session, output: &mut Vec<u8>) -> Hold {
        match self.taken(session).await {
            Ok(row) => session.reply(output).id(row.last),
            Err(error) => super::error(&error, &mut session.reply(output)),
        }
        Hold::default()
    }

    async fn taken(&self, session: &Session) -> Result<Row, Error> {
        if self.target.key.is_some() {
            return Err(Error::no_counters());
        }
        session.door.service.take_in_a_row(&self.target.source, self.length.get()).await
    }
}
