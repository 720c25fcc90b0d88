//! The forms of minting with a worker that the program named: each extends the window, if due,
//! before an ID leaves the handle.

use std::sync::Arc;

use snowmint_coord::{BootTimer, Timer as _};
use snowmint_core::generator::{Patience, Rest};
use snowmint_core::{Clock as _, Refusal};

use super::Worker;
use crate::{Error, Result, Short};

impl Worker {
    /// Maintains the window before `minted` leaves the handle: extends a spent window and then
    /// mints.
    #[cold]
    pub(crate) fn see_to(&self, minted: Result<u64, Refusal>) -> Result<Result<u64, Refusal>> {
        if let Err(Refusal::WindowSpent { mark }) = minted {
            self.extend_past(mark)?;
            return Ok(self.generator.try_mint());
        }
        if !self.generator.clock().is_calm() {
            self.attend()?;
        }
        Ok(minted)
    }

    /// Waits until `try_mint` succeeds, as long as the wait policy allows.
    #[cold]
    pub(crate) fn mint_slowly(
        &self,
        mut minted: Result<u64, Refusal>,
        mut patience: Patience,
        mut try_mint: impl FnMut() -> Result<u64, Refusal>,
    ) -> Result<u64> {
        let clock = self.generator.clock();
        loop {
            let why = match self.see_to(minted)? {
                Ok(id) => return Ok(id),
                Err(why) => why,
            };
            let rest =
                patience.rest(why, clock.read().elapsed()).map_err(|why| self.refused(why))?;
            rest.take(clock);
            minted = try_mint();
        }
    }

    #[inline]
    pub(crate) fn try_mint(&self) -> Result<u64> {
        match self.generator.try_mint() {
            Ok(id) if self.generator.clock().is_calm() => Ok(id),
            other => self.see_to(other)?.map_err(|why| self.refused(why)),
        }
    }

    #[inline]
    pub(crate) fn mint(&self) -> Result<u64> {
        match self.generator.try_mint() {
            Ok(id) if self.generator.clock().is_calm() => Ok(id),
            other => {
                self.mint_slowly(other, self.generator.patience(), || self.generator.try_mint())
            }
        }
    }

    /// Mints as [`Snowflake::mint_async`](crate::Snowflake::mint_async) documents.
    pub(crate) async fn mint_async(self: &Arc<Self>) -> Result<u64> {
        let generator = &self.generator;
        let mut minted = generator.try_mint();
        if let Ok(id) = minted
            && generator.clock().is_calm()
        {
            return Ok(id);
        }
        let mut patience = generator.patience();
        loop {
            let why = match self.see_to_async(minted).await? {
                Ok(id) => return Ok(id),
                Err(why) => why,
            };
            let reading = generator.clock().read();
            match patience.rest(why, reading.elapsed()).map_err(|why| self.refused(why))? {
                Rest::Until { wall, at_most_ms } => {
                    let left_us = wall.get().saturating_mul(1_000).checked_sub(reading.wall_us);
                    // A held clock may be behind the wall clock.
                    let left_us = left_us.filter(|us| *us > 0).unwrap_or(1_000);
                    BootTimer.sleep_us(left_us.min(at_most_ms.saturating_mul(1_000))).await;
                }
                Rest::For { ms } => BootTimer.sleep_ms(ms).await,
            }
            minted = generator.try_mint();
        }
    }

    /// Does the same as [`Worker::see_to`], but writes the mark file on a thread that may block.
    async fn see_to_async(
        self: &Arc<Self>,
        minted: Result<u64, Refusal>,
    ) -> Result<Result<u64, Refusal>> {
        let is_spent = matches!(minted, Err(Refusal::WindowSpent { .. }));
        if !is_spent && self.generator.clock().is_calm() {
            return Ok(minted);
        }
        let worker = Arc::clone(self);
        tokio::task::spawn_blocking(move || worker.see_to(minted)).await.unwrap_or_else(|error| {
            let message = "internal error: runtime ended while the mark file was written; please \
                           report it";
            Err(Error::internal(message).with_source(error))
        })
    }

    pub(crate) fn fill(&self, out: &mut [u64]) -> Result<(), Short> {
        let clock = self.generator.clock();
        self.fill_with(out, |why| {
            let mut patience = self.generator.patience();
            let rest = patience.rest(why, clock.read().elapsed());
            rest.map_err(|why| self.refused(why))?.take(clock);
            Ok(())
        })
    }

    pub(crate) fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        self.fill_with(out, |why| Err(self.refused(why)))
    }

    fn fill_with(
        &self,
        out: &mut [u64],
        mut wait: impl FnMut(Refusal) -> Result<()>,
    ) -> Result<(), Short> {
        let mut made = 0;
        // At each mark, a spent window is extended once.
        let mut spent_at = None;
        while let Some(rest) = out.get_mut(made..) {
            let filled = self.generator.try_fill(rest);
            if !self.generator.clock().is_calm() {
                self.attend().map_err(|why| Short { made, why })?;
            }
            let Err(short) = filled else { break };
            made = made.saturating_add(short.made);
            match short.why {
                Refusal::WindowSpent { mark } if spent_at != Some(mark) => {
                    spent_at = Some(mark);
                    self.extend_past(mark)
                }
                why => wait(why),
            }
            .map_err(|why| Short { made, why })?;
        }
        Ok(())
    }
}
