//! `DECODE id source`: decodes an ID.

use futures_util::future::BoxFuture;
use snowmint_wire::http::DecodedBody;
use snowmint_wire::resp::{Command, Encoder};

use super::reply;
use super::spec::{CommandWork, Flow, Spec};
use crate::error::Error;
use crate::resp::session::{Session, text};
use crate::service::{UnsentPermit, decoded_body};

pub(super) const SPEC: Spec = Spec {
    name: "decode",
    arity: 3,
    summary: "Decodes an ID of a source: time, worker, sequence.",
    group: "string",
    takes_source: false,
    is_for_all: false,
    run,
};

/// An ID to decode.
#[derive(Debug)]
struct Decode {
    id: String,
    source: String,
}

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let arg = |index| text(command.arg(index).unwrap_or_default()).map(str::to_owned);
    match arg(1).and_then(|id| Ok(Decode { id, source: arg(2)? })) {
        Ok(work) => Flow::Wait(Box::new(work)),
        Err(error) => {
            reply::error(&error, session, output);
            Flow::Next
        }
    }
}

impl CommandWork for Decode {
    fn run<'a>(
        self: Box<Self>,
        session: &'a mut Session,
        output: &'a mut Vec<u8>,
    ) -> BoxFuture<'a, UnsentPermit> {
        Box::pin(async move {
            match self.decoded(session).await {
                Ok(decoded) => write(&decoded, &mut session.reply(output)),
                Err(error) => reply::error(&error, session, output),
            }
            UnsentPermit::default()
        })
    }
}

impl Decode {
    async fn decoded(&self, session: &Session) -> Result<DecodedBody, Error> {
        let decoded = session.service.decode_by_source(&self.id, &self.source).await?;
        Ok(decoded_body(&self.id, &decoded))
    }
}

/// Writes the fields of the HTTP response, without those that the source does not have.
fn write(decoded: &DecodedBody, reply: &mut Encoder<'_>) {
    let texts = [
        ("id", Some(&decoded.id)),
        ("number", decoded.number.as_ref()),
        ("period", decoded.period.as_ref()),
        ("time", decoded.time.as_ref()),
        ("layout", decoded.layout.as_ref()),
    ];
    let numbers = [
        ("tick", decoded.tick),
        ("clock", decoded.clock),
        ("worker", decoded.worker),
        ("sequence", decoded.sequence),
        ("uuid_version", decoded.uuid_version.map(u64::from)),
    ];
    let texts = texts.iter().filter_map(|&(name, value)| Some((name, value?)));
    let numbers = numbers.iter().filter_map(|&(name, value)| Some((name, value?)));
    reply.map(texts.clone().count().saturating_add(numbers.clone().count()));
    for (name, value) in texts {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    for (name, value) in numbers {
        reply.bulk(name.as_bytes());
        reply.id(value);
    }
}
