//! Snowflake IDs of a store-backed source.

use snowmint_coord::spec::Plan;
use snowmint_coord::{Decoded as SourceDecoded, Patience, Retry, Source, Values};
use snowmint_core::generator::MINT_WAIT_MAX_MS;
use snowmint_core::text::Format;
use snowmint_core::{Clock as _, ElapsedMillis, Layout, Pause as _, UnixMillis};

use super::Shared;
use super::segment::{not_numbers, numbers, one};
use crate::snowflake::{Decoded, Stats};
use crate::{Error, ErrorKind, Result, Short};

/// A snowflake source and the bounds of its waits.
#[derive(Debug)]
pub(crate) struct Stored {
    source: Source,
    layout: Layout,
    shared: Shared,
}

impl Stored {
    pub(crate) fn new(source: Source, shared: Shared) -> Self {
        // The layout is part of a source's identity: it never changes.
        let layout = match source.plan() {
            Plan::Snowflake(plan) => plan.layout,
            _ => Layout::TWITTER,
        };
        Self { source, layout, shared }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    pub(crate) fn try_mint(&self) -> Result<u64> {
        self.source.try_mint()
    }

    pub(crate) fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        self.source.try_fill(out).map_err(|(made, why)| Short { made, why })
    }

    pub(crate) fn elapsed(&self) -> ElapsedMillis {
        self.shared.clock.read().elapsed()
    }

    /// Returns the deadline of a call that names none.
    pub(crate) fn deadline(&self) -> ElapsedMillis {
        self.elapsed().saturating_add(self.wait_ms())
    }

    fn wait_ms(&self) -> u64 {
        if self.source.is_asked() {
            return self.shared.wait_max_ms;
        }
        std::cmp::max(MINT_WAIT_MAX_MS, u64::from(self.layout.unit_ms()).saturating_mul(2))
    }

    /// Blocks this thread for IDs that servers mint. Returns none if this process mints them, or if
    /// the program has a runtime, because this would block a thread of that runtime.
    fn asked(&self, count: usize, within_ms: impl Fn() -> u64) -> Option<Result<Vec<u64>>> {
        let keep = self.shared.keep.as_ref().filter(|_| self.source.is_asked())?;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let asked = async { numbers(self.source.mint(count, None, within_ms()).await?) };
        Some(keep.block_on(asked))
    }

    pub(crate) fn mint_by(&self, deadline: ElapsedMillis) -> Result<u64> {
        if let Some(ids) = self.asked(1, || deadline.since(self.elapsed())) {
            return one(Values::Numbers(ids?));
        }
        let mut patience = self.source.patience();
        loop {
            match self.try_mint() {
                Ok(id) => return Ok(id),
                Err(why) => self.wait_out(&mut patience, why, deadline)?,
            }
        }
    }

    pub(crate) fn fill(&self, out: &mut [u64]) -> Result<(), Short> {
        if let Some(ids) = self.asked(out.len(), || self.wait_ms()) {
            let ids = ids.map_err(|why| Short { made: 0, why })?;
            out.iter_mut().zip(ids).for_each(|(place, id)| *place = id);
            return Ok(());
        }
        let mut patience = self.source.patience();
        let mut made = 0;
        while let Some(rest) = out.get_mut(made..)
            && let Err(short) = self.try_fill(rest)
        {
            made = made.saturating_add(short.made);
            self.wait_out(&mut patience, short.why, self.deadline())
                .map_err(|why| Short { made, why })?;
        }
        Ok(())
    }

    pub(crate) async fn mint_async(&self) -> Result<u64> {
        if self.source.is_asked() {
            return one(self.source.mint(1, None, self.wait_ms()).await?);
        }
        match self.try_mint() {
            Err(why) if why.retry() == Retry::Never => Err(why),
            Err(_) => one(self.source.mint(1, None, self.wait_ms()).await?),
            minted => minted,
        }
    }

    /// Waits as long as the retry policy allows; returns the error when the time is up.
    fn wait_out(&self, patience: &mut Patience, why: Error, deadline: ElapsedMillis) -> Result<()> {
        let left_ms = deadline.since(self.elapsed());
        let Some(wait_ms) = patience.rest_ms(&why, left_ms) else { return Err(why) };
        let clock = &self.shared.clock;
        let until = match why.kind() {
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
            taken_until.saturating_sub(unit_ms).since(self.shared.clock.read().wall())
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
