//! A change of the catalog, told to the other servers: they follow at once, not only when they next look.

use axum::http::Method;
use snowmint_coord::error::chain;
use tokio::task::JoinSet;

use super::{Error, Service};
use crate::peers::answer_bytes_max;
use crate::reach::Reach;

/// Where others are told.
pub(crate) const CHANGED_PATH: &str = "/v1/peers/catalog";

impl Service {
    /// Another server says that the catalog has changed.
    ///
    /// # Errors
    /// Where tokens are asked for: without that of a server.
    pub(crate) fn catalog_changed(&self) -> Result<(), Error> {
        self.caller().must_be_a_server()?;
        self.node.catalog_changed();
        Ok(())
    }

    /// Tells the others, in the background. A server that cannot be told looks by itself before long.
    pub(super) fn tell_others(&self) {
        let service = self.clone();
        tokio::spawn(async move {
            let others = match service.node.others().await {
                Ok(others) => others,
                Err(error) => {
                    tracing::debug!(error = %chain(&error), "nobody is told of the change of the catalog");
                    return;
                }
            };
            let mut told = JoinSet::new();
            for address in others.iter().filter_map(|address| Reach::read(address).http) {
                let peers = service.peers().clone();
                told.spawn(async move {
                    let bytes_max = answer_bytes_max(0);
                    let asked = peers.ask(
                        &address,
                        Method::POST,
                        CHANGED_PATH,
                        None,
                        Vec::new(),
                        bytes_max,
                    );
                    if let Err(why) = asked.await {
                        tracing::debug!(%address, %why, "not told of the change of the catalog");
                    }
                });
            }
            told.join_all().await;
        });
    }
}
