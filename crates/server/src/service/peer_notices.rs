//! Notices to the peers, which follow immediately, before their next poll: the catalog has changed,
//! or the members have.

use snowmint_coord::error::chain;
use snowmint_coord::within;
use tokio::task::JoinSet;

use super::state::Service;
use crate::advertised_addrs::AdvertisedAddrs;
use crate::cluster::remote_peer::{CHANGED_PATH, MEMBERS_PATH, RemotePeer};
use crate::error::Error;

/// Time for which a server that has handed over still redirects callers: its peers' calls are under
/// way, and clients of a cluster learn the next owner from a redirect, not from a closed port.
const REDIRECTS_MS: u64 = 500;

/// Longest wait for the peers to list the members. One that is frozen or cut off must not keep the
/// others from their sections; it lists them itself when it can.
const NOTICES_MS: u64 = 500;

/// Longest hand-over to the peers. Peers that learn of it later take over when they next list the
/// members, and a store that is away delays the stop no longer.
const HAND_OVER_MS: u64 = 2_000;

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

    /// Takes in a peer's notice that the members have changed; returns once they are listed.
    ///
    /// # Errors
    /// Without a server's token, where tokens are required.
    pub(crate) async fn members_changed(&self) -> Result<(), Error> {
        self.caller().must_be_a_server()?;
        self.node.members_changed(self.live.limit(|limits| limits.wait_max.ms())).await;
        Ok(())
    }

    /// Notifies the peers of a catalog change, in the background. A peer that cannot be reached
    /// reads the catalog itself before long.
    pub(super) fn notify_peers(&self) {
        let service = self.clone();
        tokio::spawn(async move {
            service.notify_all(CHANGED_PATH).await;
        });
    }

    /// Hands the sections of counters and the global orders over to the peers, for at most
    /// [`HAND_OVER_MS`]. This server redirects or forwards its callers then. Without a peer that
    /// responds it keeps them to the end.
    pub(crate) async fn hand_over(&self) {
        let handing_over = async {
            if self.node.announce_stop().await? && self.notify_members().await {
                self.node.hand_over().await?;
                self.peers().timer().sleep_ms(REDIRECTS_MS).await;
            }
            Ok::<(), snowmint_coord::Error>(())
        };
        match within(self.peers().timer(), HAND_OVER_MS, handing_over).await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::warn!(error = %chain(&error), "sections are not handed over before the stop");
            }
            None => tracing::warn!("sections are not handed over within {HAND_OVER_MS} ms"),
        }
    }

    /// Notifies the peers that this member stops. Returns whether there may be one to take over.
    async fn notify_members(&self) -> bool {
        let notifying = self.notify_all(MEMBERS_PATH);
        within(self.peers().timer(), NOTICES_MS, notifying)
            .await
            .is_none_or(|notified| notified > 0)
    }

    /// Sends a notice to all peers. Returns the number of peers that have received it.
    async fn notify_all(&self, path: &'static str) -> usize {
        let others = match self.node.others().await {
            Ok(others) => others,
            Err(error) => {
                tracing::debug!(error = %chain(&error), "failed to list the peers to notify");
                return 0;
            }
        };
        let mut notifications = JoinSet::new();
        for address in others.iter().filter_map(|address| AdvertisedAddrs::read(address).http) {
            let peers = self.peers().clone();
            notifications.spawn(async move {
                let remote_peer = RemotePeer { peers: &peers, address: &address };
                let notified = remote_peer.notify(path).await;
                if let Err(error) = &notified {
                    tracing::debug!(%address, path, %error, "failed to notify a peer");
                }
                notified.is_ok()
            });
        }
        notifications.join_all().await.into_iter().filter(|is_notified| *is_notified).count()
    }
}
