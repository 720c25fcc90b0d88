//! Opening of a server's sources at its start, and the forecasts for them.

use snowmint_coord::error::chain;
use snowmint_coord::{BootTimer, Node, Timer as _};
use tokio::task::JoinSet;

use crate::node::{is_away, when_joined};

const DAY_MS: u64 = 86_400_000;

/// Opens every source before the first request, so that readiness covers all of them. If the store
/// does not respond, opens the sources that can mint without it. Returns whether all were opened.
pub(super) async fn open_sources(node: &Node) -> bool {
    let kept = node.kept_sources();
    let (names, all) = match node.sources().await {
        Ok(listed) => {
            for (source, error) in &listed.unreadable {
                tracing::warn!(%source, error = %chain(error), "a newer version may have defined it: update this server");
            }
            let enabled = listed.sources.into_iter().filter(|source| source.spec.is_enabled());
            (enabled.map(|source| source.name).collect(), true)
        }
        Err(error) if is_away(&error) && !kept.is_empty() => (kept, false),
        Err(error) => {
            tracing::warn!(error = %chain(&error), "the sources cannot be listed; each is opened when asked for");
            return true;
        }
    };
    // All open at once: one that has to wait delays no other.
    let mut opening = JoinSet::new();
    for name in names {
        let node = node.clone();
        opening.spawn(async move {
            if let Err(error) = node.source(&name).await {
                tracing::warn!(source = name, error = %chain(&error), "not open yet; tried again when asked for");
            }
        });
    }
    while opening.join_next().await.is_some() {}
    all
}

/// Opens all sources once the store is reachable.
pub(super) async fn open_the_rest(node: &Node) {
    loop {
        when_joined(node).await;
        if open_sources(node).await {
            return;
        }
    }
}

/// Logs at the start and once a day what will run out.
pub(super) async fn tell_forecasts(node: Node) {
    loop {
        match node.forecast().await {
            Ok(forecasts) => {
                for forecast in forecasts.iter().filter(|forecast| forecast.is_warning()) {
                    tracing::warn!("{forecast}");
                }
            }
            Err(error) => tracing::warn!(error = %chain(&error), "what will run out is not known"),
        }
        BootTimer.sleep_ms(DAY_MS).await;
    }
}
