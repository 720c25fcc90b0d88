//! Values of the recorded messages: each field has another value.

use snowmint_coord::segment::{NumberInterval, SegmentRow};
use snowmint_coord::{
    Acquire, Acquired, Bounds, Catalog, ClaimRequest, Definition, Error, ErrorParts, Exclude,
    Extend, Extended, FastForward, GiveBack, Holder, Incarnation, Lease, Mark, Member, MemberInfo,
    MemberStatus, NewDefinition, Pool, PoolFull, Preference, Presence, Release, Relinquish,
    Reserve, Restripe, Retry, Reuse, Segment, SlotInfo, SourceState, StalledMember, StoreIdentity,
    Term, Ticks,
};
use snowmint_core::UnixMillis;

pub(crate) const NOW: UnixMillis = UnixMillis::new(1_700_000_000_001);

pub(crate) const fn incarnation(number: u128) -> Incarnation {
    Incarnation::new(number << 64 | 0xabc)
}

pub(crate) fn identity() -> StoreIdentity {
    StoreIdentity { id: "s.1.a".into(), writes: 77 }
}

pub(crate) fn member() -> Member {
    Member {
        incarnation: incarnation(1),
        owner: "owner-é".into(),
        host: "host-1".into(),
        process: 4_242,
        address: "http://10.0.0.1:7700".into(),
    }
}

pub(crate) const fn presence() -> Presence {
    Presence { sample: UnixMillis::new(1_700_000_000_002), renewals: 3, ttl_ms: 10_000 }
}

fn pool(reuse: Reuse) -> Pool {
    Pool { name: "workers-10".into(), slots: 1024, group: 4, reuse }
}

pub(crate) fn claim() -> ClaimRequest {
    ClaimRequest {
        pool: pool(Reuse::Recycle),
        member: incarnation(2),
        owner: "owner".into(),
        count: 5,
        preference: Preference::Exactly(0),
        supersedes: Some(incarnation(3)),
        mark_at_most: Mark::new(1_700_000_100_000),
        request: 0x0102_0304_0506_0708,
    }
}

pub(crate) fn extends() -> Vec<Extend> {
    let item = Extend {
        pool: "workers-10".into(),
        slot: 0,
        term: Term::new(1),
        holder: None,
        from: Mark::ZERO,
        to: Mark::MAX,
        request: 0,
        ahead_max_ms: Some(0),
    };
    let other = Extend { slot: 9, holder: Some(incarnation(4)), request: 7, ..item.clone() };
    vec![item, Extend { ahead_max_ms: None, from: Mark::new(8), to: Mark::new(9), ..other }]
}

pub(crate) fn release() -> Release {
    Release {
        pool: "workers-10".into(),
        slot: 11,
        term: Term::new(12),
        holder: Some(incarnation(5)),
        mark: Mark::new(13),
        from: Some(Mark::ZERO),
    }
}

pub(crate) fn acquire() -> Acquire {
    Acquire {
        pool: pool(Reuse::Ordered),
        member: incarnation(6),
        owner: "owner".into(),
        slots: vec![0, 1, 300],
        stalled: vec![StalledMember { member: incarnation(7), renewals: 14 }],
        supersedes: None,
        length: 15,
        request: 16,
    }
}

pub(crate) fn relinquish() -> Relinquish {
    let slots = vec![(0, Term::new(17)), (18, Term::new(0))];
    Relinquish { pool: "sections".into(), member: incarnation(8), slots }
}

pub(crate) fn exclude() -> Exclude {
    let slots = vec![1, 2, 3];
    Exclude { pool: pool(Reuse::Never), slots, until: Mark::MAX, label: "another system".into() }
}

pub(crate) fn reserve() -> Reserve {
    let now = Ticks {
        epoch: UnixMillis::new(1_600_000_000_000),
        unit_ms: 10,
        sequence_bits: 12,
        tick_max: 1 << 41,
        lag: 19,
        lead: 20,
        now: NOW,
    };
    let within = Some(Bounds::Now(now));
    Reserve { source: "orders".into(), length: 1_000, definition_version: 21, within }
}

pub(crate) fn reserve_range() -> Reserve {
    let within = Some(Bounds::Range(NumberInterval { first: 22, end: u64::MAX }));
    Reserve { within, ..reserve() }
}

pub(crate) fn give_back() -> GiveBack {
    GiveBack { source: "orders".into(), first: 23, last: 24, version: 25 }
}

pub(crate) fn new_definition() -> NewDefinition {
    NewDefinition {
        name: "orders".into(),
        spec: "{\"kind\":\"segment\"}".into(),
        identity: "segment".into(),
        enabled: Some(false),
    }
}

pub(crate) fn restripe() -> Restripe {
    Restripe { new: new_definition(), if_version: 26, mark: Mark::new(27) }
}

pub(crate) fn fast_forward() -> FastForward {
    FastForward {
        marks_at_least: Mark::new(28),
        segments: vec![("orders".into(), Mark::new(29))],
        writes_at_least: 30,
        recoveries_at_least: 31,
        catalog_at_least: 32,
        planned_on: None,
        forget_journals: vec!["journal".into()],
        same_server: true,
        values_only: true,
        new_identity: true,
    }
}

pub(crate) fn members() -> Vec<MemberInfo> {
    vec![MemberInfo {
        member: member(),
        presence: presence(),
        joined_at: UnixMillis::new(33),
        renewed_at: UnixMillis::new(34),
        live: true,
        status: MemberStatus::default(),
    }]
}

pub(crate) fn leases(member: Incarnation) -> Vec<Lease> {
    vec![Lease {
        pool: "workers-10".into(),
        slot: 35,
        term: Term::new(36),
        holder: Some(member),
        floor: Mark::new(37),
        mark: Mark::new(38),
    }]
}

pub(crate) fn failure() -> Error {
    let holder = Holder {
        slot: 39,
        incarnation: incarnation(9),
        owner: "owner".into(),
        expires_at: UnixMillis::new(40),
    };
    let full = PoolFull {
        pool: "workers-10".into(),
        groups: 41,
        only: Some(0),
        held: 42,
        marked_ahead: 43,
        holders: vec![holder],
        usable_at: Some(UnixMillis::new(44)),
        usable_in_ms: Some(45),
        by_recovery: true,
    };
    let parts = ErrorParts { code: "pool_full".into(), full: Some(full), ..Default::default() };
    let error = Error::from_parts(parts, "pool is full".into());
    error.with_retry(Retry::AfterMs(46)).with_detail("at db:5432")
}

pub(crate) fn extended() -> Vec<Result<Extended, Error>> {
    let moved = Extended { mark: Mark::new(47), catalog_version: 48, writes: 49 };
    vec![Ok(moved), Err(Error::mark_moved(Mark::new(50), Mark::new(51), "mark is 51"))]
}

pub(crate) fn acquired(member: Incarnation) -> Acquired {
    Acquired { leases: leases(member), held: vec![(52, incarnation(10))] }
}

pub(crate) fn slots() -> Vec<SlotInfo> {
    let slot = SlotInfo {
        pool: "workers-10".into(),
        slot: 53,
        term: Term::new(54),
        mark: Mark::new(55),
        owner: "owner".into(),
        holder: Some(incarnation(11)),
        host: Some(String::new()),
        process: Some(0),
        joined_at: Some(UnixMillis::new(56)),
        held_since: UnixMillis::new(57),
        renewed_at: Some(UnixMillis::new(58)),
        live: true,
        kept_away: false,
    };
    let (holder, host, process, joined_at, renewed_at) = Default::default();
    let free = SlotInfo { holder, host, process, joined_at, renewed_at, ..slot.clone() };
    vec![slot, SlotInfo { mark: Mark::MAX, kept_away: true, live: false, ..free }]
}

pub(crate) fn segment() -> Segment {
    let at = Some(UnixMillis::new(59));
    Segment { first: 60, last: 61, version: 62, catalog_version: 63, writes: 64, at }
}

pub(crate) fn definition() -> Definition {
    Definition {
        name: "orders".into(),
        spec: "{}".into(),
        identity: "segment".into(),
        version: 65,
        state: SourceState::Disabled,
        segment: SegmentRow { mark: Mark::new(66), floor: Mark::new(67), version: 68 },
    }
}

pub(crate) fn catalog() -> Catalog {
    let deleted = Definition { state: SourceState::Deleted, ..definition() };
    Catalog { version: 69, definitions: vec![definition(), deleted] }
}
