//! The store of a back end, with its clock and its identity.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use snowmint_core::UnixMillis;

use super::BackendStore;
use super::rows::{Backend, Rows, VerbResult};
use super::run_verb::{RunVerb, steps};
use crate::error::{Result, Verb};
use crate::model::history::StoreIdentity;
use crate::store::capability::{Capabilities, ClockOf};
use crate::store::owner_client::OwnerClient;
use crate::store::time_reference::TimeReference;
use crate::store::{Store, StoreCall, StoreConnector, StoreReply};

async fn identity<R: Rows>(rows: &mut R) -> VerbResult<R, StoreIdentity> {
    Ok((rows.identity().clone(), false))
}

struct NowVerb;

#[async_trait]
impl RunVerb for NowVerb {
    type Output = Option<UnixMillis>;
    const VERB: Verb = Verb::Now;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Option<UnixMillis>> {
        Ok((rows.clock(), false))
    }
}

impl<B: Backend> Store for BackendStore<B> {
    fn capabilities(&self) -> Capabilities {
        self.backend.info().capabilities
    }

    fn namespace(&self) -> &str {
        self.backend.info().namespace
    }

    fn warnings(&self) -> Vec<String> {
        self.backend.warnings()
    }

    fn group_max(&self) -> u32 {
        u32::try_from(<B::Rows as Rows>::WRITES_MAX).unwrap_or(u32::MAX)
    }

    fn owner_client(&self) -> Option<Arc<dyn OwnerClient>> {
        None
    }

    fn secondary_store(&self, _: &str) -> Option<Arc<dyn StoreConnector>> {
        None
    }

    fn time_reference(&self) -> Option<Arc<dyn TimeReference>> {
        None
    }

    fn seen(&self) -> Option<StoreIdentity> {
        self.lineage.seen().as_deref().cloned()
    }

    fn remember(&self, seen: &StoreIdentity) {
        self.lineage.remember(seen);
    }

    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        self.dispatch(call)
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.backend.close())
    }
}

steps! {
    Identity: fn identity() -> StoreIdentity;
}

impl<B: Backend> BackendStore<B> {
    pub(super) async fn now(&self) -> Result<Option<UnixMillis>> {
        match self.backend.info().capabilities.clock {
            ClockOf::Store => self.output_of(NowVerb).await,
            // The store has no clock to read.
            ClockOf::Caller => Ok(None),
        }
    }
}
