//! Notice of a catalog change to the peers, which follow immediately, before their next poll.

use snowmint_coord::error::chain;
use tokio::task::JoinSet;

use super::state::Service;
use crate::advertised_addrs::AdvertisedAddrs;
use crate::cluster::remote_peer::RemotePeer;
use crate::error::Error;

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
                    let remote_peer = RemotePeer { peers: &peers, address: &address };
                    if let Err(error) = remote_peer.notify().await {
                        tracing::debug!(%address, %error, "failed to notify a peer of a catalog change");
                    }
                });
            }
            notifications.join_all().await;
        });
    }
}
