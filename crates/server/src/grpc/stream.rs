//! `MintStream`: IDs as the caller reads them.

use futures_util::stream;
use snowmint_wire::error::Code;
use snowmint_wire::grpc::{MintStreamRequest, MintStreamResponse};
use tonic::Status;
use tonic::codegen::BoxStream;

use super::mint::{at_least_one, parted};
use crate::service::{Error, Service};

/// How many IDs a message has. Few enough that nothing of it is left lying about when the caller stops
/// reading: a message is minted when there is room to send it.
const CHUNK: u64 = 1_000;

/// A stream under way.
#[derive(Debug)]
struct Minting {
    service: Service,
    source: String,
    key: Option<String>,
    total: u64,
    sent: u64,
}

/// The messages that a request is answered with.
pub(super) fn of(
    service: Service,
    request: MintStreamRequest,
) -> Result<BoxStream<MintStreamResponse>, Error> {
    let MintStreamRequest { source, total, key } = request;
    let total = at_least_one("total", total)?;
    service.may_stream(&source, total)?;
    let minting = Minting { service, source, key, total, sent: 0 };
    let messages = stream::unfold(Some(minting), |minting| async {
        let mut minting = minting.filter(Minting::has_more)?;
        // After an error there is nothing more.
        match minting.next().await {
            Ok(message) => Some((Ok(message), Some(minting))),
            Err(error) => {
                minting.service.broke_off(&error);
                Some((Err(Status::from(error)), None))
            }
        }
    });
    Ok(Box::pin(messages))
}

impl Minting {
    const fn has_more(&self) -> bool {
        self.sent < self.total
    }

    async fn next(&mut self) -> Result<MintStreamResponse, Error> {
        if *self.service.closing().borrow() {
            return Err(self.cut_off(Error::new(Code::Closed, "the server is stopping")));
        }
        let count = self.total.saturating_sub(self.sent).min(CHUNK);
        let minted = self.service.mint_for(&self.source, count, self.key.as_deref()).await;
        let (values, _) = minted.map_err(|error| self.cut_off(error))?.into_parts();
        self.sent = self.sent.saturating_add(count);
        let (ids, texts) = parted(values);
        Ok(MintStreamResponse { ids, texts })
    }

    /// An error that says how far the stream came.
    fn cut_off(&self, error: Error) -> Error {
        match self.sent {
            0 => error,
            sent => error.adding(&format!("{sent} of {} IDs were sent before", self.total)),
        }
    }
}
