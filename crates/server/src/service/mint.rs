//! Minting: at this server, or at the one that has the right to it.

use snowmint_coord::{IdBatch, Source};
use snowmint_wire::error::Code;

use super::limit::Limit;
use super::owner::{LocalCall, OwnerCall};
use super::route::Route;
use super::state::{Minted, Service};
use crate::access::Right;
use crate::clients::share::Share;
use crate::cluster::remote_peer::RemotePeer;
use crate::error::Error;

impl Service {
    /// Mints exactly `count` IDs, waiting for the next tick or the store within the limit. Returns
    /// the source, too: callers that mint one ID at a time keep it.
    ///
    /// # Errors
    /// Without the right; more than the limit at once, or an error of the source. `Unavailable` or
    /// `NotOwner` when no server of the route that may mint could be reached within the limit for a
    /// wait.
    pub async fn mint(
        &self,
        name: &str,
        count: u64,
        key: Option<&str>,
        route: Route,
    ) -> Result<(Source, Minted), Error> {
        self.admit_many(Right::Mint, name, count, Limit::Batch).await?;
        let beyond = |_| {
            let max = u32::MAX;
            Error::bad_request(format!("count {count} exceeds {max} IDs at once; ask for fewer"))
        };
        self.mint_admitted(name, u32::try_from(count).map_err(beyond)?, key, route).await
    }

    /// Mints like [`Service::mint`], for an admitted caller.
    pub(crate) async fn mint_admitted(
        &self,
        name: &str,
        count: u32,
        key: Option<&str>,
        route: Route,
    ) -> Result<(Source, Minted), Error> {
        match self.mint_local(name, count, key).await {
            // Boxed: it is rare, and has a state far larger than the rest.
            Err(rejection) if rejection.code() == Code::NotOwner && route != Route::Here => {
                Box::pin(self.mint_at_owner(name, count, key, route, rejection)).await
            }
            result => result,
        }
    }

    async fn mint_local(
        &self,
        name: &str,
        count: u32,
        key: Option<&str>,
    ) -> Result<(Source, Minted), Error> {
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        let unsent_permit = self.unsent_permit(count.into())?;
        let mint = async |source: Source| {
            let _turn = self.turn_for(&source).await?;
            let values = source.mint(count, key, wait_ms).await?;
            Ok::<_, Error>((source, values))
        };
        let ((source, values), tally) = self.ask(name, mint).await?;
        tally.add(self.protocol, u64::from(count));
        Ok((source, Minted { values, unsent_permit }))
    }

    /// Mints at the owner that `rejection` names, if the route leads there; else returns the
    /// rejection.
    async fn mint_at_owner(
        &self,
        name: &str,
        count: u32,
        key: Option<&str>,
        route: Route,
        rejection: Error,
    ) -> Result<(Source, Minted), Error> {
        let source = self.opened(name).await?;
        if !self.leads_to_owner(route, &rejection) && !source.is_ordered() {
            return Err(rejection);
        }
        let here = || -> LocalCall<'_, _> { Box::pin(self.mint_local(name, count, key)) };
        let there = |address: String| -> OwnerCall<'_, _> {
            let source = source.clone();
            Box::pin(async move {
                let unsent_permit = self.unsent_permit(count.into())?;
                let ids = if source.is_ordered() {
                    self.order_forwarder.fetch(name, address, count).await?
                } else {
                    let _waits = self.waits_for(&address)?;
                    let peer = RemotePeer { peers: self.peers(), address: &address };
                    let ids = peer.ids(name, count.into(), key).await;
                    ids.map_err(|failure| failure.after(&peer))?
                };
                Ok((source, Minted { values: IdBatch::Numbers(ids), unsent_permit }))
            })
        };
        self.ask_owner(rejection, &here, &there).await
    }

    /// Counts a request of the caller that waits for a peer.
    ///
    /// # Errors
    /// When the caller has more than its share of them.
    pub(super) fn waits_for(&self, address: &str) -> Result<Share, Error> {
        self.peers().waits(address, self.caller().client())
    }
}
