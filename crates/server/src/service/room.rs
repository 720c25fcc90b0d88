//! Whether there is room for what is defined: the catalog keeps every name for ever, and every queue takes memory of every
//! server. A token that may define some sources gets a quarter of it, counted over those, so that it leaves room for
//! others whatever it does; what is counted is in the store, and the same for all servers.

use snowmint_coord::{DefinedRoom, Error as StoreError, Store};
use snowmint_wire::error::Code;
use tokio::sync::MutexGuard;

use super::{Error, Service};

/// Which part of the room a token gets that may not define all sources.
const SHARE: u64 = 4;

/// Why nothing is defined.
#[derive(Debug)]
pub(crate) enum NoRoom {
    /// There is no room for it.
    Full(Error),
    /// The store does not say whether there is.
    Unknown(StoreError),
}

impl From<NoRoom> for Error {
    fn from(why: NoRoom) -> Self {
        match why {
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

/// How much is taken.
struct Taken {
    by_all: u64,
    /// Of what the caller may define; none if it gets all.
    of_caller: Option<u64>,
}

/// A limit, as errors name it.
struct Limit {
    max: u64,
    key: &'static str,
    what: &'static str,
    way_out: &'static str,
}

impl Limit {
    /// Refuses more where that is over what all may have, or over the caller's share.
    fn check(&self, taken: &Taken, more: u64) -> Result<(), Error> {
        let Self { max, key, what, way_out } = self;
        let (all, share) = (taken.by_all.saturating_add(more), max / SHARE);
        let said = match taken.of_caller.map(|own| own.saturating_add(more)) {
            _ if all > *max => format!("{all} {what}, where {max} are allowed ({key}); {way_out}"),
            Some(own) if own > share => format!(
                "{own} {what} of those that this token may define, where {share} are allowed (a quarter of {key}); \
                 {way_out}"
            ),
            _ => return Ok(()),
        };
        Err(Error::new(Code::TooMany, said))
    }
}

impl Service {
    /// Refuses a definition that there is no room for in this store; a definition that takes no more than it did before
    /// always has some. Keep what it answers until it is defined: others wait, so that they see it.
    ///
    /// # Errors
    /// `TooMany`; when the store does not answer.
    pub(crate) async fn room_for(
        &self,
        store: &dyn Store,
        new: &DefinedRoom,
    ) -> Result<Option<MutexGuard<'_, ()>>, NoRoom> {
        if self.caller.is_configuration() {
            return Ok(None);
        }
        let turn = self.defining.lock().await;
        let stored = self.node.defined_room(store).await?;
        let before = stored.iter().find(|it| it.name == new.name);
        let more_ids = new.queue_ids.saturating_sub(before.map_or(0, |it| it.queue_ids));
        if before.is_none() {
            self.names_limit().check(&self.taken(&stored, |_| 1), 1)?;
        }
        if more_ids > 0 {
            self.queues_limit().check(&self.taken(&stored, |it| it.queue_ids), more_ids)?;
        }
        Ok(Some(turn))
    }

    /// What all sources take together, and if the caller gets a share, those of them that it may define.
    fn taken(&self, stored: &[DefinedRoom], takes: impl Fn(&DefinedRoom) -> u64) -> Taken {
        let sum = |taken: u64, room: &DefinedRoom| taken.saturating_add(takes(room));
        let own = |room: &&DefinedRoom| self.may_define(&room.name).is_ok();
        let of_caller = || stored.iter().filter(own).fold(0, sum);
        Taken { by_all: stored.iter().fold(0, sum), of_caller: self.gets_a_share().then(of_caller) }
    }

    fn names_limit(&self) -> Limit {
        Limit {
            max: self.live.limit(|limits| limits.sources_max),
            key: "limits.sources_max",
            what: "sources, those that were deleted included",
            way_out: "use one that is there, or raise the limit",
        }
    }

    fn queues_limit(&self) -> Limit {
        Limit {
            max: self.live.limit(|limits| limits.prefill_ids_max),
            key: "limits.prefill_ids_max",
            what: "IDs in the queues of prefilled sources",
            way_out: "lower prefill.boost, or raise the limit",
        }
    }
}
