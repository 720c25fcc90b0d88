//! Notice of a catalog change to the peers, which follow immediately, before their next poll.

use axum::http::Method;
use snowmint_coord::error::chain;
use tokio::task::JoinSet;

use super::state::Service;
use crate::advertised_addrs::AdvertisedAddrs;
use crate::cluster::peers::response_bytes_max;
use crate::error::Error;

/// Path of the notice.
pub(crate) const CHANGED_PATH: &str = "/v1/peers/catalog";

impl Service {
    /// Takes in a peer's notice that the catalog has changed.
    ///
    /// # Errors
    /// Without a server's token, where tokens are required.
    pub(crate) fn catalog_changed(&self) -> Result<(), Error> {
        self.caller().must_be_a_server()?;
        self.node.catalog_changed();
        Ok(())
    }

    /// Notifies the peers, in the background. A peer that cannot be reached reads the catalog
    /// itself before long.
    pub(super) fn notify_peers(&self) {
        let service = self.clone();
        tokio::spawn(async move {
            let others = match service.node.others().await {
                Ok(others) => others,
                Err(error) => {
                    tracing::debug!(error = %chain(&error), "failed to list the peers to notify of a catalog change");
                    return;
                }
            };
            let mut notifications = JoinSet::new();
            for address in others.iter().filter_map(|address| AdvertisedAddrs::read(address).http) {
                let peers = service.peers().clone();
                notifications.spawn(async move {
                    let bytes_max = response_bytes_max(0);
                    let call = peers.ask(
                        &address,
                        Method::POST,
                        CHANGED_PATH,
                        None,
                        Vec::new(),
                        bytes_max,
                    );
                    if let Err(error) = call.await {
                        tracing::debug!(%address, %error, "failed to notify a peer of a catalog change");
                    }
                });
            }
            notifications.join_all().await;
        });
    }
}
