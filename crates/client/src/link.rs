//! A connection to one server, which has described the store that it offers.

use std::sync::Arc;
use std::time::Duration;

use snowmint_coord::error::chain;
use snowmint_coord::{Error, ErrorKind, Timer};
use snowmint_wire::grpc::store::{
    DOOR, DescribeRequest, DescribeResponse, SERVICE, VERSION, VERSION_MIN, is_understood,
};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::approach::Approach;
use crate::failed::{Failed, of_store, offers_none, unavailable, why};
use crate::handshake::advice;
use crate::refusal::refused;

/// Interval of keep-alive pings on a silent connection, and time limit for their response; the
/// connection is then closed.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a response: some hundred thousand slots.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const AUTHORIZATION: &str = "authorization";
const DESCRIBE: &str = "/snowmint.store.v1.Store/Describe";

/// A connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) address: Arc<str>,
    channel: Channel,
    /// Authorization that is sent with each call.
    pub(crate) bearer: Option<MetadataValue<Ascii>>,
    door: Option<MetadataValue<Ascii>>,
    /// The server's description of its store.
    pub(crate) described: Arc<DescribeResponse>,
}

impl Link {
    /// Connects to the server at this address, and requests the description of its primary store or
    /// of a secondary store.
    pub(crate) async fn open(
        address: &Arc<str>,
        approach: &Approach,
        beside: &str,
    ) -> Result<Self, Failed> {
        let not_possible = |what| Failed::Refused(Error::invalid(what));
        let bearer = approach.bearer().map_err(not_possible)?;
        let endpoint =
            approach.credentials.endpoint(address, approach.tls).map_err(not_possible)?;
        let endpoint = endpoint
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true)
            .connect_timeout(approach.reach());
        let channel = endpoint.connect().await.map_err(|error| not_there(address, &error))?;
        let address = Arc::clone(address);
        let mut link = Self { address, channel, bearer, door: None, described: Arc::default() };
        let question = DescribeRequest { version: VERSION, store: beside.to_owned() };
        let asked = link.ask(DESCRIBE, question).await;
        let mut described: DescribeResponse = match asked {
            Ok(described) => described,
            // Only a description was requested.
            Err(status) => {
                return Err(match of_store(DESCRIBE, &link.address, &status) {
                    Failed::Wrong(_) => Failed::Wrong(offers_none(&link.address, &status)),
                    Failed::Unknown(_) => not_spoken(&link.address, &status, approach),
                    failed => failed,
                });
            }
        };
        if let Some(refusal) = described.refusal.take() {
            let error = refused(refusal);
            // A server that does not know the name will not know it soon; another server may.
            let is_unknown = matches!(error.kind(), ErrorKind::NotFound { .. });
            return Err(if is_unknown { Failed::Wrong(error) } else { Failed::NotDone(error) });
        }
        if !is_understood(described.version) {
            return Err(Failed::Wrong(too_old(&link.address, described.version)));
        }
        if described.store != beside {
            return Err(Failed::Wrong(knows_one(&link.address, beside)));
        }
        let door = described.door.parse();
        let door = door.map_err(|error| not_there(&link.address, &error))?;
        link.door = Some(door);
        link.described = Arc::new(described);
        Ok(link)
    }

    /// Sends one message and waits for the response.
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

/// Returns the error for a server with a version of the service that is too old for this client.
fn too_old(address: &str, version: u32) -> Error {
    let what = format!(
        "the server at {address} is older than this program: it speaks form {version} of {SERVICE}, which is \
         understood from {VERSION_MIN} on: update the server"
    );
    Error::from(ErrorKind::Unsupported { what })
}

/// Returns the error for a server from before secondary stores.
fn knows_one(address: &str, beside: &str) -> Error {
    let what = format!(
        "the server at {address} is older than this program: it leads to no store {beside:?} beside its own; \
         update the server"
    );
    Error::from(ErrorKind::Unsupported { what })
}

/// Returns the failure when no server, or no trusted server, was reached: another may be.
fn not_there(address: &str, error: &(dyn std::error::Error + 'static)) -> Failed {
    match advice(error) {
        Some(advice) => {
            let why = format!("{}; {advice}", chain(error));
            Failed::Wrong(unavailable(address, &why))
        }
        None => Failed::NotDone(unavailable(address, &chain(error).to_string())),
    }
}

/// Returns the failure when the other end perhaps speaks another protocol than configured.
fn not_spoken(address: &str, status: &Status, approach: &Approach) -> Failed {
    if advice(status).is_some() {
        return not_there(address, status);
    }
    let perhaps = match (approach.tls, approach.credentials.has_cert()) {
        (false, _) => "; if it speaks TLS, write snowmints://",
        // With TLS 1.3 a rejected client learns so after the handshake, or just sees the connection
        // closed.
        (true, false) => {
            "; if it wants certificates of its clients, SNOWMINT_CERT_FILE or store.cert names one"
        }
        (true, true) => "",
    };
    Failed::NotDone(unavailable(address, &format!("{}{perhaps}", why(status))))
}

/// Returns the result of a future, or `None` when it takes longer than `ms`.
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
