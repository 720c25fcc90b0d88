//! A connection to one server, which has described the store that it offers.

use std::sync::Arc;
use std::time::Duration;

use snowmint_coord::error::chain;
use snowmint_coord::{Error, ErrorKind};
use snowmint_store_rpc::store_error;
use snowmint_wire::grpc::store::{
    DESCRIBE, DescribeRequest, DescribeResponse, INSTANCE, SERVICE, VERSION, VERSION_MIN,
    is_understood,
};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::call_failure::{CallFailure, at, cause, of_store, offers_none, unavailable};
use crate::connect_options::ConnectOptions;
use crate::handshake::tls_sentence;

/// Interval of keep-alive pings on a silent connection, and time limit for their response; the
/// connection is then closed.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a response: some hundred thousand slots.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;
const AUTHORIZATION: &str = "authorization";

/// A connection. Clones share it.
#[derive(Clone)]
pub(crate) struct ServerLink {
    pub(crate) address: Arc<str>,
    channel: Channel,
    /// Authorization that is sent with each call.
    pub(crate) bearer: Option<MetadataValue<Ascii>>,
    instance: Option<MetadataValue<Ascii>>,
    /// The server's description of its store.
    pub(crate) described: Arc<DescribeResponse>,
}

impl ServerLink {
    /// Connects to the server at this address, and requests the description of its primary store or
    /// of a secondary store.
    pub(crate) async fn open(
        address: &Arc<str>,
        connect_options: &ConnectOptions,
        secondary_store: &str,
    ) -> Result<Self, CallFailure> {
        let invalid = |message| CallFailure::Refused(Error::invalid(message));
        let bearer = connect_options.bearer().map_err(invalid)?;
        let endpoint =
            connect_options.credentials.endpoint(address, connect_options.tls).map_err(invalid)?;
        let endpoint = endpoint
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true)
            .connect_timeout(connect_options.reach());
        let channel = endpoint.connect().await.map_err(|error| not_there(address, &error))?;
        let address = Arc::clone(address);
        let mut link = Self { address, channel, bearer, instance: None, described: Arc::default() };
        let question = DescribeRequest { version: VERSION, store: secondary_store.to_owned() };
        let result = link.ask(DESCRIBE, question).await;
        let mut described: DescribeResponse = match result {
            Ok(described) => described,
            // Only a description was requested.
            Err(status) => {
                return Err(match of_store(DESCRIBE, &link.address, &status) {
                    CallFailure::WrongServer(_) => {
                        CallFailure::WrongServer(offers_none(&link.address, &status))
                    }
                    CallFailure::Unknown(_) => not_spoken(&link.address, &status, connect_options),
                    call_failure => call_failure,
                });
            }
        };
        if let Some(error) = described.error.take() {
            let error = store_error(error);
            // A server that does not know the name will not know it soon; another server may.
            let is_unknown = matches!(error.kind(), ErrorKind::NotFound);
            return Err(if is_unknown {
                CallFailure::WrongServer(error)
            } else {
                CallFailure::NotApplied(error)
            });
        }
        if !is_understood(described.version) {
            return Err(CallFailure::WrongServer(too_old(&link.address, described.version)));
        }
        if described.store != secondary_store {
            return Err(CallFailure::WrongServer(knows_one(&link.address, secondary_store)));
        }
        let instance = described.instance.parse();
        let instance = instance.map_err(|error| not_there(&link.address, &error))?;
        link.instance = Some(instance);
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
        if let Some(instance) = &self.instance {
            request.metadata_mut().insert(INSTANCE, instance.clone());
        }
        let mut grpc =
            Grpc::new(self.channel.clone()).max_decoding_message_size(RESPONSE_BYTES_MAX);
        grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        Ok(grpc.unary(request, PathAndQuery::from_static(path), codec).await?.into_inner())
    }
}

impl std::fmt::Debug for ServerLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerLink").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Returns the error for a server with a version of the service that is too old for this client.
fn too_old(address: &str, version: u32) -> Error {
    let message = format!(
        "server speaks version {version} of {SERVICE}, minimum {VERSION_MIN}; update the server"
    );
    at(address, Error::unsupported(message))
}

/// Returns the error for a server from before secondary stores.
fn knows_one(address: &str, secondary_store: &str) -> Error {
    let message = format!(
        "server does not know secondary stores, store {secondary_store:?} requested; update the server"
    );
    at(address, Error::unsupported(message))
}

/// Returns the failure when no server, or no trusted server, was reached: another may be.
fn not_there(address: &str, error: &(dyn std::error::Error + 'static)) -> CallFailure {
    match tls_sentence(error) {
        Some(message) => CallFailure::WrongServer(at(address, Error::unavailable(message))),
        None => CallFailure::NotApplied(unavailable(address, &chain(error).to_string())),
    }
}

/// Returns the failure when the other end perhaps speaks another protocol than configured.
fn not_spoken(address: &str, status: &Status, connect_options: &ConnectOptions) -> CallFailure {
    if let Some(message) = tls_sentence(status) {
        return CallFailure::WrongServer(at(address, Error::unavailable(message)));
    }
    let cause = cause(status);
    let error = match (connect_options.tls, connect_options.credentials.has_cert()) {
        (false, _) => {
            Error::unavailable("server is unavailable; if it uses TLS, write snowmints://")
        }
        // With TLS 1.3 a rejected client learns so after the handshake, or just sees the connection
        // closed.
        (true, false) => Error::unavailable(
            "server is unavailable; if it requires client certificates, set SNOWMINT_CERT_FILE or \
             store.cert",
        ),
        (true, true) => return CallFailure::NotApplied(unavailable(address, &cause)),
    };
    CallFailure::NotApplied(error.with_detail(format!("server {address}: {cause}")))
}
