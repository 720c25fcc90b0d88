//! Room for definitions: the catalog keeps every name forever, and every queue takes memory of
//! every server. A token that may define only some sources gets a quarter of the room, counted over
//! those. So it leaves room for other callers, whatever it does. The counts come from the store,
//! and are the same for all servers.

use std::sync::{Arc, PoisonError};

use snowmint_coord::{DefinedRoom, Store};
use snowmint_wire::error::Code;
use tokio::sync::OwnedMutexGuard;

use super::not_done::NotDone;
use super::state::Service;
use crate::error::Error;

/// Divisor of a limit for a token that may not define all sources.
const SHARE: u64 = 4;

/// Used room.
struct UsedRoom {
    by_all: u64,
    /// Part of the sources that the caller may define; `None` if it may use all room.
    of_caller: Option<u64>,
}

/// A limit on the definitions in one store.
#[derive(Clone, Copy)]
enum RoomLimit {
    /// Most sources, deleted ones included (`limits.sources_max`).
    Sources(u64),
    /// Most IDs in all queues (`limits.prefill_ids_max`).
    QueueIds(u64),
}

impl RoomLimit {
    /// Rejects an increase beyond the limit of all, or beyond the caller's share.
    fn check(self, used: &UsedRoom, more: u64) -> Result<(), Error> {
        let (Self::Sources(max) | Self::QueueIds(max)) = self;
        let (all, share) = (used.by_all.saturating_add(more), max / SHARE);
        let message = match used.of_caller.map(|own| own.saturating_add(more)) {
            _ if all > max => self.exceeded_by_all(all),
            Some(own) if own > share => self.exceeded_by_token(own, share),
            _ => return Ok(()),
        };
        Err(Error::new(Code::LimitExceeded, message))
    }

    fn exceeded_by_all(self, all: u64) -> String {
        match self {
            Self::Sources(max) => format!(
                "{all} sources, deleted ones included, exceed limits.sources_max ({max}); use an \
                 existing one, or raise the limit"
            ),
            Self::QueueIds(max) => format!(
                "{all} IDs in the queues of prefilled sources exceed limits.prefill_ids_max \
                 ({max}); lower prefill.boost, or raise the limit"
            ),
        }
    }

    fn exceeded_by_token(self, own: u64, share: u64) -> String {
        match self {
            Self::Sources(_) => format!(
                "{own} sources that this token may define, deleted ones included, exceed {share}, \
                 a quarter of limits.sources_max; use an existing one, or raise the limit"
            ),
            Self::QueueIds(_) => format!(
                "{own} IDs in the queues of sources that this token may define exceed {share}, a \
                 quarter of limits.prefill_ids_max; lower prefill.boost, or raise the limit"
            ),
        }
    }
}

impl Service {
    /// Rejects a definition without room in this store, which comes with its name if it is a
    /// secondary one. A definition that takes no more than before always has room. Keep the result
    /// until it is defined: other definitions in this store wait, so that they see it.
    ///
    /// # Errors
    /// `LimitExceeded`; when the store does not respond.
    pub(crate) async fn room_for(
        &self,
        (name, store): (&str, &dyn Store),
        new: &DefinedRoom,
    ) -> Result<Option<OwnedMutexGuard<()>>, NotDone> {
        if self.caller.is_configuration() {
            return Ok(None);
        }
        let defining = {
            let mut all = self.defining.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(name.to_owned()).or_default())
        };
        let turn = defining.lock_owned().await;
        let stored = self.node.defined_room(store).await?;
        let before = stored.iter().find(|it| it.name == new.name);
        let more_ids = new.queue_ids.saturating_sub(before.map_or(0, |it| it.queue_ids));
        if before.is_none() {
            self.sources_limit().check(&self.used(&stored, |_| 1), 1)?;
        }
        if more_ids > 0 {
            self.queue_ids_limit().check(&self.used(&stored, |it| it.queue_ids), more_ids)?;
        }
        Ok(Some(turn))
    }

    /// Returns the use of all sources, and if the caller gets a share, of those that it may define.
    fn used(&self, stored: &[DefinedRoom], takes: impl Fn(&DefinedRoom) -> u64) -> UsedRoom {
        let sum = |used: u64, room: &DefinedRoom| used.saturating_add(takes(room));
        let own = |room: &&DefinedRoom| self.may_define(&room.name).is_ok();
        let of_caller = || stored.iter().filter(own).fold(0, sum);
        UsedRoom {
            by_all: stored.iter().fold(0, sum),
            of_caller: self.caller().has_a_share().then(of_caller),
        }
    }

    fn sources_limit(&self) -> RoomLimit {
        RoomLimit::Sources(self.live.limit(|limits| limits.sources_max))
    }

    fn queue_ids_limit(&self) -> RoomLimit {
        RoomLimit::QueueIds(self.live.limit(|limits| limits.prefill_ids_max))
    }
}
