//! A connection to one server, which has said which store it offers.

use std::sync::Arc;
use std::time::Duration;

use snowmint_coord::{Error, Timer};
use snowmint_wire::grpc::store::{DOOR, DescribeRequest, DescribeResponse};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::failed::{Failed, of_store, unavailable};
use crate::refusal::refused;

/// A silent connection is asked this often whether it lives, and given up when it does not say so.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest answer: some hundred thousand slots.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const AUTHORIZATION: &str = "authorization";

/// A connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) address: Arc<str>,
    channel: Channel,
    bearer: Option<MetadataValue<Ascii>>,
    door: Option<MetadataValue<Ascii>>,
    /// What the server said of its store.
    pub(crate) described: Arc<DescribeResponse>,
}

impl Link {
    /// Connects to the server at this address, and has it described.
    pub(crate) async fn open(
        op: &'static str,
        address: &Arc<str>,
        bearer: Option<MetadataValue<Ascii>>,
    ) -> Result<Self, Failed> {
        let not_there = |error: &dyn std::error::Error| {
            Failed::NotDone(unavailable(op, address, &chain(error)))
        };
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|error| {
            Failed::Refused(Error::invalid(op, format!("{address} is no HOST:PORT: {error}")))
        })?;
        let endpoint = endpoint
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        let channel = endpoint.connect().await.map_err(|error| not_there(&error))?;
        let address = Arc::clone(address);
        let mut link = Self { address, channel, bearer, door: None, described: Arc::default() };
        let asked = link.ask("/snowmint.store.v1.Store/Describe", DescribeRequest {}).await;
        let mut described: DescribeResponse = match asked {
            Ok(described) => described,
            // Nothing but a description was asked for.
            Err(status) => {
                return Err(match of_store(op, &link.address, &status) {
                    Failed::Unknown(error) => Failed::NotDone(error),
                    failed => failed,
                });
            }
        };
        if let Some(refusal) = described.refusal.take() {
            return Err(Failed::NotDone(refused(op, refusal)));
        }
        let door = described.door.parse();
        let door = door.map_err(|error| not_there(&error))?;
        link.door = Some(door);
        link.described = Arc::new(described);
        Ok(link)
    }

    /// Sends one message and waits for one.
    pub(crate) async fn ask<Q, A>(&self, path: &'static str, message: Q) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut request = Request::new(message);
        if let Some(bearer) = &self.bearer {
            request.metadata_mut().insert(AUTHORIZATION, bearer.clone());
        }
        if let Some(door) = &self.door {
            request.metadata_mut().insert(DOOR, door.clone());
        }
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
        grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        Ok(grpc.unary(request, PathAndQuery::from_static(path), codec).await?.into_inner())
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("address", &self.address).finish_non_exhaustive()
    }
}

/// An error with all its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// What a future answers within a time; none when it takes longer.
pub(crate) async fn within<T>(
    timer: &dyn Timer,
    ms: u64,
    future: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        answer = future => Some(answer),
        () = timer.sleep_ms(ms) => None,
    }
}
