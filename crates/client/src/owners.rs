//! Counters, and sources of global order: the servers answer for them, and pass on what is another's.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::{Error, Owners, Result};
use snowmint_wire::grpc::{BoundRequest, BoundResponse, MintRequest, MintResponse};

use crate::failed::of_mint;
use crate::servers::{Call, Servers};

/// Asks whichever server answers.
pub(crate) struct Asking {
    servers: Arc<Servers>,
}

impl Asking {
    pub(crate) fn new(servers: Arc<Servers>) -> Self {
        Self { servers }
    }

    /// A repeat takes other numbers: a gap, never a duplicate. So everything is asked for again.
    async fn ask<Q, A>(
        &self,
        op: &'static str,
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
        let call = Call { op, again: true, within_ms, attempt_ms };
        let answer = self.servers.ask(call, |link| {
            let message = message.clone();
            async move {
                let answer: Result<A, _> = link.ask(path, message).await;
                answer.map_err(|status| of_mint(op, &link.address, source, &status))
            }
        });
        answer.await
    }

    /// Exactly `count` numbers, each greater than the one before.
    async fn ids(
        &self,
        op: &'static str,
        source: &str,
        key: Option<String>,
        count: u64,
        within_ms: u64,
    ) -> Result<Vec<u64>> {
        let message = MintRequest { source: source.to_owned(), count: Some(count), key };
        let path = "/snowmint.v1.Mint/Mint";
        let MintResponse { ids, .. } = self.ask(op, path, source, within_ms, message).await?;
        let is_all = u64::try_from(ids.len()) == Ok(count);
        if !is_all {
            let what = format!("a server answered {} of {count} IDs of {source}", ids.len());
            return Err(Error::internal(op, what));
        }
        Ok(ids)
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("servers", &self.servers).finish()
    }
}

#[async_trait]
impl Owners for Asking {
    async fn count(
        &self,
        source: &str,
        key: &[u8],
        count: u64,
        within_ms: u64,
    ) -> Result<(u64, u64)> {
        let op = "count";
        if count == 0 {
            return Err(Error::invalid(op, "0 numbers were asked for: ask for at least 1"));
        }
        let ids = self.ids(op, source, Some(text(op, key)?), count, within_ms).await?;
        match (ids.first(), ids.last()) {
            (Some(&first), Some(&last)) if last.checked_sub(first) == Some(count - 1) => {
                Ok((first, last))
            }
            _ => Err(Error::internal(op, format!("numbers of {source} that are not in a row"))),
        }
    }

    async fn counted(&self, source: &str, key: &[u8], within_ms: u64) -> Result<u64> {
        let op = "bound";
        let message = BoundRequest { source: source.to_owned(), key: text(op, key)? };
        let path = "/snowmint.v1.Mint/Bound";
        let BoundResponse { bound } = self.ask(op, path, source, within_ms, message).await?;
        Ok(bound)
    }

    async fn mint(&self, source: &str, count: u32, within_ms: u64) -> Result<Vec<u64>> {
        let op = "mint";
        self.ids(op, source, None, count.into(), within_ms).await
    }
}

/// Over gRPC, keys are texts.
fn text(op: &'static str, key: &[u8]) -> Result<String> {
    String::from_utf8(key.to_vec()).map_err(|_| {
        Error::invalid(op, "a key that is no UTF-8 cannot be asked for over gRPC: write it as text")
    })
}
