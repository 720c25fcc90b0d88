//! Snowflake IDs of a store-backed source.

use snowmint_coord::spec::Plan;
use snowmint_coord::{Decoded as SourceDecoded, IdBatch, Retry, RetryPolicy, Source};
use snowmint_core::generator::MINT_WAIT_MAX_MS;
use snowmint_core::text::Format;
use snowmint_core::{Clock as _, ElapsedMillis, Layout, Pause as _, UnixMillis};

use super::context::StoreContext;
use super::segment::{not_numbers, numbers, one};
use crate::values::{Decoded, Short, Stats};
use snowmint_coord::{Error, ErrorKind, Result};

/// A snowflake source and the bounds of its waits.
#[derive(Debug)]
pub(crate) struct StoreBacked {
    source: Source,
    layout: Layout,
    ctx: StoreContext,
}

impl StoreBacked {
    pub(crate) fn new(source: Source, ctx: StoreContext) -> Self {
        // The layout is part of a source's identity: it never changes.
        let layout = match source.plan() {
            Plan::Snowflake(plan) => plan.layout,
            _ => Layout::TWITTER,
        };
        Self { source, layout, ctx }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    pub(crate) fn try_mint(&self) -> Result<u64> {
        self.source.try_mint()
    }

    pub(crate) fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        self.source.try_fill(out).map_err(|(made, error)| Short { made, error })
    }

    pub(crate) fn elapsed(&self) -> ElapsedMillis {
        self.ctx.clock.read().elapsed()
    }

    /// Returns the deadline of a call that names none.
    pub(crate) fn deadline(&self) -> ElapsedMillis {
        self.elapsed().saturating_add(self.wait_ms())
    }

    fn wait_ms(&self) -> u64 {
        if self.source.is_per_request() {
            return self.ctx.wait_max_ms;
        }
        std::cmp::max(MINT_WAIT_MAX_MS, u64::from(self.layout.unit_ms()).saturating_mul(2))
    }

    /// Blocks this thread for IDs that servers mint. Returns none if this process mints them, or if
    /// the program has a runtime, because this would block a thread of that runtime.
    fn mint_per_request(
        &self,
        count: usize,
        within_ms: impl Fn() -> u64,
    ) -> Option<Result<Vec<u64>>> {
        let runtime = self.ctx.runtime.as_ref().filter(|_| self.source.is_per_request())?;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let minted = async { numbers(self.source.mint(count, None, within_ms()).await?) };
        Some(runtime.block_on(minted))
    }

    pub(crate) fn mint_by(&self, deadline: ElapsedMillis) -> Result<u64> {
        if let Some(ids) = self.mint_per_request(1, || deadline.since(self.elapsed())) {
            return one(IdBatch::Numbers(ids?));
        }
        let mut retry_policy = self.source.retry_policy();
        loop {
            match self.try_mint() {
                Ok(id) => return Ok(id),
                Err(error) => self.wait_out(&mut retry_policy, error, deadline)?,
            }
        }
    }

    pub(crate) fn fill(&self, out: &mut [u64]) -> Result<(), Short> {
        if let Some(ids) = self.mint_per_request(out.len(), || self.wait_ms()) {
            let ids = ids.map_err(|error| Short { made: 0, error })?;
            out.iter_mut().zip(ids).for_each(|(place, id)| *place = id);
            return Ok(());
        }
        let (mut made, mut waiting) = (0, None);
        while let Some(rest) = out.get_mut(made..)
            && let Err(short) = self.try_fill(rest)
        {
            made = made.saturating_add(short.made);
            // Without an ID since the last wait, the same wait continues.
            if short.made > 0 {
                waiting = None;
            }
            let (retry_policy, deadline) =
                waiting.get_or_insert_with(|| (self.source.retry_policy(), self.deadline()));
            self.wait_out(retry_policy, short.error, *deadline)
                .map_err(|error| Short { made, error })?;
        }
        Ok(())
    }

    pub(crate) async fn mint_async(&self) -> Result<u64> {
        if self.source.is_per_request() {
            return one(self.source.mint(1, None, self.wait_ms()).await?);
        }
        match self.try_mint() {
            Err(error) if error.retry() == Retry::Never => Err(error),
            Err(_) => one(self.source.mint(1, None, self.wait_ms()).await?),
            minted => minted,
        }
    }

    /// Waits as long as the retry policy allows; returns the error when the time is up.
    fn wait_out(
        &self,
        retry_policy: &mut RetryPolicy,
        error: Error,
        deadline: ElapsedMillis,
    ) -> Result<()> {
        let left_ms = deadline.since(self.elapsed());
        let Some(wait_ms) = retry_policy.wait_ms_after(&error, left_ms) else { return Err(error) };
        let clock = &self.ctx.clock;
        let until = match error.kind() {
            ErrorKind::TickFull { next_in_ms } => clock.read().wall().saturating_add(*next_in_ms),
            _ => UnixMillis::MAX,
        };
        clock.pause_until(until, wait_ms.max(1));
        Ok(())
    }

    pub(crate) fn decode(&self, id: u64) -> Result<Decoded> {
        match self.source.decode(&id.to_string(), Some(Format::default()))? {
            SourceDecoded::Snowflake { parts, time, .. } => Ok(Decoded::new(parts, time)),
            _ => Err(not_numbers()),
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let stats = self.source.stats();
        let unit_ms = u64::from(self.layout.unit_ms());
        let lead_ms = stats.taken_until.map_or(0, |taken_until| {
            taken_until.saturating_sub(unit_ms).since(self.ctx.clock.read().wall())
        });
        Stats {
            taken_until: stats.taken_until,
            mark: None,
            lead_ms,
            steps_back: stats.clock_steps.0,
            steps_ahead: stats.clock_steps.1,
        }
    }

    pub(crate) fn not_closed_here(&self) -> Error {
        Error::unsupported(format!(
            "worker of source {:?} belongs to an open store; close the store's handle",
            self.source.name()
        ))
    }
}
