//! Remote sources: counters and global-order sources for which the store names servers to ask.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::counter::Slots;
use super::id_batch::IdBatch;
use super::node_context::NodeContext;
use super::owners::Owners;
use super::shared_errors::{has_other_kind, needs_key, takes_no_key};
use super::source_kind::SourceKind;
use crate::error::{Error, Result};
use crate::spec::{Kind, Order, Plan};

/// Keys of one call that are requested from servers at the same time.
const REQUESTS_MAX: usize = 64;

/// A source served by servers: each call is one request or more.
pub(crate) struct RemoteSource {
    name: String,
    owners: Owners,
    /// Sections of a counter's keys; absent in a global-order source.
    slots: Option<Slots>,
}

impl RemoteSource {
    /// Returns the remote source of a plan; `None` where the source mints in this process.
    pub(super) fn of(name: &str, plan: &Plan, ctx: &Arc<NodeContext>) -> Option<Self> {
        let slots = match plan {
            Plan::Counter(plan) => Some(Slots::new(name, plan.keys_alone)),
            Plan::Snowflake(plan) if plan.order == Order::Global => None,
            _ => return None,
        };
        Some(Self { name: name.to_owned(), owners: Owners::of(ctx)?, slots })
    }

    pub(super) async fn mint(
        &self,
        count: u32,
        key: Option<&str>,
        within_ms: u64,
    ) -> Result<IdBatch> {
        let numbers = match (&self.slots, key) {
            (Some(_), Some(key)) => {
                let (first, last) = self.count(key.as_bytes(), count.into(), within_ms).await?;
                (first..=last).collect()
            }
            (Some(_), None) => return Err(needs_key(&self.name)),
            (None, Some(_)) => return Err(takes_no_key(&self.name)),
            (None, None) => {
                let owners = &self.owners;
                owners.ask(within_ms, |owner| owner.mint(&self.name, count, within_ms)).await?
            }
        };
        Ok(IdBatch::Numbers(numbers))
    }

    pub(super) async fn count(&self, key: &[u8], count: u64, within_ms: u64) -> Result<(u64, u64)> {
        self.section(key)?;
        let owners = &self.owners;
        owners.ask(within_ms, |owner| owner.count(&self.name, key, count, within_ms)).await
    }

    /// Requests a few keys at a time, to not flood a server.
    pub(super) async fn count_each(&self, keys: &[&[u8]], within_ms: u64) -> Result<Vec<u64>> {
        let deadline = self.owners.deadline(within_ms);
        let mut numbers = Vec::with_capacity(keys.len());
        for keys in keys.chunks(REQUESTS_MAX) {
            let left_ms = deadline.left_ms();
            let each = keys.iter().map(|key| self.count(key, 1, left_ms));
            numbers.extend(try_join_all(each).await?.into_iter().map(|(_, last)| last));
        }
        Ok(numbers)
    }

    pub(super) async fn bound_of(&self, key: &[u8], within_ms: u64) -> Result<u64> {
        self.section(key)?;
        let owners = &self.owners;
        owners.ask(within_ms, |owner| owner.bound_of(&self.name, key, within_ms)).await
    }

    pub(super) fn section(&self, key: &[u8]) -> Result<u16> {
        match &self.slots {
            Some(slots) => Ok(slots.of(key)),
            None => Err(has_other_kind(&self.name, Kind::Snowflake, "keys need kind counter")),
        }
    }

    /// Returns the error for a call that cannot wait: a remote source has nothing prefetched.
    #[cold]
    pub(super) fn at_once(&self) -> Error {
        if let Err(doubt) = self.owners.check() {
            return doubt;
        }
        Error::unsupported(format!(
            "source {:?} is served by servers at each call; use a call that waits",
            self.name
        ))
    }
}

impl SourceKind for RemoteSource {
    fn is_per_request(&self) -> bool {
        true
    }
}

crate::opaque_debug!(RemoteSource: name);
