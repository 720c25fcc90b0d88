//! `DECODE id source`: decodes an ID.

use snowmint_coord::Decoded;
use snowmint_wire::resp::Command;

use super::spec::{Flow, Query, Spec};
use crate::error::Error;
use crate::resp::session::{Session, text};
use crate::service::DecodedParts;

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
    let work = arg(1).and_then(|id| Ok(Decode { id, source: arg(2)? }));
    Flow::of(work, session, output)
}

impl Query for Decode {
    type Found = Decoded;

    async fn find(&self, session: &Session) -> Result<Decoded, Error> {
        session.service.decode_by_source(&self.id, &self.source, None).await
    }

    fn write(&self, decoded: Decoded, session: &mut Session, output: &mut Vec<u8>) {
        write(&self.id, &decoded, session, output);
    }
}

/// Writes the fields of the HTTP response, without those that the source does not have.
fn write(id: &str, decoded: &Decoded, session: &Session, output: &mut Vec<u8>) {
    let mut reply = session.reply(output);
    let parts = DecodedParts::of(decoded);
    let texts = [
        ("id", Some(id.to_owned())),
        ("number", parts.number.map(|number| number.to_string())),
        ("period", parts.period.map(str::to_owned)),
        ("time", parts.time.map(|time| time.to_string())),
        ("layout", parts.layout.map(|layout| layout.to_string())),
    ];
    let numbers = [
        ("tick", parts.tick),
        ("clock", parts.clock),
        ("worker", parts.worker),
        ("sequence", parts.sequence),
        ("uuid_version", parts.uuid_version.map(u64::from)),
    ];
    let texts = texts.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let numbers = numbers.iter().filter_map(|&(name, value)| Some((name, value?)));
    reply.map(texts.clone().count().saturating_add(numbers.clone().count()));
    for (name, value) in texts {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    for (name, value) in numbers {
        reply.bulk(name.as_bytes());
        if session.wants_strings() {
            reply.bulk(value.to_string().as_bytes());
        } else {
            reply.id(value);
        }
    }
}
