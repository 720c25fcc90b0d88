//! Embedded clients that use the store of this server: their counts and their limits.

use snowmint_coord::{PermittedPools, Presence, Result as StoreResult, Store};

use super::state::Service;
use crate::access::Right;
use crate::error::Error;

impl Service {
    /// Counts a change of a definition without the node.
    ///
    /// # Errors
    /// Over the token's rate.
    pub(crate) async fn spend_definition(&self, source: &str) -> Result<(), Error> {
        self.spend(Right::Admin, source, 1).await
    }

    /// Returns the pools that embedded clients may claim from, by the definitions of a store.
    pub(crate) async fn permitted_pools(&self, store: &dyn Store) -> StoreResult<PermittedPools> {
        self.node.permitted_pools(store).await
    }

    /// Rejects a presence that would keep worker numbers long after the program's end.
    ///
    /// # Errors
    /// `BadRequest`.
    pub(crate) fn check_presence(&self, presence: Presence) -> Result<(), Error> {
        let most_ms = self.node.presence_max_ms();
        if !self.caller().has_a_share() || presence.ttl_ms <= most_ms {
            return Ok(());
        }
        let message = format!(
            "presence of {} ms exceeds {most_ms} ms (counters.lease of this server, or 10s if that \
             is more); shorten presence_ttl_ms, or counters.lease of the program",
            presence.ttl_ms
        );
        Err(Error::bad_request(message))
    }
}
