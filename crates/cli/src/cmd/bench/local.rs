//! Load in this process, without a server, as in an application that embeds the library.

use std::cell::RefCell;

use snowmint_coord::{BootTimer, IdBatch, Source};

use super::observations::{LoadRequest, Observations};
use super::work::BenchWork;

/// Longest wait of one call for the next tick or the store.
const WITHIN_MS: u64 = 60_000;

pub(super) struct Local {
    source: Source,
    key: Option<String>,
}

impl Local {
    pub(super) fn open(source: &Source, work: &BenchWork) -> Self {
        Self { source: source.clone(), key: work.key.clone() }
    }

    /// Mints for each request in turn: there is nothing to wait for in between.
    pub(super) async fn round(&self, round: &[LoadRequest], observations: &RefCell<Observations>) {
        for &load_request in round {
            self.mint(load_request, observations).await;
        }
        // Another task of this thread may be the one that ends the run.
        tokio::task::consume_budget().await;
    }

    async fn mint(&self, load_request: LoadRequest, observations: &RefCell<Observations>) {
        // Applications call this for one ID; requests that it rejects wait below.
        if load_request.count == 1
            && self.key.is_none()
            && let Ok(id) = self.source.try_mint()
        {
            let now_ns = BootTimer.elapsed_ns();
            let mut observations = observations.borrow_mut();
            observations.number(id);
            return observations.responded_at(load_request, now_ns);
        }
        let minted = self.source.mint(load_request.count, self.key.as_deref(), WITHIN_MS).await;
        let now_ns = BootTimer.elapsed_ns();
        let mut observations = observations.borrow_mut();
        match minted {
            Ok(IdBatch::Numbers(ids)) => ids.into_iter().for_each(|id| observations.number(id)),
            Ok(IdBatch::Texts(ids)) => ids.iter().for_each(|id| observations.text(id)),
            Err(error) => return observations.refused(error.kind().code(), &error.to_string()),
        }
        observations.responded_at(load_request, now_ns);
    }
}
