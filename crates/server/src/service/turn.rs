//! Waits for a turn at what a call waits for.

use futures_util::future::BoxFuture;
use snowmint_coord::node::StoresChecked;
use snowmint_coord::{Source, SourceSpec, within};
use snowmint_wire::error::Code;

use super::state::Service;
use super::turns::{SharedTurn, Turn, TurnTarget, overloaded};
use crate::error::Error;

impl Service {
    /// Waits for a turn at the primary store, like [`Service::turn_at`].
    ///
    /// # Errors
    /// Those of [`Service::turn_at`].
    pub(super) async fn turn(&self) -> Result<Option<Turn>, Error> {
        self.turn_at(TurnTarget::Primary).await
    }

    /// Waits for a turn at a target, for at most `limits.wait_max`. The configuration and peers
    /// need none: all that a peer forwards would be one client. A call has one turn at a time: if
    /// all turns of a client waited for second ones, none would end.
    ///
    /// # Errors
    /// `Overloaded` when the caller's earlier calls last that long.
    pub(crate) async fn turn_at(&self, target: TurnTarget) -> Result<Option<Turn>, Error> {
        if self.caller.is_of_servers() {
            return Ok(None);
        }
        let client = self.caller.client();
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        let turn = self.turns.acquire((client.clone(), target.clone()));
        let turn = within(self.peers().timer(), wait_ms, turn).await;
        turn.flatten()
            .map(Some)
            .ok_or_else(|| Error::new(Code::Overloaded, overloaded(&client, &target, wait_ms)))
    }

    /// Waits for a turn to call a source, if each of its requests is a call of a store.
    ///
    /// # Errors
    /// Those of [`Service::turn`].
    pub(super) async fn turn_for(&self, source: &Source) -> Result<Option<Turn>, Error> {
        if !source.calls_each_time() {
            return Ok(None);
        }
        self.turn_of(source).await
    }

    /// Waits for a turn to call a source at what its calls wait for.
    ///
    /// # Errors
    /// Those of [`Service::turn_at`].
    pub(super) async fn turn_of(&self, source: &Source) -> Result<Option<Turn>, Error> {
        // Boxed, so that requests of other sources stay small.
        let turn: BoxFuture<'_, Result<Option<Turn>, Error>> =
            Box::pin(self.turn_at(TurnTarget::of(&source.plan())));
        turn.await
    }

    /// Checks the list of stores in a new definition of a source. The check of a multi-store source
    /// calls secondary stores, in a turn at them. Meanwhile the caller's turn at the primary store
    /// is released.
    ///
    /// # Errors
    /// Those of [`Service::turn_at`]. The inner error is the node's: the list is not permitted, or
    /// a store that must be asked does not respond.
    pub(crate) async fn check_stores(
        &self,
        turn: &SharedTurn,
        (name, spec): (&str, &SourceSpec),
    ) -> Result<snowmint_coord::Result<StoresChecked>, Error> {
        let target = match spec.check() {
            Ok(plan) if spec.stores.is_some() => TurnTarget::of(&plan),
            // Asks no other store.
            _ => return Ok(self.node.check_stores(name, spec).await),
        };
        turn.replace(None);
        let checked = {
            let _turn = self.turn_at(target).await?;
            self.node.check_stores(name, spec).await
        };
        turn.replace(self.turn().await?);
        Ok(checked)
    }
}
