//! `MINT source [count]`: one ID, or an array of exactly `count`.

use futures_util::future::BoxFuture;
use snowmint_coord::{IdBatch, Source};
use snowmint_wire::http::Count;
use snowmint_wire::resp::{Command, Encoder};

use super::ids;
use super::reply;
use super::spec::{CommandWork, Flow, Spec};
use crate::error::{Error, shown};
use crate::resp::session::{IdTarget, Session};
use crate::service::{Minted, UnsentPermit};

pub(super) const SPEC: Spec = Spec {
    name: "mint",
    arity: -2,
    summary: "Mints one ID of a source, or the requested number of IDs.",
    group: "string",
    takes_source: true,
    is_for_all: false,
    run,
};

/// IDs to mint.
#[derive(Debug)]
pub(super) struct Mint {
    pub(super) target: IdTarget,
    /// Number of IDs, as an array; `None`: one ID, by itself.
    pub(super) count: Option<Count>,
    /// Whether the single ID was taken from the caller's rate already.
    pub(super) admitted: bool,
    /// Whether the command is `INCR`, which may have a key in place of a source.
    pub(super) is_incr: bool,
}

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let arg = command.arg(1).unwrap_or_default();
    let count = command.arg(2).map(read_count).transpose();
    let work = count.and_then(|count| {
        let target = IdTarget::read(arg)?;
        Ok(Mint { target, count, admitted: false, is_incr: false })
    });
    Flow::of(work, session, output)
}

/// Parses a whole number of at least 1.
pub(super) fn read_count(digits: &[u8]) -> Result<Count, Error> {
    Count::from_digits(digits).ok_or_else(|| {
        let given = shown(&String::from_utf8_lossy(digits));
        Error::bad_request(format!("count {given} is not a whole number of at least 1; correct it"))
    })
}

impl CommandWork for Mint {
    fn run<'a>(
        self: Box<Self>,
        session: &'a mut Session,
        output: &'a mut Vec<u8>,
    ) -> BoxFuture<'a, UnsentPermit> {
        Box::pin(async move {
            match self.minted(session).await {
                Ok((source, minted)) => {
                    let (values, unsent_permit) = minted.into_parts();
                    match values {
                        IdBatch::Numbers(numbers) if self.count.is_some() => {
                            ids::write_array(&numbers, &source, session, output);
                        }
                        IdBatch::Numbers(numbers) => {
                            for id in numbers {
                                ids::write_one(id, &source, session, output);
                            }
                        }
                        IdBatch::Texts(texts) => {
                            write_texts(&texts, self.count.is_some(), &mut session.reply(output))
                        }
                    }
                    unsent_permit
                }
                Err(error) => {
                    session.forget_source();
                    if self.is_incr {
                        reply::error_of_key(&error, session, output);
                    } else {
                        reply::error(&error, session, output);
                    }
                    UnsentPermit::default()
                }
            }
        })
    }
}

impl Mint {
    async fn minted(&self, session: &mut Session) -> Result<(Source, Minted), Error> {
        let IdTarget { source: name, key } = &self.target;
        let (service, key, route) = (&session.service, key.as_deref(), session.route());
        let (source, minted) = if self.admitted {
            service.mint_admitted(name, 1, key, route).await?
        } else {
            let count = self.count.unwrap_or_default().get();
            service.mint(name, count, key, route).await?
        };
        session.keep_source(name, source.clone());
        Ok((source, minted))
    }
}

fn write_texts(texts: &[String], as_array: bool, reply: &mut Encoder<'_>) {
    if as_array {
        reply.array(texts.len());
    }
    texts.iter().for_each(|id| reply.bulk(id.as_bytes()));
}
