//! Minting in global order, under the lease on the order.

use snowmint_core::{Clock as _, MintError};

use super::global_order::GlobalOrder;
use super::retry_policy::WINDOW_WAIT_MS;
use super::section_windows::NotOwned;
use super::shared_errors::closed;
use super::snowflake::SnowflakeBacking;
use crate::error::{Error, Result, Retry};
use crate::machine::section_assignment::Server;
use crate::model::pool::SECTIONS;

impl SnowflakeBacking {
    /// Fills the buffer in global order: fully, or with the number of IDs in the error.
    pub(super) fn fill_in_order(
        &self,
        global_order: &GlobalOrder,
        out: &mut [u64],
    ) -> Result<(), (usize, Error)> {
        let sections = &self.ctx.sections;
        let lease = sections.lease();
        let generators = self.generators.load();
        let Some(generators) = generators.as_ref() else {
            return Err((0, self.not_here(global_order)));
        };
        let filled = generators.try_fill(out);
        let (taken_until, end) = generators.reach();
        global_order.request_ahead(sections, taken_until, end);
        // The lease is checked after taking, so the check covers any delay of this thread up to
        // then.
        if !self.ctx.is_leased(lease) {
            return Err((0, self.lease_expired()));
        }
        filled.map_err(|short| {
            let error = match short.error {
                MintError::Closed => self.not_here(global_order),
                error @ MintError::WindowSpent { .. } => {
                    // Also when it was requested before: the result may have been lost.
                    sections.want(global_order.slot(), global_order.want(taken_until));
                    self.minted_nothing(error)
                }
                error => self.minted_nothing(error),
            };
            (short.made, error)
        })
    }

    #[cold]
    fn not_here(&self, global_order: &GlobalOrder) -> Error {
        let now = self.ctx.timer.elapsed();
        let not_owner =
            |server: Server| Error::not_owner(global_order.slot() % SECTIONS, server.address);
        match self.ctx.sections.absent(
            global_order.slot(),
            global_order.want(self.ctx.clock.unix_ms()),
            now,
        ) {
            NotOwned::Closed => closed(&self.name),
            NotOwned::Pending => match self.ctx.journal_budget.check_disk(now) {
                Err(error) => error,
                Ok(()) => Error::unavailable(format!(
                    "order of source {:?} is being acquired; retry",
                    self.name
                )),
            },
            NotOwned::With(server) => not_owner(server),
            NotOwned::HandingOver(server) => {
                not_owner(server).with_retry(Retry::AfterMs(WINDOW_WAIT_MS))
            }
        }
    }

    #[cold]
    fn lease_expired(&self) -> Error {
        Error::unavailable(format!(
            "lease on the order of source {:?} expired; retry while it is renewed",
            self.name
        ))
    }
}
