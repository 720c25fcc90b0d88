//! Bugs that are planted to see whether the simulation finds them: a store that decides wrongly in
//! exactly one way. (Where else they belong: the journal's is in [`disk`](super::disk), that of a lease in
//! [`network`](super::network), that of a batch in [`passing`](super::passing).)

use std::collections::BTreeMap;

use snowmint_coord::{
    ClaimRequest, Definition, Extend, Extended, GiveBack, Known, Lease, Mark, MemberInfo, Presence,
    Release, Reserve, Result, Segment, Silent, SlotRow, Take, Taken, Wish,
};
use snowmint_core::UnixMillis;

use super::dense::STEP_MIN;
use super::sources::{NUMBERS, STRIPED};
use super::store::SimStore;
use super::truth::Truth;
use crate::history::{Check, Party, Right};

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Extends and releases are done for any term, and so for anybody.
    SkipTheTermCheck,
    /// An extend is done wherever the mark is.
    ExtendWithoutComparingFrom,
    /// Who has the owner's name shares the owner's lease.
    SameOwnerSharesALease,
    /// A release names the last tick taken, not the one after.
    ReleaseWithTheLastTick,
    /// The journal says that it is on disk before it is.
    JournalAfterMinting,
    /// A claim begins at the claimer's wall clock, not at the mark.
    TakeOverByTheRequestersClock,
    /// The next generator of an owner's slot begins at the floor of the window before.
    RebuiltAtTheWindowsFloor,
    /// Marks are kept in whole seconds.
    MarkInACoarserUnit,
    /// What one at a time answers for is taken from whoever has it, without a wait.
    TakeWithoutWaiting,
    /// The same owner's slots are taken without a wait, as if a process had one life.
    SameOwnerSkipsTheWait,
    /// Who looks dead by a wall clock, the store's or the taker's, is followed at once.
    TakeOverByAWallClock,
    /// The time that a lease is measured by stands still while the process does.
    ElapsedTimeWithoutSleep,
    /// What was taken begins below what its last holder may have answered.
    TakenAtTheFloorBefore,
    /// A process that gives its number up does not write so in its journal before it says so, and the
    /// next one goes on without the store.
    ReleaseUnwritten,
    /// What a node had in stock when it ended goes back to the store, and into its journal.
    TailReturnedAndJournalled,
    /// A holder counts its lease from the answer to a renewal, not from before it sent the renewal.
    LeaseFromTheAnswer,
    /// What a question to another server brought beyond need is given to whoever comes later.
    SurplusToALaterRequest,
    /// Whoever waits for a call to the store waits without an end.
    CallWithoutAnEnd,
    /// Sources that keep their order when the clock goes back are told to go back with it.
    PolicyForgotten,
    /// A reserve is taken for a repeat of the one before it, if it asks for as many, whoever asks.
    ReserveTakenForARepeat,
    /// The store skips a number with each reserve.
    NumberSkipped,
    /// The last number of an answer reaches nobody, and nobody counts it as lost.
    NumberLostOnTheWay,
    /// The store tells of a larger step than the source was given.
    StepTooLarge,
    /// Whoever was a member once looks live for ever.
    NobodyIsForgotten,
    /// The elapsed clocks of some machines are a third slow, which no margin allows for.
    ElapsedTimeBeyondTheMargin,
    /// A take believes its taker that the holder is silent, although that has renewed since.
    TakeWithoutComparingRenewals,
    /// No handle compares which store its address leads to.
    AnotherStoreUnnoticed,
    /// A replica that took over is written to.
    AnotherServerUnnoticed,
    /// Whoever asks whether the store has all that they have seen is told that it has.
    RecallForgets,
    /// What journals report of a store in doubt is not kept.
    ReportsForgotten,
    /// Journals report how far the numbers of sources have come, and not which IDs these have become.
    IdsUnreported,
    /// A server that counts numbers does not compare the store's identity.
    CountedInAnotherStore,
    /// A batch that writes one slot does not compare its version: a row that a handle knows is never stale.
    KnownRowsNotCompared,
    /// A batch does not compare the store's own key.
    StoreKeyNotCompared,
}

impl Bug {
    /// All of them, each with the check that must find it.
    pub const ALL: [(Self, Check); 34] = [
        (Self::SkipTheTermCheck, Check::Mark),
        (Self::ExtendWithoutComparingFrom, Check::Mark),
        (Self::SameOwnerSharesALease, Check::Unique),
        (Self::ReleaseWithTheLastTick, Check::Mark),
        (Self::JournalAfterMinting, Check::Window),
        (Self::TakeOverByTheRequestersClock, Check::Mark),
        (Self::RebuiltAtTheWindowsFloor, Check::Window),
        (Self::MarkInACoarserUnit, Check::Mark),
        (Self::TakeWithoutWaiting, Check::GlobalOrder),
        (Self::SameOwnerSkipsTheWait, Check::Healing),
        (Self::TakeOverByAWallClock, Check::Counters),
        (Self::ElapsedTimeWithoutSleep, Check::Counters),
        (Self::TakenAtTheFloorBefore, Check::Counters),
        (Self::ReleaseUnwritten, Check::Window),
        (Self::TailReturnedAndJournalled, Check::Unique),
        (Self::LeaseFromTheAnswer, Check::Counters),
        (Self::SurplusToALaterRequest, Check::GlobalOrder),
        (Self::CallWithoutAnEnd, Check::Bound),
        (Self::PolicyForgotten, Check::Increasing),
        (Self::ReserveTakenForARepeat, Check::Promise),
        (Self::NumberSkipped, Check::Dense),
        (Self::NumberLostOnTheWay, Check::Account),
        (Self::StepTooLarge, Check::Waste),
        (Self::NobodyIsForgotten, Check::Healing),
        (Self::ElapsedTimeBeyondTheMargin, Check::Counters),
        (Self::TakeWithoutComparingRenewals, Check::Counters),
        (Self::AnotherStoreUnnoticed, Check::Refusal),
        (Self::AnotherServerUnnoticed, Check::Refusal),
        (Self::RecallForgets, Check::Refusal),
        (Self::ReportsForgotten, Check::Mark),
        (Self::IdsUnreported, Check::Unique),
        (Self::CountedInAnotherStore, Check::Refusal),
        (Self::KnownRowsNotCompared, Check::Promise),
        (Self::StoreKeyNotCompared, Check::Refusal),
    ];

    /// The check that must find it.
    ///
    /// # Panics
    /// Never: all of them have one.
    #[must_use]
    pub fn found_by(self) -> Check {
        Self::ALL.into_iter().find(|(bug, _)| *bug == self).unwrap().1
    }

    /// Whether the bug is planted in keys. The others are planted over rows, where a step has them to itself, so that no
    /// other step falls into what is done wrongly.
    pub(super) const fn is_of_keys(self) -> bool {
        matches!(
            self,
            Self::CountedInAnotherStore | Self::KnownRowsNotCompared | Self::StoreKeyNotCompared
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

/// An extend of one item by a store with this bug.
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
    let answer = store.extend(std::slice::from_ref(&item), now).await?.remove(0)?;
    if bug == Some(Bug::MarkInACoarserUnit) {
        edit(store, &item.pool, item.slot, |row| row.mark = coarse(row.mark).max(row.floor));
    }
    Ok(answer)
}

/// A release by a store with this bug.
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

/// A claim on a store with this bug.
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
        Some(Bug::SameOwnerSharesALease) if request.wish == Wish::LastOfOwner => {
            let held = |row: &&SlotRow| row.holder.is_some_and(|holder| holder != request.member);
            let shared: Vec<_> = before.iter().filter(owned).filter(held).cloned().collect();
            let group = usize::try_from(request.pool.group).unwrap();
            if !shared.is_empty() && shared.len().is_multiple_of(group) {
                return Ok(snowmint_coord::pool::leases(pool, &shared[..group]));
            }
            store.claim(request, now).await
        }
        Some(Bug::TakeOverByTheRequestersClock) => {
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

/// A take from a store with this bug.
pub(super) async fn take(
    store: &dyn SimStore,
    bug: Option<Bug>,
    take: &Take,
    now: UnixMillis,
) -> Result<Taken> {
    if bug.is_none() {
        return store.take(take, now).await;
    }
    let mut take = take.clone();
    let members = store.members(now).await?;
    let named: Vec<_> = take.silent.iter().map(|silent| silent.member).collect();
    let mut ignore = |is_gone: &dyn Fn(&MemberInfo) -> bool| {
        let gone = members.iter().filter(|info| is_gone(info));
        take.silent = gone
            .map(|info| Silent {
                member: info.member.incarnation,
                renewals: info.presence.renewals,
            })
            .collect();
    };
    match bug {
        Some(Bug::TakeWithoutWaiting) => ignore(&|_| true),
        Some(Bug::TakeWithoutComparingRenewals) => {
            ignore(&|info| named.contains(&info.member.incarnation));
        }
        Some(Bug::SameOwnerSkipsTheWait) => {
            let owner = take.owner.clone();
            ignore(&|info| !owner.is_empty() && info.member.owner == owner);
        }
        Some(Bug::TakeOverByAWallClock) => ignore(&|info| !info.live),
        _ => {}
    }
    let before = store.rows(&take.pool.name);
    let mut taken = store.take(&take, now).await?;
    if bug == Some(Bug::TakenAtTheFloorBefore) {
        for lease in &mut taken.leases {
            let last = before.iter().find(|row| row.slot == lease.slot);
            lease.floor = last.map_or(lease.floor, |row| row.floor.min(lease.floor));
        }
    }
    Ok(taken)
}

/// A definition from a store with this bug.
pub(super) fn defined(bug: Option<Bug>, mut found: Definition) -> Definition {
    match bug {
        // Others seem to have reserved since, and the node that ends keeps its tail in the journal.
        Some(Bug::TailReturnedAndJournalled) => found.segment.version += 1,
        Some(Bug::PolicyForgotten) if found.spec.contains("on_rollback") => {
            for policy in ["hold", "fail", "wait", "borrow"] {
                let (said, told) = (format!("\"{policy}\""), "\"ring\"");
                found.spec = found.spec.replace(&said, told);
            }
        }
        Some(Bug::PolicyForgotten) if found.name == "hold" => {
            found.spec = format!(r#"{{"on_rollback":"ring",{}"#, &found.spec[1..]);
        }
        Some(Bug::StepTooLarge) if found.name == NUMBERS => {
            let said = format!("\"min\":{STEP_MIN}");
            found.spec = found.spec.replace(&said, "\"min\":500");
        }
        _ => {}
    }
    found
}

/// A presence as a store with this bug keeps it.
pub(super) const fn presence(bug: Option<Bug>, said: Presence) -> Presence {
    match bug {
        Some(Bug::NobodyIsForgotten) => Presence { ttl_ms: said.ttl_ms * 1_000, ..said },
        _ => said,
    }
}

/// A reserve by a store with this bug.
pub(super) async fn reserve(
    store: &dyn SimStore,
    bug: Option<Bug>,
    reserve: &Reserve,
) -> Result<Segment> {
    if bug == Some(Bug::NumberSkipped) {
        store.reserve(&Reserve { length: 1, ..reserve.clone() }).await?;
    }
    if bug == Some(Bug::ReserveTakenForARepeat) {
        let row = store.get(&reserve.source).await?.segment;
        if row.mark.get() - row.floor.get() == reserve.length {
            let (catalog, identity) = (store.list().await?, store.identity().await?);
            return Ok(row.taken(catalog.version, identity.writes));
        }
    }
    store.reserve(reserve).await
}

/// What a store with this bug keeps of a report.
pub(super) fn reported(bug: Option<Bug>, known: Option<&Known>) -> Option<Known> {
    let known = known?;
    Some(match bug {
        Some(Bug::ReportsForgotten) => Known::default(),
        Some(Bug::IdsUnreported) => Known { ids: BTreeMap::new(), ..known.clone() },
        _ => known.clone(),
    })
}

/// A member leaves a store with this bug: with it, the tail that was kept goes back as well.
pub(super) async fn leave(store: &dyn SimStore, bug: Option<Bug>, truth: &Truth, party: Party) {
    if bug != Some(Bug::TailReturnedAndJournalled) {
        return;
    }
    let mut stored = store.list().await.unwrap().definitions;
    // Which of these numbers were used, their IDs do not say.
    stored.retain(|source| source.name != STRIPED);
    for Definition { name, segment, .. } in stored {
        let right = Right::Numbers(name.clone());
        if let Some(first) = truth.unused(&right, segment.mark.get(), party) {
            let (first, last) = (first.max(segment.floor.get()), segment.mark.get() - 1);
            let back = GiveBack { source: name, first, last, version: segment.version };
            if first <= last && store.give_back(&back).await.is_ok() {
                truth.moved(&right).await;
            }
        }
    }
}
