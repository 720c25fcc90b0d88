//! The connection: one server, or a cluster.

use std::time::Duration;

use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::{
    Client, Cmd, ErrorKind as Kind, Pipeline, RedisError, RedisFuture, RedisResult,
    TlsCertificates, Value, from_redis_value,
};

use super::address::{Address, Servers};

/// Longest wait for a server to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Most attempts to reopen a lost connection before a call fails, with a wait that grows to
/// [`RETRY_WAIT_MAX`].
const RETRIES: usize = 3;
const RETRY_WAIT_MAX: Duration = Duration::from_millis(500);

/// A connection that is reopened when it breaks. Clones share it.
#[derive(Clone)]
pub(crate) enum RedisLink {
    One(ConnectionManager),
    Cluster(ClusterConnection),
}

impl RedisLink {
    pub(crate) async fn open(address: Address) -> RedisResult<Self> {
        let certificates = address.certificates;
        match address.servers {
            Servers::One(url) => Self::open_one(url, certificates).await,
            Servers::Cluster(urls) => Self::open_cluster(urls, certificates).await,
        }
    }

    async fn open_one(url: String, certificates: Option<TlsCertificates>) -> RedisResult<Self> {
        let client = match certificates {
            Some(certificates) => Client::build_with_tls(url, certificates).map_err(unusable)?,
            None => Client::open(url)?,
        };
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(REPLY_TIMEOUT))
            .set_number_of_retries(RETRIES)
            .set_max_delay(RETRY_WAIT_MAX);
        Ok(Self::One(client.get_connection_manager_with_config(config).await?))
    }

    async fn open_cluster(
        urls: Vec<String>,
        certificates: Option<TlsCertificates>,
    ) -> RedisResult<Self> {
        let builder = ClusterClient::builder(urls)
            .connection_timeout(CONNECT_TIMEOUT)
            .response_timeout(REPLY_TIMEOUT)
            .retries(u32::try_from(RETRIES).unwrap_or(u32::MAX));
        let client = match certificates {
            Some(certificates) => builder.certs(certificates).build().map_err(unusable)?,
            None => builder.build()?,
        };
        Ok(Self::Cluster(client.get_async_connection().await?))
    }

    /// Returns a connection to each server with its own keys, for requests about one server: this
    /// one, or all primaries of the cluster at `address`.
    #[cfg(feature = "legacy")]
    pub(crate) async fn each(&mut self, address: &Address) -> RedisResult<Vec<Self>> {
        let Self::Cluster(connection) = &mut *self else { return Ok(vec![self.clone()]) };
        let mut query = redis::cmd("CLUSTER");
        query.arg("SLOTS");
        let any = RoutingInfo::SingleNode(SingleNodeRoutingInfo::RandomPrimary);
        let slots = connection.route_command(query, any).await?;
        let mut primaries = Vec::new();
        for place in primaries_of(slots)? {
            primaries.push(Box::pin(Self::open(address.another(&place))).await?);
        }
        Ok(primaries)
    }

    /// Sends a command that names no key to the server that has `key`.
    pub(super) async fn send_to_server_of(
        &mut self,
        key: &str,
        command: Cmd,
    ) -> RedisResult<Value> {
        match self {
            // The driver returns the server's error as a value of this call.
            Self::One(one) => one.req_packed_command(&command).await?.extract_error(),
            Self::Cluster(cluster) => {
                let mut query = redis::cmd("CLUSTER");
                query.arg("KEYSLOT").arg(key);
                let any = RoutingInfo::SingleNode(SingleNodeRoutingInfo::RandomPrimary);
                let slot = from_redis_value(cluster.route_command(query, any).await?)?;
                let route = Route::new(slot, SlotAddr::Master);
                let there = RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(route));
                cluster.route_command(command, there).await?.extract_error()
            }
        }
    }
}

/// Maps errors of certificates, which occur before any connection, but which the driver reports as
/// a broken connection.
fn unusable(error: RedisError) -> RedisError {
    if error.kind() == Kind::Io {
        let what = "the certificates that the URL names cannot be used";
        return RedisError::from((Kind::InvalidClientConfig, what, error.to_string()));
    }
    error
}

/// Returns the addresses of the primaries from the reply to `CLUSTER SLOTS`: for each range its
/// first and last slot, and its servers, the primary first.
#[cfg(feature = "legacy")]
fn primaries_of(slots: Value) -> RedisResult<std::collections::BTreeSet<String>> {
    let mut places = std::collections::BTreeSet::new();
    for range in from_redis_value::<Vec<Vec<Value>>>(slots)? {
        let primary = range.into_iter().nth(2).unwrap_or(Value::Nil);
        let mut words = from_redis_value::<Vec<Value>>(primary)?.into_iter();
        let (host, port) = (words.next().unwrap_or(Value::Nil), words.next().unwrap_or(Value::Nil));
        let (host, port): (String, u16) = (from_redis_value(host)?, from_redis_value(port)?);
        // Brackets separate the address from the port.
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        places.insert(format!("{host}:{port}"));
    }
    Ok(places)
}

impl ConnectionLike for RedisLink {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(one) => one.req_packed_command(cmd),
            Self::Cluster(cluster) => cluster.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(one) => one.req_packed_commands(pipeline, offset, count),
            Self::Cluster(cluster) => cluster.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One(one) => one.get_db(),
            Self::Cluster(cluster) => cluster.get_db(),
        }
    }
}
