//! Both directions agree: a message that is written and read is the same call, or the same reply.

use std::collections::BTreeSet;
use std::fmt::Debug;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use snowmint_coord::segment::{NumberInterval, SegmentRow};
use snowmint_coord::{
    Acquire, Acquired, Bounds, Capabilities, Catalog, ClaimRequest, ClockOf, Definition, Error,
    ErrorKind, ErrorParts, Exclude, Extend, Extended, FastForward, GiveBack, Holder, Incarnation,
    Lease, Mark, Member, MemberInfo, MemberStatus, NewDefinition, Pool, PoolFull, Preference,
    Presence, PresenceBy, Recalled, Release, Relinquish, Reserve, Restripe, Retry, Reuse, Segment,
    SlotInfo, SourceState, StalledMember, StoreIdentity, Term, Ticks,
};
use snowmint_core::UnixMillis;
use snowmint_store_rpc::{BothClocks, Codec, Description, Joined, StoreRequest};
use snowmint_wire::grpc::store as proto;

use crate::{bytes, shown, verbs_with_a_method};

/// The names of the verbs that no property has checked yet.
struct Unchecked(BTreeSet<String>);

impl Unchecked {
    /// Checks calls and replies of a verb.
    fn agrees<Q>(
        &mut self,
        calls: impl Strategy<Value = Q::Call>,
        replies: impl Strategy<Value = Q::Reply>,
    ) where
        Q: StoreRequest<Call: Clone + Debug, Reply: Clone + Debug>,
    {
        survives::<Q, _>(calls);
        survives::<Q::Response, _>(replies);
        self.0.remove(&format!("{:?}", Q::VERB));
    }
}

fn survives<M, T>(values: impl Strategy<Value = T>)
where
    M: prost::Message + Default,
    T: Codec<M> + Clone + Debug,
{
    let config = Config { cases: 256, failure_persistence: None, ..Config::default() };
    let survives = |value: T| {
        prop_assert_eq!(shown::<M, T>(&bytes(value.clone())), format!("{value:?}"));
        Ok(())
    };
    TestRunner::new(config).run(&values, survives).unwrap();
}

fn number() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>()]
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(u32::MAX), any::<u32>()]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), any::<String>()]
}

fn mark() -> impl Strategy<Value = Mark> + Clone {
    number().prop_map(Mark::new)
}

fn term() -> impl Strategy<Value = Term> {
    number().prop_map(Term::new)
}

fn time() -> impl Strategy<Value = UnixMillis> {
    number().prop_map(UnixMillis::new)
}

fn incarnation() -> impl Strategy<Value = Incarnation> {
    prop_oneof![Just(0), Just(u128::MAX), any::<u128>()].prop_map(Incarnation::new)
}

fn identity() -> impl Strategy<Value = StoreIdentity> {
    (text(), number()).prop_map(|(id, writes)| StoreIdentity { id, writes })
}

fn joined() -> impl Strategy<Value = Joined> {
    let parts = (option::of(incarnation()), option::of(identity()));
    parts.prop_map(|(known_as, seen)| Joined { known_as, seen })
}

fn member() -> impl Strategy<Value = Member> {
    (incarnation(), text(), text(), small(), text()).prop_map(
        |(incarnation, owner, host, process, address)| Member {
            incarnation,
            owner,
            host,
            process,
            address,
        },
    )
}

fn presence() -> impl Strategy<Value = Presence> {
    let parts = (time(), number(), number());
    parts.prop_map(|(sample, renewals, ttl_ms)| Presence { sample, renewals, ttl_ms })
}

/// Servers alone receive the status of members.
fn member_info() -> impl Strategy<Value = MemberInfo> {
    (member(), presence(), time(), time(), any::<bool>()).prop_map(
        |(member, presence, joined_at, renewed_at, live)| MemberInfo {
            member,
            presence,
            joined_at,
            renewed_at,
            live,
            status: MemberStatus::default(),
        },
    )
}

fn pool() -> impl Strategy<Value = Pool> {
    let reuse = select(vec![Reuse::Recycle, Reuse::Never, Reuse::Ordered]);
    let parts = (text(), number(), small(), reuse);
    parts.prop_map(|(name, slots, group, reuse)| Pool { name, slots, group, reuse })
}

/// The holder of a lease is the member that called.
fn lease() -> impl Strategy<Value = Lease> {
    (text(), number(), term(), mark(), mark()).prop_map(|(pool, slot, term, floor, mark)| Lease {
        pool,
        slot,
        term,
        holder: None,
        floor,
        mark,
    })
}

/// Through servers, a configured group is an exact one.
fn claim() -> impl Strategy<Value = ClaimRequest> {
    let preference = prop_oneof![
        Just(Preference::Any),
        Just(Preference::LastOfOwner),
        number().prop_map(Preference::Exactly),
    ];
    let member = (incarnation(), text(), option::of(incarnation()));
    (pool(), member, small(), preference, mark(), number()).prop_map(
        |(pool, (member, owner, supersedes), count, preference, mark_at_most, request)| {
            ClaimRequest {
                pool,
                member,
                owner,
                count,
                preference,
                supersedes,
                mark_at_most,
                request,
            }
        },
    )
}

fn extend() -> impl Strategy<Value = Extend> {
    let slot = (text(), number(), term(), option::of(incarnation()));
    (slot, mark(), mark(), number(), option::of(number())).prop_map(
        |((pool, slot, term, holder), from, to, request, ahead_max_ms)| Extend {
            pool,
            slot,
            term,
            holder,
            from,
            to,
            request,
            ahead_max_ms,
        },
    )
}

fn extended() -> impl Strategy<Value = Result<Extended, Error>> {
    let moved = (mark(), number(), number()).prop_map(|(mark, catalog_version, writes)| Extended {
        mark,
        catalog_version,
        writes,
    });
    prop_oneof![moved.prop_map(Ok), failure().prop_map(Err)]
}

fn release() -> impl Strategy<Value = Release> {
    let slot = (text(), number(), term(), option::of(incarnation()));
    (slot, mark(), option::of(mark())).prop_map(|((pool, slot, term, holder), mark, from)| {
        Release { pool, slot, term, holder, mark, from }
    })
}

fn acquire() -> impl Strategy<Value = Acquire> {
    let stalled =
        (incarnation(), number()).prop_map(|(member, renewals)| StalledMember { member, renewals });
    let member = (incarnation(), text(), option::of(incarnation()));
    (pool(), member, vec(number(), 0..9), vec(stalled, 0..9), number(), number()).prop_map(
        |(pool, (member, owner, supersedes), slots, stalled, length, request)| Acquire {
            pool,
            member,
            owner,
            slots,
            stalled,
            supersedes,
            length,
            request,
        },
    )
}

fn acquired() -> impl Strategy<Value = Acquired> {
    let parts = (vec(lease(), 0..9), vec((number(), incarnation()), 0..9));
    parts.prop_map(|(leases, held)| Acquired { leases, held })
}

fn relinquish() -> impl Strategy<Value = Relinquish> {
    let parts = (text(), incarnation(), vec((number(), term()), 0..9));
    parts.prop_map(|(pool, member, slots)| Relinquish { pool, member, slots })
}

fn exclude() -> impl Strategy<Value = Exclude> {
    let parts = (pool(), vec(number(), 0..9), mark(), text());
    parts.prop_map(|(pool, slots, until, label)| Exclude { pool, slots, until, label })
}

/// A slot is kept away if its mark is at the end of all numbers.
fn slot() -> impl Strategy<Value = SlotInfo> {
    let row = (text(), number(), term(), mark(), text());
    let holder = (option::of(incarnation()), option::of(text()), option::of(small()));
    let times = (option::of(time()), time(), option::of(time()));
    (row, holder, times, any::<bool>()).prop_map(|(row, holder, times, live)| {
        let (pool, slot, term, mark, owner) = row;
        let (holder, host, process) = holder;
        let (joined_at, held_since, renewed_at) = times;
        SlotInfo {
            pool,
            slot,
            term,
            mark,
            owner,
            holder,
            host,
            process,
            joined_at,
            held_since,
            renewed_at,
            live,
            kept_away: mark == Mark::MAX,
        }
    })
}

fn ticks() -> impl Strategy<Value = Ticks> {
    (time(), small(), any::<u8>(), number(), number(), number(), time()).prop_map(
        |(epoch, unit_ms, sequence_bits, tick_max, lag, lead, now)| Ticks {
            epoch,
            unit_ms,
            sequence_bits,
            tick_max,
            lag,
            lead,
            now,
        },
    )
}

fn reserve() -> impl Strategy<Value = Reserve> {
    let range = (number(), number()).prop_map(|(first, end)| NumberInterval { first, end });
    let within = prop_oneof![range.prop_map(Bounds::Range), ticks().prop_map(Bounds::Now)];
    (text(), number(), number(), option::of(within)).prop_map(
        |(source, length, definition_version, within)| Reserve {
            source,
            length,
            definition_version,
            within,
        },
    )
}

fn segment() -> impl Strategy<Value = Segment> {
    (number(), number(), number(), number(), number(), option::of(time())).prop_map(
        |(first, last, version, catalog_version, writes, at)| Segment {
            first,
            last,
            version,
            catalog_version,
            writes,
            at,
        },
    )
}

fn give_back() -> impl Strategy<Value = GiveBack> {
    let parts = (text(), number(), number(), number());
    parts.prop_map(|(source, first, last, version)| GiveBack { source, first, last, version })
}

fn new_definition() -> impl Strategy<Value = NewDefinition> {
    (text(), text(), text(), option::of(any::<bool>()))
        .prop_map(|(name, spec, identity, enabled)| NewDefinition { name, spec, identity, enabled })
}

fn restripe() -> impl Strategy<Value = Restripe> {
    let parts = (new_definition(), number(), mark());
    parts.prop_map(|(new, if_version, mark)| Restripe { new, if_version, mark })
}

fn state() -> impl Strategy<Value = SourceState> {
    select(vec![SourceState::Enabled, SourceState::Disabled, SourceState::Deleted])
}

fn definition() -> impl Strategy<Value = Definition> {
    let segment = (mark(), mark(), number());
    let segment = segment.prop_map(|(mark, floor, version)| SegmentRow { mark, floor, version });
    (text(), text(), text(), number(), state(), segment).prop_map(
        |(name, spec, identity, version, state, segment)| Definition {
            name,
            spec,
            identity,
            version,
            state,
            segment,
        },
    )
}

fn catalog() -> impl Strategy<Value = Catalog> {
    let parts = (number(), vec(definition(), 0..9));
    parts.prop_map(|(version, definitions)| Catalog { version, definitions })
}

/// Servers keep the standing of the store to themselves.
fn fast_forward() -> impl Strategy<Value = FastForward> {
    let counts = (number(), number(), number());
    let lists = (vec((text(), mark()), 0..9), vec(text(), 0..9));
    (mark(), counts, lists, any::<bool>()).prop_map(
        |(marks_at_least, counts, (segments, forget_journals), new_identity)| FastForward {
            marks_at_least,
            segments,
            writes_at_least: counts.0,
            recoveries_at_least: counts.1,
            catalog_at_least: counts.2,
            planned_on: None,
            forget_journals,
            new_identity,
            same_server: true,
            values_only: true,
        },
    )
}

fn pool_full() -> impl Strategy<Value = PoolFull> {
    let holder = (number(), incarnation(), text(), time()).prop_map(
        |(slot, incarnation, owner, expires_at)| Holder { slot, incarnation, owner, expires_at },
    );
    let usable = (option::of(time()), option::of(number()), any::<bool>());
    let counts = (number(), option::of(number()), number(), number());
    (text(), counts, vec(holder, 0..9), usable).prop_map(|(pool, counts, holders, usable)| {
        let (groups, only, held, marked_ahead) = counts;
        let (usable_at, usable_in_ms, by_recovery) = usable;
        PoolFull {
            pool,
            groups,
            only,
            held,
            marked_ahead,
            holders,
            usable_at,
            usable_in_ms,
            by_recovery,
        }
    })
}

/// Every kind, with any values. To wait for 0 ms is to retry now.
fn failure() -> impl Strategy<Value = Error> {
    let kind = (select(ErrorKind::CODES), text(), number(), number(), pool_full()).prop_map(
        |(code, evidence, one, other, full)| ErrorParts {
            code: code.to_owned(),
            texts: vec![evidence],
            numbers: vec![one, other],
            full: (code == "pool_full").then_some(full),
        },
    );
    let retry =
        prop_oneof![Just(Retry::Never), Just(Retry::Now), (1..=u64::MAX).prop_map(Retry::AfterMs)];
    (kind, text(), retry, text()).prop_map(|(parts, message, retry, detail)| {
        let error = Error::from_parts(parts, message).with_retry(retry);
        if detail.is_empty() { error } else { error.with_detail(detail) }
    })
}

#[test]
fn every_call_and_reply_survives() {
    let mut verbs = Unchecked(verbs_with_a_method());
    let both = (option::of(time()), time());
    let both = both.prop_map(|(store, server)| BothClocks { store, server });
    verbs.agrees::<proto::NowRequest>(Just(()), both);
    verbs.agrees::<proto::IdentityRequest>(Just(()), identity());
    let who = any::<String>().prop_filter("names of reporters are short", |who| who.len() <= 64);
    let recalled = select(vec![Recalled::Same, Recalled::Recovered]);
    verbs.agrees::<proto::RecallRequest>((who, identity()), recalled);
    verbs.agrees::<proto::JoinRequest>((member(), presence(), time()), joined());
    verbs.agrees::<proto::RenewRequest>((incarnation(), presence(), time()), joined());
    verbs.agrees::<proto::LeaveRequest>((incarnation(), time()), Just(()));
    verbs.agrees::<proto::MembersRequest>(time(), vec(member_info(), 0..9));
    verbs.agrees::<proto::ClaimRequest>((claim(), time()), vec(lease(), 0..9));
    verbs.agrees::<proto::ExtendRequest>((vec(extend(), 0..9), time()), vec(extended(), 0..9));
    verbs.agrees::<proto::ReleaseRequest>((release(), time()), Just(()));
    verbs.agrees::<proto::AcquireRequest>((acquire(), time()), acquired());
    verbs.agrees::<proto::RelinquishRequest>((relinquish(), time()), Just(()));
    verbs.agrees::<proto::ExcludeRequest>((exclude(), time()), Just(()));
    verbs.agrees::<proto::WorkersRequest>(time(), vec(slot(), 0..9));
    verbs.agrees::<proto::ReserveRequest>(reserve(), segment());
    verbs.agrees::<proto::GiveBackRequest>(give_back(), number());
    verbs.agrees::<proto::DefineRequest>(new_definition(), definition());
    verbs.agrees::<proto::AlterRequest>((new_definition(), option::of(number())), definition());
    verbs.agrees::<proto::RestripeRequest>(restripe(), definition());
    verbs.agrees::<proto::SetStateRequest>((text(), state()), definition());
    verbs.agrees::<proto::GetRequest>(text(), definition());
    verbs.agrees::<proto::ListRequest>(Just(()), catalog());
    verbs.agrees::<proto::FastForwardRequest>(fast_forward(), identity());
    verbs.agrees::<proto::AcceptLeadRequest>(mark(), Just(()));
    assert!(verbs.0.is_empty(), "no property has {:?}", verbs.0);
}

#[test]
fn every_error_and_description_survives() {
    survives::<proto::Error, _>(failure());
    let capabilities = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(has_clock, durable_on_reply, safe_over_failover, by_session)| Capabilities {
            clock: if has_clock { ClockOf::Store } else { ClockOf::Caller },
            durable_on_reply,
            safe_over_failover,
            presence: if by_session { PresenceBy::Session } else { PresenceBy::Record },
        },
    );
    let named = (text(), text(), text(), option::of(identity()));
    let description = (named, capabilities, small(), vec(text(), 0..9), small()).prop_map(
        |(named, capabilities, group_max, warnings, version)| {
            let (instance, namespace, store, identity) = named;
            Description {
                instance,
                namespace,
                identity,
                capabilities,
                group_max,
                warnings,
                version,
                store,
            }
        },
    );
    survives::<proto::DescribeResponse, _>(description);
}
