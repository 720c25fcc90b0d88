//! Running sources, from which applications mint.

mod backing;
mod calls;
mod client_reserve;
mod client_stripes;
mod counter;
mod deadline;
mod defined;
mod doubts;
mod generator_set;
mod global_order;
mod id_batch;
mod id_codec;
mod id_text;
mod journal_budget;
mod keys;
mod lease_stamp;
mod member_notices;
mod multi_store;
mod node_context;
mod ordered;
mod owners;
mod peer_probes;
mod per_request;
mod prefill;
mod prefill_holder;
mod queue_room;
mod remote_source;
mod retry_policy;
mod section_windows;
mod segment;
mod shared_errors;
mod snowflake;
mod source_inner;
mod source_kind;
mod store_minted;
mod texts;
mod values;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use snowmint_core::text::Format;

pub use crate::machine::section_assignment::{SectionAssignment, SectionLocation, Server};
pub use crate::platform::clock::{NodeClock, NodeObserver};
pub use counter::{BOUND_MAX, KEY_BYTES_MAX, RUN_MAX, hash_slot};
pub(crate) use defined::Defined;
pub(crate) use generator_set::{GeneratorConfig, GeneratorSet, SlotWindow};
pub use id_batch::{Decoded, IdBatch, NumberRange};
pub(crate) use id_codec::{IdCodec, check_value, compare_check};
pub(crate) use journal_budget::{Reported, Reserved, ReservedFor, node_closed};
pub use keys::{DisguiseKeys, Keyrings};
pub(crate) use multi_store::MultiStoreSource;
pub(crate) use node_context::NodeContext;
pub use prefill::{EmptyHook, FullHook, PrefillHooks, PrefillStats};
pub use retry_policy::RetryPolicy;
pub(crate) use segment::{InitialState, SegmentBacking, SegmentSource, Unused};
pub use segment::{NumberLane, SegmentHandle};
pub(crate) use snowflake::SnowflakeBacking;
pub(crate) use source_inner::SourceInner;
pub use values::{NumberStats, SourceStats, StoreStatus};

use crate::error::{Error, Result};
pub use crate::model::pool::SECTIONS;
use crate::spec::{Kind, Order, Plan, SourceSpec};

/// Most IDs of one call.
pub const BATCH_MAX: u32 = 1_000_000;

/// Source of IDs. Clones share it, and keep its node running.
#[derive(Clone)]
pub struct Source {
    inner: Arc<SourceInner>,
    /// The driver ends when the last of these is dropped.
    _alive: Arc<dyn Send + Sync>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Source {
    pub(crate) fn new(inner: Arc<SourceInner>, alive: Arc<dyn Send + Sync>) -> Self {
        Self { inner, _alive: alive }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.inner.kind
    }

    /// Returns whether its IDs are serials: texts made of numbers.
    #[must_use]
    pub fn makes_serials(&self) -> bool {
        self.inner.serial.is_some()
    }

    /// Returns whether one process at a time mints for all, in one order.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        matches!(&self.inner.defined.load().plan, Plan::Snowflake(plan) if plan.order == Order::Global)
    }

    /// Returns whether each request calls servers or the store: nothing is ever prefetched.
    #[must_use]
    pub fn is_per_request(&self) -> bool {
        self.inner.backing.is_per_request()
    }

    /// Returns whether each request is a call of the store, or of servers: of a per-request source,
    /// and of a counter whose results the store confirms.
    #[must_use]
    pub fn calls_each_time(&self) -> bool {
        self.inner.backing.calls_each_time()
    }

    /// Returns its definition as the catalog has it, every default written out.
    #[must_use]
    pub fn spec(&self) -> SourceSpec {
        self.inner.defined.load().spec.clone()
    }

    /// Returns the plan that its definition parses to.
    #[must_use]
    pub fn plan(&self) -> Plan {
        self.inner.defined.load().plan.clone()
    }

    /// Returns the retry policy for a caller that does its own waiting between tries.
    #[must_use]
    pub fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy::of(&self.inner.defined.load().plan)
    }

    /// Returns the text format of its IDs.
    #[must_use]
    pub fn format(&self) -> Format {
        self.inner.defined.load().id_codec.format()
    }

    /// Returns whether that is the default: decimal, as short as possible. Cheaper than
    /// [`format`](Self::format).
    #[must_use]
    #[inline]
    pub fn is_decimal(&self) -> bool {
        self.inner.decimal.load(Ordering::Acquire)
    }

    /// Checks that the source may mint: it is defined and enabled.
    ///
    /// # Errors
    /// `NotFound` once deleted; `Disabled`.
    pub fn check_enabled(&self) -> Result<()> {
        self.inner.check_enabled()
    }

    /// Returns the source's state.
    #[must_use]
    pub fn stats(&self) -> SourceStats {
        let ready = self.inner.enabled.load(Ordering::Acquire);
        self.inner.backing.kind().stats(ready)
    }

    /// Mints one ID of a numeric source. Never waits.
    ///
    /// # Errors
    /// The reason, with whether and when a retry helps: `TickFull`, `WindowSpent`, `ClockBehind`,
    /// `Disabled` and others.
    #[inline]
    pub fn try_mint(&self) -> Result<u64> {
        self.inner.try_mint()
    }

    /// Fills the buffer with IDs of a numeric source. Never waits.
    ///
    /// # Errors
    /// The number of IDs at the start of the buffer, and the reason why it is not full. These IDs
    /// count as taken.
    pub fn try_fill(&self, out: &mut [u64]) -> Result<(), (usize, Error)> {
        if self.makes_serials() {
            return Err((0, self.inner.not_number()));
        }
        let outcome = self.inner.try_fill(out);
        let made = outcome.as_ref().map_or_else(|(made, _)| *made, |()| out.len());
        for id in out.get_mut(..made).unwrap_or_default() {
            *id = self.inner.show(*id).map_err(|error| (0, error))?;
        }
        outcome
    }

    /// Mints exactly `count` IDs; waits at most `within_ms` for clock and store. `key` is the name
    /// that UUIDs of version 3 and 5 hash, and the data of version 8.
    ///
    /// # Errors
    /// The last error when the time is up or no wait helps. IDs made until then are not used.
    pub async fn mint(&self, count: u32, key: Option<&str>, within_ms: u64) -> Result<IdBatch> {
        if count == 0 {
            let message = "count 0 is below the minimum of 1; ask for at least one ID";
            return Err(Error::invalid(message));
        }
        if count > BATCH_MAX {
            let message = format!("count {count} exceeds {BATCH_MAX}; ask for fewer");
            return Err(Error::limit_exceeded(message));
        }
        self.inner.mint(count, key, within_ms).await
    }

    /// Reserves `length` consecutive numbers of a segment source for the caller to use.
    ///
    /// # Errors
    /// `Invalid` for other kinds, for disguised sources, and for a length of 0; otherwise those of
    /// [`Source::mint`].
    pub async fn reserve_range(&self, length: u64, within_ms: u64) -> Result<NumberRange> {
        self.inner.check_enabled()?;
        if length == 0 {
            let message = "length 0 is below the minimum of 1; ask for at least one number";
            return Err(Error::invalid(message));
        }
        if !self.inner.plain {
            return Err(Error::invalid(format!(
                "source {:?} has a disguise or serials; ranges need plain numbers",
                self.name()
            )));
        }
        self.inner.reserve_range(length, within_ms).await
    }

    /// Takes `count` consecutive numbers of a counter key; returns the first and the last. Each is
    /// greater than every number of this key returned to any caller, by any server, before this
    /// call.
    ///
    /// # Errors
    /// `Invalid` for other kinds and for bad keys; `NotOwner` when another process owns the key's
    /// section; `Unavailable` when the store did not grant the section, or our lease on it expired.
    pub async fn count(&self, key: &[u8], count: u64, within_ms: u64) -> Result<(u64, u64)> {
        self.inner.check_enabled()?;
        if let Some(remote) = self.inner.backing.as_remote() {
            return remote.count(key, count, within_ms).await;
        }
        let counted = self.inner.counter()?.take(key, count, within_ms).await?;
        Ok((counted.first, counted.last))
    }

    /// Does the same as [`Source::count`], without ever waiting.
    ///
    /// # Errors
    /// Those of [`Source::count`].
    pub fn try_count(&self, key: &[u8], count: u64) -> Result<(u64, u64)> {
        self.inner.check_enabled()?;
        let counted = self.inner.counter()?.take_now(key, count)?;
        Ok((counted.first, counted.last))
    }

    /// Takes a number for each of several counter keys, in order, faster than one by one. Each
    /// number is greater than all numbers of its key returned to any caller before this call. A key
    /// named twice gets two numbers, in any order.
    ///
    /// # Errors
    /// Those of [`Source::count`]; the numbers taken for other keys are then lost.
    pub async fn count_each(&self, keys: &[&[u8]], within_ms: u64) -> Result<Vec<u64>> {
        self.inner.check_enabled()?;
        match self.inner.backing.as_remote() {
            Some(remote) => remote.count_each(keys, within_ms).await,
            None => self.inner.counter()?.take_each(keys, within_ms).await,
        }
    }

    /// Does the same as [`Source::count_each`], without ever waiting.
    ///
    /// # Errors
    /// Those of [`Source::count`].
    pub fn try_count_each(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        self.inner.check_enabled()?;
        self.inner.counter()?.take_each_now(keys)
    }

    /// Returns the highest number that a key may have returned to any caller; 0 if there is none.
    ///
    /// # Errors
    /// Those of [`Source::count`].
    pub async fn bound_of(&self, key: &[u8], within_ms: u64) -> Result<u64> {
        self.inner.check_enabled()?;
        match self.inner.backing.as_remote() {
            Some(remote) => remote.bound_of(key, within_ms).await,
            None => self.inner.counter()?.bound(key, within_ms).await,
        }
    }

    /// Makes every later number of a key greater than `highest`, durably once this returns; a key
    /// already above it stays. Other keys of its section jump as far when the section changes its
    /// owner.
    ///
    /// # Errors
    /// Those of [`Source::count`]; `Invalid` above [`BOUND_MAX`].
    pub async fn raise(&self, key: &[u8], highest: u64, within_ms: u64) -> Result<()> {
        self.inner.check_enabled()?;
        self.inner.counter()?.raise(key, highest, within_ms).await
    }

    /// Returns the section of a counter key.
    ///
    /// # Errors
    /// `Invalid` for other kinds.
    pub fn section(&self, key: &[u8]) -> Result<u16> {
        match self.inner.backing.as_remote() {
            Some(remote) => remote.section(key),
            None => Ok(self.inner.counter()?.section(key)),
        }
    }

    /// Checks that a request may begin in this process: the source is enabled, and no other process
    /// is known to own the section of the key. Takes no number, and does not check the key.
    ///
    /// # Errors
    /// `NotOwner` with the owner; `NotFound` and `Disabled`.
    pub fn check_owner(&self, key: Option<&[u8]>) -> Result<()> {
        self.inner.check_owner(key)
    }

    /// Sets what to do, besides the definition's policy, when the queue of a prefilled source is
    /// full or empty.
    ///
    /// # Errors
    /// `Invalid` when the source is not prefilled.
    pub fn set_prefill_hooks(&self, hooks: PrefillHooks) -> Result<()> {
        let snowflake = self.inner.backing.as_snowflake();
        match snowflake.and_then(|snowflake| snowflake.queue.get()) {
            Some(prefill) => {
                prefill.set_hooks(hooks);
                Ok(())
            }
            None => Err(Error::invalid(format!(
                "source {:?} is not prefilled; set prefill.enabled = true",
                self.name()
            ))),
        }
    }
}
