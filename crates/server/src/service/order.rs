//! Global-order sources: a server that does not mint calls the one that does.

use snowmint_coord::{IdBatch, Source};
use snowmint_wire::error::Code;

use super::owner::{LocalCall, OwnerCall};
use super::state::{Minted, Service};
use crate::error::Error;

impl Service {
    /// Mints like [`Service::mint`]; where another server mints for all, calls it.
    ///
    /// # Errors
    /// Those of [`Service::mint`]; `Unavailable` or `NotOwner` when no minting server could be
    /// reached within the limit for a wait.
    pub async fn mint_or_forward(
        &self,
        name: &str,
        count: u64,
        key: Option<&str>,
    ) -> Result<(Source, Minted), Error> {
        let count = self.admit_ids(name, count).await?;
        self.mint_admitted(name, count, key).await
    }

    /// Mints like [`Service::mint_or_forward`], for an admitted caller.
    pub(crate) async fn mint_admitted(
        &self,
        name: &str,
        count: u32,
        key: Option<&str>,
    ) -> Result<(Source, Minted), Error> {
        match self.mint_local(name, count, key).await {
            // Boxed: it is rare, and has a state far larger than the rest.
            Err(rejection) if rejection.code() == Code::NotOwner => {
                Box::pin(self.mint_in_order(name, count, key, rejection)).await
            }
            result => result,
        }
    }

    /// Mints at the server that mints for all, if the source has one; else returns the rejection.
    async fn mint_in_order(
        &self,
        name: &str,
        count: u32,
        key: Option<&str>,
        rejection: Error,
    ) -> Result<(Source, Minted), Error> {
        let source = self.opened(name).await?;
        // The protocols call the section owner of a key themselves, each in its form.
        if !source.is_ordered() {
            return Err(rejection);
        }
        let here = || -> LocalCall<'_, _> { Box::pin(self.mint_local(name, count, key)) };
        let there = |address| -> OwnerCall<'_, _> {
            let source = source.clone();
            Box::pin(async move {
                let unsent_permit = self.unsent_permit(count.into())?;
                let ids = self.order_forwarder.fetch(name, address, count).await?;
                Ok((source, Minted { values: IdBatch::Numbers(ids), unsent_permit }))
            })
        };
        self.ask_owner(rejection, &here, &there).await
    }
}
