//! Counters and global-order sources: their servers own them, and forward calls to one another.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::{Error, OwnerClient, Result};
use snowmint_wire::grpc::{BoundRequest, BoundResponse, MintRequest, MintResponse};

use crate::call_failure::of_mint;
use crate::servers::{Call, Servers};

/// Owner client that calls whichever server responds.
pub(crate) struct RemoteOwnerClient {
    servers: Arc<Servers>,
}

impl RemoteOwnerClient {
    pub(crate) fn new(servers: Arc<Servers>) -> Self {
        Self { servers }
    }

    /// Makes a call with retries: a repeat takes other numbers, which leaves a gap, never a
    /// duplicate.
    async fn ask<Q, A>(
        &self,
        path: &'static str,
        source: &str,
        within_ms: u64,
        message: Q,
    ) -> Result<A>
    where
        Q: prost::Message + Clone + 'static,
        A: prost::Message + Default + 'static,
    {
        let attempt_ms = self.servers.settings().attempt_ms;
        let call = Call { again: true, within_ms, attempt_ms };
        let response = self.servers.ask(call, |link| {
            let message = message.clone();
            async move {
                let response: Result<A, _> = link.ask(path, message).await;
                response.map_err(|status| of_mint(path, &link.address, source, &status))
            }
        });
        response.await
    }

    /// Returns exactly `count` numbers, each greater than the previous.
    async fn ids(
        &self,
        source: &str,
        key: Option<String>,
        count: u64,
        within_ms: u64,
    ) -> Result<Vec<u64>> {
        let message = MintRequest { source: source.to_owned(), count: Some(count), key };
        let path = "/snowmint.v1.Mint/Mint";
        let MintResponse { ids, .. } = self.ask(path, source, within_ms, message).await?;
        let is_all = u64::try_from(ids.len()) == Ok(count);
        if !is_all {
            let what = format!(
                "internal error: server returned {} IDs of source {source:?}, expected {count}; \
                 please report it",
                ids.len()
            );
            return Err(Error::internal(what));
        }
        Ok(ids)
    }
}

impl fmt::Debug for RemoteOwnerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteOwnerClient").field("servers", &self.servers).finish()
    }
}

#[async_trait]
impl OwnerClient for RemoteOwnerClient {
    async fn count(
        &self,
        source: &str,
        key: &[u8],
        count: u64,
        within_ms: u64,
    ) -> Result<(u64, u64)> {
        if count == 0 {
            let message = "count 0 is below the minimum of 1; ask for at least one number";
            return Err(Error::invalid(message));
        }
        let ids = self.ids(source, Some(text(key)?), count, within_ms).await?;
        match (ids.first(), ids.last()) {
            (Some(&first), Some(&last)) if last.checked_sub(first) == Some(count - 1) => {
                Ok((first, last))
            }
            _ => Err(Error::internal(format!(
                "internal error: server returned numbers of source {source:?} that are not \
                 consecutive; please report it"
            ))),
        }
    }

    async fn bound_of(&self, source: &str, key: &[u8], within_ms: u64) -> Result<u64> {
        let message = BoundRequest { source: source.to_owned(), key: text(key)? };
        let path = "/snowmint.v1.Mint/Bound";
        let BoundResponse { bound } = self.ask(path, source, within_ms, message).await?;
        Ok(bound)
    }

    async fn mint(&self, source: &str, count: u32, within_ms: u64) -> Result<Vec<u64>> {
        self.ids(source, None, count.into(), within_ms).await
    }
}

/// Returns the key as text: over gRPC, keys are texts.
fn text(key: &[u8]) -> Result<String> {
    String::from_utf8(key.to_vec())
        .map_err(|_| Error::invalid("key is not UTF-8, which gRPC requires; write the key as text"))
}
