//! The forms of minting with a worker that the program named: each extends the window, if due,
//! before an ID leaves the handle.

use std::sync::Arc;

use snowmint_coord::{BootTimer, Timer as _};
use snowmint_core::generator::{WaitPolicy, WaitStep};
use snowmint_core::{Clock as _, MintError};

use super::Worker;
use crate::values::Short;
use snowmint_coord::{Error, Result};

impl Worker {
    /// Maintains the window before `minted` leaves the handle: extends a spent window and then
    /// mints.
    #[cold]
    pub(crate) fn maintain_window(
        &self,
        minted: Result<u64, MintError>,
    ) -> Result<Result<u64, MintError>> {
        if let Err(MintError::WindowSpent { mark }) = minted {
            self.extend_past(mark)?;
            return Ok(self.generator.try_mint());
        }
        if !self.generator.clock().needs_no_check() {
            self.check_window()?;
        }
        Ok(minted)
    }

    /// Waits until `try_mint` succeeds, as long as the wait policy allows.
    #[cold]
    pub(crate) fn mint_slowly(
        &self,
        mut minted: Result<u64, MintError>,
        mut wait_policy: WaitPolicy,
        mut try_mint: impl FnMut() -> Result<u64, MintError>,
    ) -> Result<u64> {
        let clock = self.generator.clock();
        loop {
            let error = match self.maintain_window(minted)? {
                Ok(id) => return Ok(id),
                Err(error) => error,
            };
            let step = wait_policy
                .next_step(error, clock.read().elapsed())
                .map_err(|error| self.refused(error))?;
            step.wait(clock);
            minted = try_mint();
        }
    }

    #[inline]
    pub(crate) fn try_mint(&self) -> Result<u64> {
        match self.generator.try_mint() {
            Ok(id) if self.generator.clock().needs_no_check() => Ok(id),
            other => self.maintain_window(other)?.map_err(|error| self.refused(error)),
        }
    }

    #[inline]
    pub(crate) fn mint(&self) -> Result<u64> {
        match self.generator.try_mint() {
            Ok(id) if self.generator.clock().needs_no_check() => Ok(id),
            other => {
                self.mint_slowly(other, self.generator.wait_policy(), || self.generator.try_mint())
            }
        }
    }

    /// Mints as [`Snowflake::mint_async`](crate::snowflake::Snowflake::mint_async) documents.
    pub(crate) async fn mint_async(self: &Arc<Self>) -> Result<u64> {
        let generator = &self.generator;
        let mut minted = generator.try_mint();
        if let Ok(id) = minted
            && generator.clock().needs_no_check()
        {
            return Ok(id);
        }
        let mut wait_policy = generator.wait_policy();
        loop {
            let error = match self.maintain_window_async(minted).await? {
                Ok(id) => return Ok(id),
                Err(error) => error,
            };
            let reading = generator.clock().read();
            match wait_policy
                .next_step(error, reading.elapsed())
                .map_err(|error| self.refused(error))?
            {
                WaitStep::Until { wall, at_most_ms } => {
                    let left_us = wall.get().saturating_mul(1_000).checked_sub(reading.wall_us);
                    // A held clock may be behind the wall clock.
                    let left_us = left_us.filter(|us| *us > 0).unwrap_or(1_000);
                    BootTimer.sleep_us(left_us.min(at_most_ms.saturating_mul(1_000))).await;
                }
                WaitStep::For { ms } => BootTimer.sleep_ms(ms).await,
            }
            minted = generator.try_mint();
        }
    }

    /// Does the same as [`Worker::maintain_window`], but writes the mark file on a thread that may
    /// block.
    async fn maintain_window_async(
        self: &Arc<Self>,
        minted: Result<u64, MintError>,
    ) -> Result<Result<u64, MintError>> {
        let is_spent = matches!(minted, Err(MintError::WindowSpent { .. }));
        if !is_spent && self.generator.clock().needs_no_check() {
            return Ok(minted);
        }
        let worker = Arc::clone(self);
        tokio::task::spawn_blocking(move || worker.maintain_window(minted)).await.unwrap_or_else(|error| {
            let message = "internal error: runtime ended while the mark file was written; please \
                           report it";
            Err(Error::internal(message).with_source(error))
        })
    }

    pub(crate) fn fill(&self, out: &mut [u64]) -> Result<(), Short> {
        let clock = self.generator.clock();
        let mut wait_policy = None;
        self.fill_with(out, |made, error| {
            // Without an ID since the last wait, the same wait continues.
            if made > 0 {
                wait_policy = None;
            }
            let wait_policy = wait_policy.get_or_insert_with(|| self.generator.wait_policy());
            let step = wait_policy.next_step(error, clock.read().elapsed());
            step.map_err(|error| self.refused(error))?.wait(clock);
            Ok(())
        })
    }

    pub(crate) fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        self.fill_with(out, |_, error| Err(self.refused(error)))
    }

    fn fill_with(
        &self,
        out: &mut [u64],
        mut wait: impl FnMut(usize, MintError) -> Result<()>,
    ) -> Result<(), Short> {
        let mut made = 0;
        // At each mark, a spent window is extended once.
        let mut spent_at = None;
        while let Some(rest) = out.get_mut(made..) {
            let filled = self.generator.try_fill(rest);
            if !self.generator.clock().needs_no_check() {
                self.check_window().map_err(|error| Short { made, error })?;
            }
            let Err(short) = filled else { break };
            made = made.saturating_add(short.made);
            match short.error {
                MintError::WindowSpent { mark } if spent_at != Some(mark) => {
                    spent_at = Some(mark);
                    self.extend_past(mark)
                }
                error => wait(short.made, error),
            }
            .map_err(|error| Short { made, error })?;
        }
        Ok(())
    }
}
