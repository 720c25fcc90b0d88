//! Parts of the model of slots.

use std::collections::BTreeSet;

use snowmint_coord::{Incarnation, Mark, Member, MemberInfo, Presence, SlotRow, Term};
use snowmint_core::UnixMillis;

pub(super) const PROCESSES: usize = 2;
pub(super) const POOL: &str = "workers";

/// A wrong decision, which the model must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Extends and releases are applied for any term.
    SkipTheTermCheck,
    /// An extend is applied wherever the mark is.
    ExtendWithoutComparingFrom,
    /// A release names the last tick taken, not the one after.
    ReleaseWithTheLastTick,
}

/// Bounds of the model.
#[derive(Clone, Debug)]
pub(crate) struct Leases {
    /// `None` in the real world.
    pub(crate) flaw: Option<Flaw>,
    pub(crate) slots: u64,
    /// Highest mark.
    pub(crate) ticks: u64,
    /// Number of all requests.
    pub(crate) requests: u64,
    /// Highest term, which limits how often a slot changes hands.
    pub(crate) terms: u64,
    /// Number of lives of a process.
    pub(crate) lives: u64,
    /// Whether a process remembers over its death up to where it may have minted.
    pub(crate) journal: bool,
}

/// Part of a slot's row that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(super) slot: u64,
    pub(super) term: Term,
    pub(super) floor: Mark,
    pub(super) mark: Mark,
    pub(super) holder: Option<Incarnation>,
    pub(super) claim_request: u64,
    pub(super) extend_request: u64,
}

impl Row {
    pub(super) fn of(row: &SlotRow) -> Self {
        Self {
            slot: row.slot,
            term: row.term,
            floor: row.floor,
            mark: row.mark,
            holder: row.holder,
            claim_request: row.claim_request,
            extend_request: row.extend_request,
        }
    }

    pub(super) fn whole(&self) -> SlotRow {
        SlotRow {
            slot: self.slot,
            term: self.term,
            floor: self.floor,
            mark: self.mark,
            holder: self.holder,
            owner: String::new(),
            claim_request: self.claim_request,
            extend_request: self.extend_request,
            held_since: UnixMillis::ZERO,
            given_up_at: UnixMillis::ZERO,
        }
    }
}

/// A lease as its process sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HeldLease {
    pub(super) slot: u64,
    pub(super) term: Term,
    /// Start of its generator.
    pub(super) floor: u64,
    pub(super) lease_floor: Mark,
    /// Mark that the store acknowledged.
    pub(super) mark: Mark,
    /// End of everything minted.
    pub(super) used: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(super) life: u64,
    /// Request in flight.
    pub(super) waiting: Option<u64>,
    pub(super) held: Option<HeldLease>,
    /// Slot, term, and a mark at and above which nothing was minted.
    pub(super) journal: Option<(u64, Term, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Message {
    Claim { request: u64, member: Incarnation, supersedes: Option<Incarnation> },
    Extend { request: u64, slot: u64, term: Term, from: Mark, to: Mark },
    Release { slot: u64, term: Term, mark: Mark },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Response {
    Claimed {
        request: u64,
        slot: u64,
        term: Term,
        floor: Mark,
        mark: Mark,
    },
    Extended {
        request: u64,
        mark: Mark,
    },
    /// The lease is over.
    Lost {
        request: u64,
    },
}

impl Response {
    pub(super) const fn request(&self) -> u64 {
        match self {
            Self::Claimed { request, .. }
            | Self::Extended { request, .. }
            | Self::Lost { request } => *request,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(super) rows: Vec<Row>,
    pub(super) processes: Vec<Process>,
    pub(super) sent: BTreeSet<Message>,
    pub(super) responses: BTreeSet<Response>,
    pub(super) requests: u64,
    /// Slot, tick and minter.
    pub(super) minted: BTreeSet<(u64, u64, usize)>,
    pub(super) twice: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Claim(usize),
    Extend {
        process: usize,
        by: u64,
    },
    Release(usize),
    Mint {
        process: usize,
        tick: u64,
    },
    /// The process dies and begins its next life. Its journal holds this mark.
    Die {
        process: usize,
        journal: u64,
    },
    /// A message arrives, while other members look live or not.
    Arrive {
        message: Message,
        others_live: bool,
    },
    Hear {
        process: usize,
        response: Response,
    },
}

pub(super) fn incarnation(process: usize, life: u64) -> Incarnation {
    Incarnation::new(process as u128 * 100 + u128::from(life))
}

pub(super) fn members(live: impl Fn(Incarnation) -> bool, lives: u64) -> Vec<MemberInfo> {
    let all = (0..PROCESSES).flat_map(|process| (1..=lives).map(move |life| (process, life)));
    let info = |(process, life)| {
        let incarnation = incarnation(process, life);
        MemberInfo {
            member: Member {
                incarnation,
                owner: String::new(),
                host: String::new(),
                process: 0,
                address: String::new(),
            },
            presence: Presence { sample: UnixMillis::ZERO, renewals: 0, ttl_ms: 1_000 },
            joined_at: UnixMillis::ZERO,
            renewed_at: UnixMillis::ZERO,
            live: live(incarnation),
            status: snowmint_coord::MemberStatus::default(),
        }
    };
    all.map(info).collect()
}
