//! `MintStream`: mints IDs at the pace of the caller's reads.

use std::future::poll_fn;
use std::task::Poll;

use futures_util::stream;
use snowmint_wire::error::Code;
use snowmint_wire::grpc::{MintStreamRequest, MintStreamResponse};
use tokio::task::JoinSet;
use tonic::Status;
use tonic::codegen::BoxStream;

use super::parts::{at_least_one, parted};
use crate::error::Error;
use crate::net::shutdown::stopping;
use crate::service::{Minted, Route, Service};

/// IDs of a message: few enough that little is left over when the caller stops reading. A message
/// is minted when there is room to send it.
const CHUNK: u64 = 1_000;

/// A stream in progress.
#[derive(Debug)]
struct Minting {
    service: Service,
    source: String,
    key: Option<String>,
    total: u64,
    sent: u64,
}

/// Returns the messages of the response.
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
        // The stream ends after an error.
        match minting.next().await {
            Ok(message) => Some((Ok(message), Some(minting))),
            Err(error) => {
                minting.service.record_stream_error(&error);
                let in_full = minting.service.caller().sees_details();
                let error = if in_full { error.in_full() } else { error };
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
        let count = self.total.saturating_sub(self.sent).min(CHUNK);
        let (service, source, key) = (self.service.clone(), self.source.clone(), self.key.clone());
        let minting =
            async move { Ok(service.mint(&source, count, key.as_deref(), Route::Owner).await?.1) };
        let mut closing = self.service.closing().clone();
        let minted = tokio::select! {
            biased;
            // Even while the numbers of this message do not come.
            () = stopping(&mut closing) => {
                Err(Error::new(Code::Closed, "server is stopping; call another server"))
            }
            minted = to_its_end(minting) => minted,
        };
        let (values, _) = minted.map_err(|error| self.cut_off(error))?.into_parts();
        self.sent = self.sent.saturating_add(count);
        let (ids, texts) = parted(values);
        Ok(MintStreamResponse { ids, texts })
    }

    /// Returns the error with the progress of the stream.
    fn cut_off(&self, error: Error) -> Error {
        match self.sent {
            0 => error,
            sent => error.adding(&format!("{sent} of {} IDs were sent before", self.total)),
        }
    }
}

/// Completes work in progress, even when nothing polls it: a caller that stops reading polls
/// nothing, and the time limit of the work would run out. A drop ends the work.
async fn to_its_end(
    work: impl Future<Output = Result<Minted, Error>> + Send + 'static,
) -> Result<Minted, Error> {
    let mut work = Box::pin(work);
    if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        return done;
    }
    let mut task = JoinSet::new();
    task.spawn(work);
    let ended = task.join_next().await.and_then(Result::ok);
    ended.unwrap_or_else(|| {
        let message = "internal error: part of the stream was lost; please report it";
        Err(Error::new(Code::Internal, message))
    })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::sync::oneshot;
    use tokio::task::yield_now;

    use super::*;

    /// The situation when the caller's window is full while a message is minted.
    #[tokio::test]
    async fn begun_stream_ends_without_a_reader() {
        let (ready, wait) = oneshot::channel::<()>();
        let has_ended = Arc::new(AtomicBool::new(false));
        let work = {
            let has_ended = Arc::clone(&has_ended);
            async move {
                let _ = wait.await;
                has_ended.store(true, Ordering::Release);
                Err(Error::new(Code::Closed, "the work's own end"))
            }
        };
        let mut read = pin!(to_its_end(work));
        let first = poll_fn(|context| Poll::Ready(read.as_mut().poll(context))).await;
        assert!(first.is_pending());
        ready.send(()).unwrap();
        // One thread runs all, in turn: the work is done long before.
        for _ in 0..100 {
            yield_now().await;
        }
        assert!(has_ended.load(Ordering::Acquire));
        assert_eq!(read.await.unwrap_err().code(), Code::Closed);
    }
}
