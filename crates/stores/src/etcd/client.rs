//! Calls of etcd's API over gRPC.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use snowmint_coord::Error;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::cluster_url::ClusterUrl;
use crate::tls::Files;

use super::message::{
    AuthenticateRequest, AuthenticateResponse, RangeRequest, RangeResponse, TxnRequest, TxnResponse,
};

/// Longest wait for a server to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which a silent connection is checked.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Longest response in bytes: enough for some hundred thousand slots.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A connection to each server, opened on first use and reopened after it breaks.
pub(super) struct EtcdClient {
    channel: Channel,
    user: Option<(String, String)>,
    /// Token from the user's last log-in.
    token: RwLock<Option<MetadataValue<Ascii>>>,
}

impl EtcdClient {
    pub(super) fn new(cluster_url: ClusterUrl) -> Result<Self, Error> {
        let tls = if cluster_url.scheme == "etcds" { Some(tls(&cluster_url)?) } else { None };
        let scheme = if tls.is_some() { "https" } else { "http" };
        if tls.is_none() && !cluster_url.parameters.is_empty() {
            return Err(Error::invalid("etcd: URL has TLS parameters; write etcds:"));
        }
        let mut endpoints = Vec::with_capacity(cluster_url.servers.len());
        for server in &cluster_url.servers {
            let invalid = |error: &dyn std::fmt::Display| {
                Error::invalid(format!("etcd server cannot be used: {error}; correct the URL"))
                    .with_detail(format!("at {server}"))
            };
            let endpoint = Endpoint::from_shared(format!("{scheme}://{server}"))
                .map_err(|error| invalid(&error))?
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(RESPONSE_TIMEOUT)
                .http2_keep_alive_interval(KEEP_ALIVE)
                .keep_alive_while_idle(true)
                .tcp_nodelay(true);
            endpoints.push(match &tls {
                Some(tls) => endpoint.tls_config(tls.clone()).map_err(|error| invalid(&error))?,
                None => endpoint,
            });
        }
        let channel = match &endpoints[..] {
            [one] => one.connect_lazy(),
            _ => Channel::balance_list(endpoints.into_iter()),
        };
        Ok(Self { channel, user: cluster_url.user, token: RwLock::new(None) })
    }

    pub(super) async fn range(&self, request: &RangeRequest) -> Result<RangeResponse, Status> {
        self.known("/etcdserverpb.KV/Range", request).await
    }

    pub(super) async fn transact(&self, request: &TxnRequest) -> Result<TxnResponse, Status> {
        self.known("/etcdserverpb.KV/Txn", request).await
    }

    /// Makes a call as the URL's user. The server forgets log-ins after a while and when it
    /// restarts.
    async fn known<Q, A>(&self, path: &'static str, request: &Q) -> Result<A, Status>
    where
        Q: prost::Message + Clone + 'static,
        A: prost::Message + Default + 'static,
    {
        if self.user.is_none() {
            return self.call(path, request.clone()).await;
        }
        if self.token().is_none() {
            self.log_in().await?;
        }
        match self.call(path, request.clone()).await {
            Err(status) if status.code() == Code::Unauthenticated => {
                self.log_in().await?;
                self.call(path, request.clone()).await
            }
            result => result,
        }
    }

    async fn log_in(&self) -> Result<(), Status> {
        let Some((name, password)) = self.user.clone() else { return Ok(()) };
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = None;
        let request = AuthenticateRequest { name, password };
        let response: AuthenticateResponse =
            self.call("/etcdserverpb.Auth/Authenticate", request).await?;
        let token = response.token.parse().map_err(|_| Status::internal("a token of no use"))?;
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(())
    }

    fn token(&self) -> Option<MetadataValue<Ascii>> {
        self.token.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut request = Request::new(request);
        if let Some(token) = self.token() {
            request.metadata_mut().insert("token", token);
        }
        let mut grpc =
            Grpc::new(self.channel.clone()).max_decoding_message_size(RESPONSE_BYTES_MAX);
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static(path);
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        Ok(grpc.unary(request, path, codec).await?.into_inner())
    }
}

fn tls(cluster_url: &ClusterUrl) -> Result<ClientTlsConfig, Error> {
    let parameters =
        cluster_url.parameters.iter().map(|(name, file)| (name.as_str(), file.as_str()));
    let Files { ca, identity } = Files::read(&cluster_url.scheme, parameters)?;
    let tls = match ca {
        Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    Ok(match identity {
        Some((certificate, key)) => tls.identity(Identity::from_pem(certificate, key)),
        None => tls,
    })
}
