//! Planted bugs, which the simulation must find: a store that decides wrongly in exactly one way.
//! (Some belong to other places: the journal's is in [`disk`](super::disk), that of a lease in
//! [`network`](super::network), that of a batch in [`forwarding`](super::forwarding).)

use std::collections::BTreeMap;

use snowmint_coord::recovery::Reports;
use snowmint_coord::{
    Acquire, Acquired, ClaimRequest, Definition, Extend, Extended, GiveBack, Known, Lease, Mark,
    MemberInfo, Preference, Presence, Release, Reserve, Result, Segment, SlotRow, StalledMember,
    Standing,
};
use snowmint_core::UnixMillis;

use super::density::STEP_MIN;
use super::oracle::Oracle;
use super::sources::{NUMBERS, STRIPED};
use super::store::SimStore;
use crate::history::{Check, ProcessLife, Resource};

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Extends and releases are applied for any term, and so for any member.
    SkipTheTermCheck,
    /// An extend is applied wherever the mark is.
    ExtendWithoutComparingFrom,
    /// A member with the owner's name shares the owner's lease.
    SameOwnerSharesALease,
    /// A release names the last tick taken, not the one after.
    ReleaseWithTheLastTick,
    /// The journal reports a mark as written before it is on disk.
    JournalAfterMinting,
    /// A claim begins at the claimer's wall clock, not at the mark.
    ClaimAtTheRequestersClock,
    /// The next generator of an owner's slot begins at the floor of the previous window.
    RebuiltAtTheWindowsFloor,
    /// Marks are kept in whole seconds.
    MarkInACoarserUnit,
    /// An exclusive slot is acquired from its holder without a wait.
    AcquireWithoutWaiting,
    /// The same owner's slots are taken without a wait, as if a process had one life.
    SameOwnerSkipsTheWait,
    /// A member that looks dead by a wall clock, the store's or the acquirer's, is succeeded at
    /// once.
    AcquireByAWallClock,
    /// The time that measures a lease stops while the process is frozen.
    ElapsedTimeWithoutSleep,
    /// A slot is acquired at a number below those that its last holder may have returned.
    AcquiredAtThePreviousFloor,
    /// A process that gives up its worker number does not write it to its journal first, and the
    /// next one continues without the store.
    ReleaseUnwritten,
    /// Numbers that a node had prefetched when it ended return to the store, and also go into its
    /// journal.
    TailReturnedAndJournalled,
    /// A holder counts its lease from the reply to a renewal, not from before it sent the renewal.
    LeaseFromTheReply,
    /// Surplus IDs of a call to another server go to later requests.
    SurplusToALaterRequest,
    /// A call to the store waits without an end.
    CallWithoutAnEnd,
    /// Sources that keep their order after a clock step back are defined to go back with the clock.
    PolicyForgotten,
    /// A reserve counts as a repeat of the previous one if it requests as many numbers, from any
    /// caller.
    ReserveMistakenForARepeat,
    /// The store skips a number with each reserve.
    NumberSkipped,
    /// The last number of a batch reaches no caller, and is not counted as lost.
    NumberLostOnTheWay,
    /// The store reports a larger step than the source was given.
    StepTooLarge,
    /// A former member looks live for ever.
    MemberNeverForgotten,
    /// The elapsed clocks of some machines are a third slow, which no margin allows for.
    ElapsedTimeBeyondTheMargin,
    /// An acquire states that the holder is stalled, and the store believes it, although the holder
    /// has renewed since.
    AcquireWithoutComparingRenewals,
    /// No handle compares the store at its address with the one that it has seen.
    AnotherStoreUnnoticed,
    /// A promoted replica is written to.
    AnotherServerUnnoticed,
    /// Recall always confirms that the store has all that the caller has seen.
    RecallForgets,
    /// A store in doubt keeps no reports of journals.
    ReportsForgotten,
    /// Journals report how far the numbers of sources have come, and not the IDs that these became.
    IdsUnreported,
    /// An operator counts the reports of an earlier doubt that a restore has brought back.
    ReportsOfAnOldDoubt,
    /// An operator raises some values of a store that no process has found to lack anything, and
    /// this counts as its recovery.
    ValuesRaisedAsARecovery,
    /// A server that counts numbers does not compare the store's identity.
    CountedInAnotherStore,
    /// A batch that writes one slot does not compare its version: a cached row is never stale.
    CachedRowsNotCompared,
    /// A batch does not compare the store's own key.
    StoreKeyNotCompared,
}

impl Bug {
    /// All bugs, each with the check that must find it.
    pub const ALL: [(Self, Check); 36] = [
        (Self::SkipTheTermCheck, Check::Mark),
        (Self::ExtendWithoutComparingFrom, Check::Mark),
        (Self::SameOwnerSharesALease, Check::Unique),
        (Self::ReleaseWithTheLastTick, Check::Mark),
        (Self::JournalAfterMinting, Check::Window),
        (Self::ClaimAtTheRequestersClock, Check::Mark),
        (Self::RebuiltAtTheWindowsFloor, Check::Window),
        (Self::MarkInACoarserUnit, Check::Mark),
        (Self::AcquireWithoutWaiting, Check::GlobalOrder),
        (Self::SameOwnerSkipsTheWait, Check::Healing),
        (Self::AcquireByAWallClock, Check::Counters),
        (Self::ElapsedTimeWithoutSleep, Check::Counters),
        (Self::AcquiredAtThePreviousFloor, Check::Counters),
        (Self::ReleaseUnwritten, Check::Window),
        (Self::TailReturnedAndJournalled, Check::Unique),
        (Self::LeaseFromTheReply, Check::Counters),
        (Self::SurplusToALaterRequest, Check::GlobalOrder),
        (Self::CallWithoutAnEnd, Check::Bound),
        (Self::PolicyForgotten, Check::Increasing),
        (Self::ReserveMistakenForARepeat, Check::Promise),
        (Self::NumberSkipped, Check::Dense),
        (Self::NumberLostOnTheWay, Check::Account),
        (Self::StepTooLarge, Check::Waste),
        (Self::MemberNeverForgotten, Check::Healing),
        (Self::ElapsedTimeBeyondTheMargin, Check::Counters),
        (Self::AcquireWithoutComparingRenewals, Check::Counters),
        (Self::AnotherStoreUnnoticed, Check::Rejection),
        (Self::AnotherServerUnnoticed, Check::Rejection),
        (Self::RecallForgets, Check::Rejection),
        (Self::ReportsForgotten, Check::Mark),
        (Self::IdsUnreported, Check::Unique),
        (Self::ReportsOfAnOldDoubt, Check::Mark),
        (Self::ValuesRaisedAsARecovery, Check::Rejection),
        (Self::CountedInAnotherStore, Check::Rejection),
        (Self::CachedRowsNotCompared, Check::Promise),
        (Self::StoreKeyNotCompared, Check::Rejection),
    ];

    /// Returns the check that must find the bug.
    ///
    /// # Panics
    /// Never: each bug has a check.
    #[must_use]
    pub fn found_by(self) -> Check {
        Self::ALL.into_iter().find(|(bug, _)| *bug == self).unwrap().1
    }

    /// Returns whether the bug is planted in keys. The others are planted over rows, where a step
    /// runs alone, so that no other step sees the wrong state.
    pub(super) const fn is_of_keys(self) -> bool {
        matches!(
            self,
            Self::CountedInAnotherStore | Self::CachedRowsNotCompared | Self::StoreKeyNotCompared
        )
    }
}

const COARSE_MS: u64 = 1_000;

fn coarse(mark: Mark) -> Mark {
    Mark::new(mark.get() / COARSE_MS * COARSE_MS)
}

fn edit(store: &dyn SimStore, pool: &str, slot: u64, change: impl FnOnce(&mut SlotRow)) {
    if let Some(mut row) = store.row(pool, slot) {
        change(&mut row);
        store.put_row(pool, row);
    }
}

/// Extends one item as a store with this bug does.
pub(super) async fn extend(
    store: &dyn SimStore,
    bug: Option<Bug>,
    item: &Extend,
    now: UnixMillis,
) -> Result<Extended> {
    let mut item = item.clone();
    let before = store.row(&item.pool, item.slot);
    match (bug, &before) {
        (Some(Bug::SkipTheTermCheck), Some(row)) => (item.term, item.holder) = (row.term, None),
        (Some(Bug::ExtendWithoutComparingFrom), Some(row))
            if row.term == item.term && row.extend_request != item.request =>
        {
            edit(store, &item.pool, item.slot, |row| {
                (row.mark, row.extend_request) = (item.to, item.request);
            });
            let writes = store.identity().await?.writes;
            return Ok(Extended { mark: item.to, catalog_version: 0, writes });
        }
        (Some(Bug::MarkInACoarserUnit), Some(row)) if coarse(item.from) == coarse(row.mark) => {
            item.from = row.mark;
        }
        _ => {}
    }
    let extended = store.extend(std::slice::from_ref(&item), now).await?.remove(0)?;
    if bug == Some(Bug::MarkInACoarserUnit) {
        edit(store, &item.pool, item.slot, |row| row.mark = coarse(row.mark).max(row.floor));
    }
    Ok(extended)
}

/// Releases as a store with this bug does.
pub(super) async fn release(
    store: &dyn SimStore,
    bug: Option<Bug>,
    release: &Release,
    now: UnixMillis,
) -> Result<()> {
    let mut release = release.clone();
    if let Some(row) = store.row(&release.pool, release.slot) {
        let mark = match bug {
            Some(Bug::SkipTheTermCheck) => {
                (release.term, release.holder) = (row.term, None);
                release.mark
            }
            Some(Bug::ReleaseWithTheLastTick) => Mark::new(release.mark.get().saturating_sub(1)),
            Some(Bug::MarkInACoarserUnit) => coarse(release.mark),
            _ => release.mark,
        };
        release.mark = mark.max(row.floor.min(release.mark));
    }
    store.release(&release, now).await
}

/// Claims as a store with this bug does.
pub(super) async fn claim(
    store: &dyn SimStore,
    bug: Option<Bug>,
    request: &ClaimRequest,
    now: UnixMillis,
) -> Result<Vec<Lease>> {
    if bug.is_none() {
        return store.claim(request, now).await;
    }
    let pool = &request.pool.name;
    let before = store.rows(pool);
    let owned = |row: &&SlotRow| !request.owner.is_empty() && row.owner == request.owner;
    match bug {
        Some(Bug::SameOwnerSharesALease) if request.preference == Preference::LastOfOwner => {
            let held = |row: &&SlotRow| row.holder.is_some_and(|holder| holder != request.member);
            let shared: Vec<_> = before.iter().filter(owned).filter(held).cloned().collect();
            let group = usize::try_from(request.pool.group).unwrap();
            if !shared.is_empty() && shared.len().is_multiple_of(group) {
                return Ok(snowmint_coord::pool::leases(pool, &shared[..group]));
            }
            store.claim(request, now).await
        }
        Some(Bug::ClaimAtTheRequestersClock) => {
            let request = ClaimRequest { mark_at_most: Mark::MAX, ..request.clone() };
            let mut leases = store.claim(&request, now).await?;
            for lease in leases.iter_mut().filter(|lease| lease.mark > Mark::from(now)) {
                (lease.floor, lease.mark) = (Mark::from(now), Mark::from(now));
                edit(store, pool, lease.slot, |row| {
                    (row.floor, row.mark) = (lease.floor, lease.mark);
                });
            }
            Ok(leases)
        }
        Some(Bug::RebuiltAtTheWindowsFloor) => {
            let mut leases = store.claim(request, now).await?;
            for lease in &mut leases {
                let last = before.iter().filter(owned).find(|row| row.slot == lease.slot);
                if let Some(last) = last.filter(|last| last.floor < lease.floor) {
                    lease.floor = last.floor;
                    edit(store, pool, lease.slot, |row| row.floor = last.floor);
                }
            }
            Ok(leases)
        }
        _ => store.claim(request, now).await,
    }
}

/// Acquires as a store with this bug does.
pub(super) async fn acquire(
    store: &dyn SimStore,
    bug: Option<Bug>,
    acquire: &Acquire,
    now: UnixMillis,
) -> Result<Acquired> {
    if bug.is_none() {
        return store.acquire(acquire, now).await;
    }
    let mut acquire = acquire.clone();
    let members = store.members(now).await?;
    let named: Vec<_> = acquire.stalled.iter().map(|stalled| stalled.member).collect();
    let mut ignore = |is_gone: &dyn Fn(&MemberInfo) -> bool| {
        let gone = members.iter().filter(|info| is_gone(info));
        acquire.stalled = gone
            .map(|info| StalledMember {
                member: info.member.incarnation,
                renewals: info.presence.renewals,
            })
            .collect();
    };
    match bug {
        Some(Bug::AcquireWithoutWaiting) => ignore(&|_| true),
        Some(Bug::AcquireWithoutComparingRenewals) => {
            ignore(&|info| named.contains(&info.member.incarnation));
        }
        Some(Bug::SameOwnerSkipsTheWait) => {
            let owner = acquire.owner.clone();
            ignore(&|info| !owner.is_empty() && info.member.owner == owner);
        }
        Some(Bug::AcquireByAWallClock) => ignore(&|info| !info.live),
        _ => {}
    }
    let before = store.rows(&acquire.pool.name);
    let mut taken = store.acquire(&acquire, now).await?;
    if bug == Some(Bug::AcquiredAtThePreviousFloor) {
        for lease in &mut taken.leases {
            let last = before.iter().find(|row| row.slot == lease.slot);
            lease.floor = last.map_or(lease.floor, |row| row.floor.min(lease.floor));
        }
    }
    Ok(taken)
}

/// Returns a definition as a store with this bug reports it.
pub(super) fn defined(bug: Option<Bug>, mut found: Definition) -> Definition {
    match bug {
        // Other processes seem to have reserved since, and the node that ends keeps its tail in the
        // journal.
        Some(Bug::TailReturnedAndJournalled) => found.segment.version += 1,
        Some(Bug::PolicyForgotten) if found.spec.contains("on_rollback") => {
            for policy in ["hold", "fail", "wait", "borrow"] {
                let (original, replacement) = (format!("\"{policy}\""), "\"ring\"");
                found.spec = found.spec.replace(&original, replacement);
            }
        }
        Some(Bug::PolicyForgotten) if found.name == "hold" => {
            found.spec = format!(r#"{{"on_rollback":"ring",{}"#, &found.spec[1..]);
        }
        Some(Bug::StepTooLarge) if found.name == NUMBERS => {
            let original = format!("\"min\":{STEP_MIN}");
            found.spec = found.spec.replace(&original, "\"min\":500");
        }
        _ => {}
    }
    found
}

/// Returns a presence as a store with this bug keeps it.
pub(super) const fn presence(bug: Option<Bug>, original: Presence) -> Presence {
    match bug {
        Some(Bug::MemberNeverForgotten) => Presence { ttl_ms: original.ttl_ms * 1_000, ..original },
        _ => original,
    }
}

/// Reserves as a store with this bug does.
pub(super) async fn reserve(
    store: &dyn SimStore,
    bug: Option<Bug>,
    reserve: &Reserve,
) -> Result<Segment> {
    if bug == Some(Bug::NumberSkipped) {
        store.reserve(&Reserve { length: 1, ..reserve.clone() }).await?;
    }
    if bug == Some(Bug::ReserveMistakenForARepeat) {
        let row = store.get(&reserve.source).await?.segment;
        if row.mark.get() - row.floor.get() == reserve.length {
            let (catalog, identity) = (store.list().await?, store.identity().await?);
            return Ok(row.taken(catalog.version, identity.writes));
        }
    }
    store.reserve(reserve).await
}

/// Returns the part of a report that a store with this bug keeps.
pub(super) fn reported(bug: Option<Bug>, known: Option<&Known>) -> Option<Known> {
    let known = known?;
    Some(match bug {
        Some(Bug::ReportsForgotten) => Known::default(),
        Some(Bug::IdsUnreported) => Known { ids: BTreeMap::new(), ..known.clone() },
        _ => known.clone(),
    })
}

/// Returns the reports that an operator counts, who has looked before.
pub(super) fn reports(bug: Option<Bug>, before: &Standing, after: Standing) -> Reports {
    let mut before = before.clone();
    if bug == Some(Bug::ReportsOfAnOldDoubt) {
        before.journals.clear();
    }
    Reports::between(&before, after)
}

/// Returns whether a move to some values is no recovery.
pub(super) fn raises_values_only(bug: Option<Bug>) -> bool {
    bug != Some(Bug::ValuesRaisedAsARecovery)
}

/// Models a member that leaves a store with this bug: the tail that it kept is given back, too.
pub(super) async fn leave(
    store: &dyn SimStore,
    bug: Option<Bug>,
    oracle: &Oracle,
    process_life: ProcessLife,
) {
    if bug != Some(Bug::TailReturnedAndJournalled) {
        return;
    }
    let mut stored = store.list().await.unwrap().definitions;
    // The IDs of this source do not show which of its numbers were used.
    stored.retain(|source| source.name != STRIPED);
    for Definition { name, segment, .. } in stored {
        let resource = Resource::Numbers(name.clone());
        if let Some(first) = oracle.unused(&resource, segment.mark.get(), process_life) {
            let (first, last) = (first.max(segment.floor.get()), segment.mark.get() - 1);
            let back = GiveBack { source: name, first, last, version: segment.version };
            if first <= last && store.give_back(&back).await.is_ok() {
                oracle.moved(&resource).await;
            }
        }
    }
}
