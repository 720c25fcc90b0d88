//! Load over gRPC: `Mint`, any number of concurrent calls on one connection.

use std::cell::RefCell;
use std::error::Error as _;

use snowmint_coord::error::chain;
use snowmint_wire::grpc::mint_client::MintClient;
use snowmint_wire::grpc::{MintRequest, MintResponse};
use tonic::Status;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use super::observations::{LoadRequest, Observations};
use super::server::BenchServer;
use super::target::Target;
use super::work::BenchWork;

/// Longest wait for a server to accept a connection.
const CONNECT_MAX: std::time::Duration = std::time::Duration::from_secs(5);
/// Error code of a call that failed with its connection.
pub(super) const TRANSPORT: &str = "transport";
/// Longest response: a batch of a million takes 10 MB.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;

pub(super) struct Grpc {
    client: MintClient<Channel>,
    /// Value of the `authorization` header.
    bearer: Option<MetadataValue<Ascii>>,
    source: String,
    key: Option<String>,
}

impl Grpc {
    pub(super) async fn open(server: &BenchServer, work: &BenchWork) -> Result<Self, String> {
        let Target { address, tls, .. } = &server.target;
        let endpoint = server.credentials.endpoint(address, *tls)?;
        let endpoint = endpoint.connect_timeout(CONNECT_MAX).tcp_nodelay(true);
        let channel = endpoint.connect().await.map_err(|error| {
            snowmint_client::tls_failure(address, &error)
                .unwrap_or_else(|| format!("server {address} is unavailable: {}", chain(&error)))
        })?;
        let client = MintClient::new(channel).max_decoding_message_size(RESPONSE_BYTES_MAX);
        let bearer = server.bearer().and_then(|shown| shown.parse().ok()).map(|mut shown| {
            let sensitive: &mut MetadataValue<Ascii> = &mut shown;
            sensitive.set_sensitive(true);
            shown
        });
        Ok(Self { client, bearer, source: work.source.clone(), key: work.key.clone() })
    }

    /// Sends all calls at once, and waits for a response to each.
    pub(super) async fn round(&self, round: &[LoadRequest], observations: &RefCell<Observations>) {
        let calls = round.iter().map(|&load_request| async move {
            let count = Some(u64::from(load_request.count));
            let request = MintRequest { source: self.source.clone(), count, key: self.key.clone() };
            let mut request = tonic::Request::new(request);
            if let Some(bearer) = &self.bearer {
                request.metadata_mut().insert("authorization", bearer.clone());
            }
            let result = self.client.clone().mint(request).await;
            record_response(
                load_request,
                result.map(tonic::Response::into_inner),
                &mut observations.borrow_mut(),
            );
        });
        futures_util::future::join_all(calls).await;
    }
}

fn record_response(
    load_request: LoadRequest,
    result: Result<MintResponse, Status>,
    observations: &mut Observations,
) {
    match result {
        Ok(MintResponse { ids, texts }) => {
            ids.into_iter().for_each(|id| observations.number(id));
            texts.iter().for_each(|id| observations.text(id));
            observations.responded(load_request);
        }
        Err(status) => match status.source() {
            // The error was raised here, not by a server.
            Some(cause) => observations.refused(TRANSPORT, &chain(cause).to_string()),
            None => observations.refused(&format!("{:?}", status.code()), status.message()),
        },
    }
}
