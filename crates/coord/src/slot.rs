//! Slots as lists show them.

use snowmint_core::UnixMillis;

use crate::lease::{Mark, SlotRow, Term};
use crate::member::{Incarnation, MemberInfo};

/// A slot for people to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotInfo {
    /// The pool's name.
    pub pool: String,
    /// The slot.
    pub slot: u64,
    /// The newest term.
    pub term: Term,
    /// The mark.
    pub mark: Mark,
    /// The owner label of the last claim.
    pub owner: String,
    /// Who holds it, if anybody does.
    pub holder: Option<Incarnation>,
    /// The holder's host, as far as it is still known.
    pub host: Option<String>,
    /// The holder's process, as far as it is still known.
    pub process: Option<u32>,
    /// When the holder joined the store: as a rule, when its process was launched.
    pub joined_at: Option<UnixMillis>,
    /// When it was last claimed.
    pub held_since: UnixMillis,
    /// When its holder last renewed, as far as it is still known.
    pub renewed_at: Option<UnixMillis>,
    /// Whether a live member holds it.
    pub live: bool,
}

impl SlotInfo {
    /// Whether nobody can ever have it.
    #[must_use]
    pub fn is_avoided(&self) -> bool {
        self.mark == Mark::MAX
    }
}

/// A row as people read it; `holder` is what is known of the row's holder.
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
    }
}
