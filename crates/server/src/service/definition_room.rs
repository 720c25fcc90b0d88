//! Room for definitions: the catalog keeps every name forever, and every queue takes memory of
//! every server. A token that may define only some sources gets a quarter of the room, counted over
//! those. So it leaves room for other callers, whatever it does. The counts come from the store,
//! and are the same for all servers.

use std::sync::{Arc, PoisonError};

use snowmint_coord::{DefinedRoom, Error as StoreError, Store};
use snowmint_wire::error::Code;
use tokio::sync::OwnedMutexGuard;

use super::{Error, Service};

/// Divisor of a limit for a token that may not define all sources.
const SHARE: u64 = 4;

/// Reason why nothing is defined.
#[derive(Debug)]
pub(crate) enum NoRoom {
    /// The limit is reached.
    Full(Error),
    /// The store does not return the used room.
    Unknown(StoreError),
}

impl From<NoRoom> for Error {
    fn from(reason: NoRoom) -> Self {
        match reason {
            NoRoom::Full(error) => error,
            NoRoom::Unknown(error) => error.into(),
        }
    }
}

impl From<Error> for NoRoom {
    fn from(error: Error) -> Self {
        Self::Full(error)
    }
}

impl From<StoreError> for NoRoom {
    fn from(error: StoreError) -> Self {
        Self::Unknown(error)
    }
}

/// Used room.
struct UsedRoom {
    by_all: u64,
    /// Part of the sources that the caller may define; `None` if it may use all room.
    of_caller: Option<u64>,
}

/// A limit, with its texts for errors.
struct NamedLimit {
    max: u64,
    key: &'static str,
    what: &'static str,
    remedy: &'static str,
}

impl NamedLimit {
    /// Rejects an increase beyond the limit of all, or beyond the caller's share.
    fn check(&self, used: &UsedRoom, more: u64) -> Result<(), Error> {
        let Self { max, key, what, remedy } = self;
        let (all, share) = (used.by_all.saturating_add(more), max / SHARE);
        let message = match used.of_caller.map(|own| own.saturating_add(more)) {
            _ if all > *max => format!("{all} {what} exceed {key} ({max}); {remedy}"),
            Some(own) if own > share => format!(
                "{own} {what} that this token may define exceed {share}, a quarter of {key}; \
                 {remedy}"
            ),
            _ => return Ok(()),
        };
        Err(Error::new(Code::LimitExceeded, message))
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
    ) -> Result<Option<OwnedMutexGuard<()>>, NoRoom> {
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
            self.names_limit().check(&self.used(&stored, |_| 1), 1)?;
        }
        if more_ids > 0 {
            self.queues_limit().check(&self.used(&stored, |it| it.queue_ids), more_ids)?;
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
            of_caller: self.gets_a_share().then(of_caller),
        }
    }

    fn names_limit(&self) -> NamedLimit {
        NamedLimit {
            max: self.live.limit(|limits| limits.sources_max),
            key: "limits.sources_max",
            what: "sources, deleted ones included,",
            remedy: "use an existing one, or raise the limit",
        }
    }

    fn queues_limit(&self) -> NamedLimit {
        NamedLimit {
            max: self.live.limit(|limits| limits.prefill_ids_max),
            key: "limits.prefill_ids_max",
            what: "IDs in the queues of prefilled sources",
            remedy: "lower prefill.boost, or raise the limit",
        }
    }
}
