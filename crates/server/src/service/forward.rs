//! Requests that this server writes itself for a caller whose protocol cannot be forwarded
//! unchanged, in the JSON of every server.

use snowmint_coord::IdBatch;
use snowmint_wire::error::Code;

use super::owner::{LocalCall, OwnerCall};
use super::remote_peer::RemotePeer;
use super::state::{Minted, Service};
use crate::access::Right;
use crate::clients::share::Share;
use crate::error::Error;

impl Service {
    /// Mints like [`Service::mint_or_forward`]; takes numbers of a key from its section owner.
    ///
    /// # Errors
    /// Those of [`Service::mint_or_forward`].
    pub async fn mint_for(
        &self,
        name: &str,
        count: u64,
        key: Option<&str>,
    ) -> Result<Minted, Error> {
        let admitted = self.admit_ids(name, count).await?;
        let rejection = match self.mint_admitted(name, admitted, key).await {
            Err(rejection) if rejection.code() == Code::NotOwner && key.is_some() => rejection,
            result => return Ok(result?.1),
        };
        let here = || -> LocalCall<'_, _> {
            Box::pin(async move { Ok(self.mint_admitted(name, admitted, key).await?.1) })
        };
        let there = |address: String| -> OwnerCall<'_, _> {
            Box::pin(async move {
                let unsent_permit = self.unsent_permit(admitted.into())?;
                let _waits = self.waits_for(&address)?;
                let remote_peer = RemotePeer { peers: self.peers(), address: &address };
                let ids = remote_peer.ids(name, count, key).await;
                let ids = ids.map_err(|failure| failure.after(&remote_peer))?;
                Ok(Minted { values: IdBatch::Numbers(ids), unsent_permit })
            })
        };
        self.ask_owner(rejection, &here, &there).await
    }

    /// Returns the bound like [`Service::bound_of`], from the section owner if it is another server.
    ///
    /// # Errors
    /// Those of [`Service::bound_of`].
    pub async fn bound_or_forward(&self, name: &str, key: &str) -> Result<u64, Error> {
        self.admit(Right::Mint, name).await?;
        let here = || -> LocalCall<'_, _> { Box::pin(self.local_bound_of(name, key)) };
        let rejection = match here().await {
            Err(rejection) if rejection.code() == Code::NotOwner => rejection,
            result => return result,
        };
        let there = |address: String| -> OwnerCall<'_, _> {
            Box::pin(async move {
                let _waits = self.waits_for(&address)?;
                let remote_peer = RemotePeer { peers: self.peers(), address: &address };
                remote_peer.bound(name, key).await.map_err(|failure| failure.after(&remote_peer))
            })
        };
        self.ask_owner(rejection, &here, &there).await
    }
}

impl Service {
    /// Counts a request of the caller that waits for a peer.
    ///
    /// # Errors
    /// When the caller has more than its share of them.
    pub(crate) fn waits_for(&self, address: &str) -> Result<Share, Error> {
        self.peers().waits(address, self.caller().client())
    }
}
