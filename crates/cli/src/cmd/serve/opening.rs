//! Opening of a server's sources at its start, and the forecasts for them.

use snowmint_coord::error::chain;
use snowmint_coord::{BootTimer, ErrorKind, Node, Timer as _};
use tokio::task::JoinSet;

use crate::open::node::{is_away, when_joined};

const DAY_MS: u64 = 86_400_000;

/// Sources to open at the start.
pub(super) struct AtStart {
    /// Names of the server's own sources. They come first: they decide readiness, and no other
    /// source may take their worker number.
    pub(super) own: Vec<String>,
    pub(super) others: Vec<String>,
    /// Whether no other source is expected once the store responds.
    pub(super) is_complete: bool,
}

/// Returns all sources that may be used. If the store does not respond, returns those that can mint
/// without it.
pub(super) async fn sources_at_start(node: &Node) -> AtStart {
    let kept = node.saved_sources();
    let (names, is_complete) = match node.sources().await {
        Ok(listed) => {
            for (source, error) in &listed.unreadable {
                tracing::warn!(%source, error = %chain(error), "unreadable definition; a newer version may have written it, update this server");
            }
            let enabled = listed.sources.into_iter().filter(|source| source.spec.is_enabled());
            (enabled.map(|source| source.name).collect(), true)
        }
        Err(error) if is_away(&error) && !kept.is_empty() => (kept, false),
        Err(error) => {
            tracing::warn!(error = %chain(&error), "failed to list the sources; each opens on its first request");
            (Vec::new(), true)
        }
    };
    let (own, others) = names.into_iter().partition(|name| node.is_own(name));
    AtStart { own, others, is_complete }
}

/// Opens sources before the first request needs them.
pub(super) async fn open(node: &Node, names: Vec<String>) {
    // All open at once: one that has to wait delays no other.
    let mut opening = JoinSet::new();
    for name in names {
        let node = node.clone();
        opening.spawn(async move {
            let Err(error) = node.source(&name).await else { return };
            // The reason says that no action is needed.
            if matches!(error.kind(), ErrorKind::PoolFull(full) if full.continues_by_itself()) {
                tracing::info!(source = name, error = %chain(&error), "the source opens later");
            } else {
                tracing::warn!(source = name, error = %chain(&error), "failed to open the source; its next request retries");
            }
        });
    }
    while opening.join_next().await.is_some() {}
}

/// Opens all sources once the store is reachable.
pub(super) async fn open_the_rest(node: &Node) {
    loop {
        when_joined(node).await;
        let listed = sources_at_start(node).await;
        open(node, listed.own).await;
        open(node, listed.others).await;
        if listed.is_complete {
            return;
        }
    }
}

/// Logs at the start and once a day what will run out.
pub(super) async fn log_forecasts(node: Node) {
    loop {
        match node.forecast().await {
            Ok(forecasts) => {
                for forecast in forecasts.iter().filter(|forecast| forecast.is_warning()) {
                    tracing::warn!("{forecast}");
                }
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "failed to forecast what runs out")
            }
        }
        BootTimer.sleep_ms(DAY_MS).await;
    }
}
