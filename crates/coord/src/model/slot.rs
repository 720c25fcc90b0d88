//! Slots for lists.

use snowmint_core::UnixMillis;

use crate::ids::{Incarnation, Mark, Term};
use crate::model::lease::SlotRow;
use crate::model::member::MemberInfo;

/// A slot with the data that lists show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotInfo {
    /// Name of the pool.
    pub pool: String,
    /// The slot.
    pub slot: u64,
    /// Newest term.
    pub term: Term,
    /// The mark.
    pub mark: Mark,
    /// Owner label of the last claim.
    pub owner: String,
    /// Holder, if the slot is held.
    pub holder: Option<Incarnation>,
    /// Host of the holder, if still known.
    pub host: Option<String>,
    /// Process number of the holder, if still known.
    pub process: Option<u32>,
    /// Time at which the holder joined the store: usually, when its process was launched.
    pub joined_at: Option<UnixMillis>,
    /// Time of the last claim.
    pub held_since: UnixMillis,
    /// Time of the holder's last renewal, if still known.
    pub renewed_at: Option<UnixMillis>,
    /// Whether a live member holds the slot.
    pub live: bool,
    /// Whether the slot is excluded, for ever or until a time, and nothing has claimed it since.
    /// Through servers: only whether it is excluded for ever.
    pub kept_away: bool,
}

impl SlotInfo {
    /// Returns whether the slot is excluded forever.
    #[must_use]
    pub fn is_excluded(&self) -> bool {
        self.mark == Mark::MAX
    }
}

/// Returns the data of a row for lists; `holder` is the known data of its holder.
#[must_use]
pub fn slot_info(pool: &str, row: &SlotRow, holder: Option<&MemberInfo>) -> SlotInfo {
    SlotInfo {
        pool: pool.to_owned(),
        slot: row.slot,
        term: row.term,
        mark: row.mark,
        owner: row.owner.clone(),
        holder: row.holder,
        host: holder.map(|info| info.member.host.clone()),
        process: holder.map(|info| info.member.process),
        joined_at: holder.map(|info| info.joined_at),
        held_since: row.held_since,
        renewed_at: holder.map(|info| info.renewed_at),
        live: holder.is_some_and(|info| info.live),
        kept_away: row.is_kept_away(),
    }
}
