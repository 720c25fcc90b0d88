//! Requests for the store, read from messages.

use snowmint_coord::segment::{Bounds, NumberInterval};
use snowmint_coord::sources::SECTIONS;
use snowmint_coord::{
    Acquire, ClaimRequest, Exclude, Extend, FastForward, GiveBack, Incarnation, Mark, Member,
    NewDefinition, Pool, Preference, Presence, Release, Relinquish, Reserve, Restripe, Reuse,
    SourceState, StalledMember, StoreIdentity, Term, Ticks,
};
use snowmint_core::UnixMillis;
use snowmint_wire::error::Code;
use snowmint_wire::grpc::store as proto;

use super::incarnation::{ReadResult, incarnation};
use super::member_alias::MemberAlias;
use crate::error::Error;

/// Longest name of a reporter that recalls a store, in bytes.
const WHO_BYTES_MAX: usize = 64;

const fn time(ms: u64) -> UnixMillis {
    UnixMillis::new(ms)
}

pub(super) const fn mark(mark: u64) -> Mark {
    Mark::new(mark)
}

fn there<T>(name: &str, part: Option<T>) -> ReadResult<T> {
    part.ok_or_else(|| Error::bad_request(format!("message has no {name}; send it")))
}

/// Reads a list of bounded length: all sections, and the same number of global-order sources.
pub(super) fn few<T, U>(items: Vec<T>, read: impl Fn(T) -> ReadResult<U>) -> ReadResult<Vec<U>> {
    let limit = 2 * usize::from(SECTIONS);
    if items.len() > limit {
        let received = items.len();
        let message = format!("message has {received} items, limit {limit}; send fewer");
        return Err(Error::new(Code::LimitExceeded, message));
    }
    items.into_iter().map(read).collect()
}

/// Returns the error for a value of a newer caller.
fn newer(what: &str, value: i32) -> Error {
    let message = format!("{what} {value} is unknown to this version; update the server");
    Error::new(Code::Unsupported, message)
}

/// Reads a member, and its known name if it differs from its own.
pub(super) fn member(
    member_alias: &MemberAlias,
    member: Option<proto::Member>,
) -> ReadResult<(Option<Incarnation>, Member)> {
    let proto::Member { incarnation: text, owner, host, process, address } =
        there("member", member)?;
    let known = member_alias.alias_of(&text)?;
    let known_as = (known != incarnation(&text)?).then_some(known);
    // Servers send secrets among themselves to the addresses of members, and share sections with
    // them.
    let address = if member_alias.can_be_server() { address } else { String::new() };
    Ok((known_as, Member { incarnation: known, owner, host, process, address }))
}

pub(super) fn presence(
    member_alias: &MemberAlias,
    presence: Option<proto::Presence>,
) -> ReadResult<Presence> {
    let proto::Presence { sample, renewals, ttl_ms } = there("presence", presence)?;
    Ok(Presence { sample: member_alias.time(sample), renewals, ttl_ms })
}

/// Reads a member's memory of the store. The response repeats the name, so it is short.
pub(super) fn recall(message: proto::RecallRequest) -> ReadResult<(String, StoreIdentity)> {
    let proto::RecallRequest { who, seen } = message;
    let proto::Identity { id, writes } = there("identity", seen)?;
    if who.len() > WHO_BYTES_MAX {
        return Err(Error::bad_request(format!(
            "name of the reporter has {} bytes, maximum {WHO_BYTES_MAX}; shorten it",
            who.len()
        )));
    }
    Ok((who, StoreIdentity { id, writes }))
}

fn pool(pool: Option<proto::Pool>) -> ReadResult<Pool> {
    let pool = there("pool", pool)?;
    let reuse = match proto::Reuse::try_from(pool.reuse) {
        Ok(proto::Reuse::Recycle) => Reuse::Recycle,
        Ok(proto::Reuse::Never) => Reuse::Never,
        Ok(proto::Reuse::Ordered) => Reuse::Ordered,
        Ok(proto::Reuse::Unspecified) => {
            let message = "pool has no reuse rule; send recycle, never or ordered";
            return Err(Error::bad_request(message));
        }
        Err(_) => return Err(newer("reuse rule", pool.reuse)),
    };
    Ok(Pool { name: pool.name, slots: pool.slots, group: pool.group, reuse })
}

pub(super) fn claim(
    member_alias: &MemberAlias,
    request: proto::ClaimRequest,
) -> ReadResult<(ClaimRequest, UnixMillis)> {
    use proto::claim_request::Preference as ProtoPreference;
    let preference = match request.preference {
        None | Some(ProtoPreference::LastOfOwner(false)) => Preference::Any,
        Some(ProtoPreference::LastOfOwner(true)) => Preference::LastOfOwner,
        Some(ProtoPreference::Exactly(group)) => Preference::Exactly(group),
    };
    let claim = ClaimRequest {
        pool: pool(request.pool)?,
        member: member_alias.alias_of(&request.member)?,
        owner: request.owner,
        count: request.count,
        preference,
        supersedes: member_alias.alias_if_named(request.supersedes.as_deref())?,
        mark_at_most: mark(request.mark_at_most),
        request: request.request,
    };
    Ok((claim, member_alias.time(request.now)))
}

pub(super) fn exclude(
    member_alias: &MemberAlias,
    request: proto::ExcludeRequest,
) -> ReadResult<(Exclude, UnixMillis)> {
    let proto::ExcludeRequest { pool: wanted, slots, until, label, now } = request;
    Ok((Exclude { pool: pool(wanted)?, slots, until: mark(until), label }, member_alias.time(now)))
}

pub(super) fn extend(member_alias: &MemberAlias, item: proto::Extend) -> ReadResult<Extend> {
    Ok(Extend {
        pool: item.pool,
        slot: item.slot,
        term: Term::new(item.term),
        holder: member_alias.alias_if_named(item.member.as_deref())?,
        from: mark(item.from),
        to: mark(item.to),
        request: item.request,
        ahead_max_ms: item.ahead_max_ms,
    })
}

pub(super) fn release(
    member_alias: &MemberAlias,
    request: proto::ReleaseRequest,
) -> ReadResult<(Release, UnixMillis)> {
    let release = Release {
        pool: request.pool,
        slot: request.slot,
        term: Term::new(request.term),
        holder: member_alias.alias_if_named(request.member.as_deref())?,
        mark: mark(request.mark),
        from: request.from.map(mark),
    };
    Ok((release, member_alias.time(request.now)))
}

pub(super) fn acquire(
    member_alias: &MemberAlias,
    request: proto::AcquireRequest,
) -> ReadResult<(Acquire, UnixMillis)> {
    // Stalled members are those of other callers, named as in lists.
    let stalled = |stalled: proto::Silent| {
        Ok(StalledMember { member: incarnation(&stalled.member)?, renewals: stalled.renewals })
    };
    let acquire = Acquire {
        pool: pool(request.pool)?,
        member: member_alias.alias_of(&request.member)?,
        owner: request.owner,
        slots: few(request.slots, Ok)?,
        stalled: few(request.silent, stalled)?,
        supersedes: member_alias.alias_if_named(request.supersedes.as_deref())?,
        length: request.length,
        request: request.request,
    };
    Ok((acquire, member_alias.time(request.now)))
}

pub(super) fn relinquish(
    member_alias: &MemberAlias,
    request: proto::RelinquishRequest,
) -> ReadResult<(Relinquish, UnixMillis)> {
    let held = |held: proto::HeldBy| Ok((held.slot, Term::new(held.term)));
    let relinquish = Relinquish {
        pool: request.pool,
        member: member_alias.alias_of(&request.member)?,
        slots: few(request.slots, held)?,
    };
    Ok((relinquish, member_alias.time(request.now)))
}

pub(super) fn reserve(request: proto::ReserveRequest) -> Reserve {
    let range = |proto::Within { first, end }| Bounds::Range(NumberInterval { first, end });
    let now = request.now.map(|now| Bounds::Now(ticks(&now)));
    Reserve {
        source: request.source,
        length: request.length,
        definition_version: request.definition_version,
        within: now.or(request.within.map(range)),
    }
}

fn ticks(message: &proto::Ticks) -> Ticks {
    Ticks {
        epoch: time(message.epoch),
        unit_ms: message.unit_ms,
        // A count above the bits of any sequence is rejected later.
        sequence_bits: u8::try_from(message.sequence_bits).unwrap_or(u8::MAX),
        tick_max: message.tick_max,
        lag: message.lag,
        lead: message.lead,
        now: time(message.now),
    }
}

pub(super) fn give_back(request: proto::GiveBackRequest) -> GiveBack {
    let proto::GiveBackRequest { source, first, last, version } = request;
    GiveBack { source, first, last, version }
}

pub(super) fn definition(new: Option<proto::NewDefinition>) -> ReadResult<NewDefinition> {
    let proto::NewDefinition { name, spec, identity, enabled } = there("definition", new)?;
    Ok(NewDefinition { name, spec, identity, enabled })
}

pub(super) fn restripe(request: proto::RestripeRequest) -> ReadResult<Restripe> {
    let proto::RestripeRequest { new, if_version, mark: first } = request;
    Ok(Restripe { new: definition(new)?, if_version, mark: mark(first) })
}

pub(super) fn state(state: i32) -> ReadResult<SourceState> {
    match proto::State::try_from(state) {
        Ok(proto::State::Enabled) => Ok(SourceState::Enabled),
        Ok(proto::State::Disabled) => Ok(SourceState::Disabled),
        Ok(proto::State::Deleted) => Ok(SourceState::Deleted),
        Ok(proto::State::Unspecified) => {
            Err(Error::bad_request("source state is missing; send enabled, disabled or deleted"))
        }
        Err(_) => Err(newer("source state", state)),
    }
}

pub(super) fn fast_forward(request: proto::FastForwardRequest) -> FastForward {
    let segment = |segment: proto::SourceMark| (segment.source, mark(segment.mark));
    FastForward {
        marks_at_least: mark(request.marks_at_least),
        segments: request.segments.into_iter().map(segment).collect(),
        writes_at_least: request.writes_at_least,
        new_identity: request.new_identity,
        recoveries_at_least: request.recoveries_at_least,
        catalog_at_least: request.catalog_at_least,
        forget_journals: request.forget_journals,
        // A server does not report the store's state, so no plan depends on it.
        planned_on: None,
    }
}
