//! Load in this process, without a server, as in an application that embeds the library.

use std::cell::RefCell;

use snowmint_coord::{BootTimer, Source, Values};

use super::seen::{Asked, Seen};
use super::work::Work;

/// Longest wait of one call for the next tick or the store.
const WITHIN_MS: u64 = 60_000;

#[derive(Debug)]
pub(super) struct Local {
    source: Source,
    key: Option<String>,
}

impl Local {
    pub(super) fn open(source: &Source, work: &Work) -> Self {
        Self { source: source.clone(), key: work.key.clone() }
    }

    /// Mints for each request in turn: there is nothing to wait for in between.
    pub(super) async fn round(&self, round: &[Asked], seen: &RefCell<Seen>) {
        for &asked in round {
            self.mint(asked, seen).await;
        }
        // Another task of this thread may be the one that ends the run.
        tokio::task::consume_budget().await;
    }

    async fn mint(&self, asked: Asked, seen: &RefCell<Seen>) {
        // Applications call this for one ID; requests that it rejects wait below.
        if asked.count == 1
            && self.key.is_none()
            && let Ok(id) = self.source.try_mint()
        {
            let now_ns = BootTimer.elapsed_ns();
            let mut seen = seen.borrow_mut();
            seen.number(id);
            return seen.answered_at(asked, now_ns);
        }
        let minted = self.source.mint(asked.count, self.key.as_deref(), WITHIN_MS).await;
        let now_ns = BootTimer.elapsed_ns();
        let mut seen = seen.borrow_mut();
        match minted {
            Ok(Values::Numbers(ids)) => ids.into_iter().for_each(|id| seen.number(id)),
            Ok(Values::Texts(ids)) => ids.iter().for_each(|id| seen.text(id)),
            Err(error) => return seen.refused(error.kind().code(), &error.to_string()),
        }
        seen.answered_at(asked, now_ns);
    }
}
