//! State of the driver, and the results of its tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::super::command::DriverCommand;
use super::super::compare::ClockCheck;
use super::super::join::{ClaimLeftovers, NewMember};
use super::super::journal_writer::{JournalWriter, Written};
use super::super::lease::{ActiveLease, LeaseKey};
use super::super::source_info::ReadCatalog;
use super::super::state::NodeState;
use super::super::store_knowledge::StoreFingerprint;
use super::global_order::GlobalOrderSources;
use super::leak_audit::LeakAudit;
use super::pending::PendingReleases;
use crate::error::{Error, Result};
use crate::ids::{Incarnation, Mark, Term};
use crate::journal::{Disk, JournalLease};
use crate::machine::{Granted, Now, PresenceMachine, SectionsMachine, Serving};
use crate::model::exclusive::Acquired;
use crate::model::history::Standing;
use crate::model::lease::{Extend, Extended, Release};
use crate::model::member::{Member, MemberInfo};
use crate::model::slot::SlotInfo;

/// Result of a task.
pub(super) enum Completion {
    Joined(Result<NewMember>),
    Renewed(Incarnation, Result<()>),
    ClockChecked(Result<ClockCheck>),
    Claimed {
        key: LeaseKey,
        member: Incarnation,
        request: u64,
        result: Result<Vec<Granted>>,
        left: ClaimLeftovers,
    },
    Extended {
        member: Incarnation,
        items: Vec<(LeaseKey, Extend)>,
        results: Vec<Result<Extended>>,
    },
    Journal(Written),
    /// Catalog, read as this member.
    Catalog(Incarnation, Result<ReadCatalog>),
    /// Pending releases that are done.
    Released(Vec<Release>),
    /// Slots and their holders, read as this member.
    Listed(Incarnation, Result<Vec<SlotInfo>>),
    /// Result about sections, for a call as this member.
    Sections(Incarnation, SectionsDone),
    /// Journals of the store.
    Standing(Result<Standing>),
    /// A task ended in a way that only a panic explains.
    Failed(Error),
}

/// Result that waits for a write of the journal.
pub(super) struct UnwrittenSections {
    /// Number of the write.
    pub(super) write: u64,
    pub(super) member: Incarnation,
    pub(super) done: SectionsDone,
}

/// Result of a task for sections.
pub(super) enum SectionsDone {
    Acquired(u64, Result<Acquired>),
    Extended(Vec<Extend>, Vec<Result<Extended>>),
    Relinquished(Vec<(u64, Term)>, Result<()>),
    Listed(Result<Vec<MemberInfo>>),
    /// Announcement of this revision of the node's status.
    Announced(u64, Result<()>),
}

/// Stage of the node's membership.
#[derive(Debug)]
pub(super) enum Stage {
    /// Not joined: the time of the next attempt, and how many attempts have failed.
    Out {
        retry_at_ms: u64,
        failures: u32,
        error: Option<Error>,
    },
    /// An attempt is under way: how many have failed before, and the error of the last one, which
    /// stays the reason until this one has ended.
    Joining {
        failures: u32,
        error: Option<Error>,
    },
    In {
        member: Member,
        presence: PresenceMachine,
    },
}

impl Stage {
    /// Returns the milliseconds until the next join or renewal.
    pub(super) fn next_poll_ms(&self, now: Now) -> Option<u64> {
        match self {
            Self::Out { retry_at_ms, .. } => Some(retry_at_ms.saturating_sub(now.elapsed.get())),
            Self::Joining { .. } => None,
            Self::In { presence, .. } => presence.next_poll_ms(now),
        }
    }
}

/// Error of this machine's clock, by the check that found it: the same check ends it.
pub(super) enum ClockFault {
    /// The clock differs from a better one.
    Disagrees(Error),
    /// The clock stepped ahead of the time that has passed.
    Jumped(Error),
}

impl ClockFault {
    pub(super) const fn error(&self) -> &Error {
        match self {
            Self::Disagrees(error) | Self::Jumped(error) => error,
        }
    }
}

/// Step of the hand-over that is under way, and the caller that waits for it. A caller that has
/// stopped waiting needs no reply.
#[derive(Debug)]
pub(super) enum Departure {
    /// The store is to know that this node serves nothing.
    Announces(oneshot::Sender<bool>),
    /// No section that a peer serves is to be left.
    HandsOver(oneshot::Sender<()>),
}

pub(in crate::node) struct Driver {
    pub(super) core: Arc<NodeState>,
    pub(super) commands: mpsc::Receiver<DriverCommand>,
    pub(super) tasks: JoinSet<Completion>,
    pub(super) stage: Stage,
    pub(super) fingerprint: StoreFingerprint,
    pub(super) clock_fault: Option<ClockFault>,
    pub(super) leases: BTreeMap<LeaseKey, ActiveLease>,
    /// Knowledge about slots that no generator of this node mints from any more.
    pub(super) past: Vec<JournalLease>,
    /// Highest mark of the leases that have ended, including those that are not kept.
    pub(super) past_mark: Mark,
    /// Previous member of this process, which has certainly stopped minting.
    pub(super) before: Option<Incarnation>,
    pub(super) journal_writer: JournalWriter,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) clock_compared_at_ms: u64,
    pub(super) catalog_busy: bool,
    pub(super) catalog_read_at_ms: u64,
    /// History of the store for which the journals were last requested.
    pub(super) journals_of: String,
    pub(super) pending_releases: PendingReleases,
    pub(super) leaks: LeakAudit,
    pub(super) sections: SectionsMachine,
    pub(super) unwritten: Vec<UnwrittenSections>,
    pub(super) serving: Serving,
    pub(super) departure: Option<Departure>,
    pub(super) global_order: GlobalOrderSources,
    /// Number of the present membership.
    pub(super) membership: u64,
}
