//! Results of the store, read from messages.

use snowmint_coord::{
    Acquired, Catalog, Definition, Error, Extended, Incarnation, Lease, Mark, Member, MemberInfo,
    MemberStatus, Presence, Recalled, Result, Segment, SlotInfo, SourceState, StoreIdentity, Term,
    segment,
};
use snowmint_core::UnixMillis;
use snowmint_wire::grpc::store as proto;

use crate::store_error::refused;

fn there<T>(name: &str, part: Option<T>) -> Result<T> {
    part.ok_or_else(|| {
        Error::internal(format!(
            "internal error: server's response has no {name}; please report it"
        ))
    })
}

fn incarnation(text: &str) -> Result<Incarnation> {
    text.parse().map_err(|_| {
        Error::internal(format!(
            "internal error: server's response has member {text:?}, expected 32 hexadecimal \
             digits; please report it"
        ))
    })
}

pub(super) fn done(_: proto::DoneResponse) {}

pub(super) const fn recalled(
    proto::RecallResponse { recovered, .. }: &proto::RecallResponse,
) -> Recalled {
    if *recovered { Recalled::Recovered } else { Recalled::Same }
}

pub(super) fn known_as(response: proto::DoneResponse) -> Result<Option<Incarnation>> {
    response.known_as.map(|known| incarnation(&known)).transpose()
}

pub(super) fn identity(response: proto::IdentityResponse) -> Result<StoreIdentity> {
    let proto::Identity { id, writes } = there("identity", response.identity)?;
    Ok(StoreIdentity { id, writes })
}

pub(super) fn members(response: proto::MembersResponse) -> Result<Vec<MemberInfo>> {
    response.members.into_iter().map(member).collect()
}

fn member(info: proto::MemberInfo) -> Result<MemberInfo> {
    let member = there("member", info.member)?;
    let presence = there("presence", info.presence)?;
    Ok(MemberInfo {
        member: Member {
            incarnation: incarnation(&member.incarnation)?,
            owner: member.owner,
            host: member.host,
            process: member.process,
            address: member.address,
        },
        presence: Presence {
            sample: UnixMillis::new(presence.sample),
            renewals: presence.renewals,
            ttl_ms: presence.ttl_ms,
        },
        joined_at: UnixMillis::new(info.joined_at),
        renewed_at: UnixMillis::new(info.renewed_at),
        live: info.live,
        // Only servers receive the status.
        status: MemberStatus::default(),
    })
}

fn lease(lease: proto::Lease, holder: Incarnation) -> Lease {
    Lease {
        pool: lease.pool,
        slot: lease.slot,
        term: Term::new(lease.term),
        holder: Some(holder),
        floor: Mark::new(lease.floor),
        mark: Mark::new(lease.mark),
    }
}

pub(super) fn claimed(response: proto::ClaimResponse, member: Incarnation) -> Vec<Lease> {
    response.leases.into_iter().map(|it| lease(it, member)).collect()
}

pub(super) fn extended(response: proto::ExtendResponse) -> Vec<Result<Extended>> {
    let item = |item: proto::Extended| match item.error {
        Some(error) => Err(refused(error)),
        None => Ok(Extended {
            mark: Mark::new(item.mark),
            catalog_version: item.catalog_version,
            writes: item.writes,
        }),
    };
    response.items.into_iter().map(item).collect()
}

pub(super) fn acquired(response: proto::AcquireResponse, member: Incarnation) -> Result<Acquired> {
    let held = |held: proto::Held| Ok((held.slot, incarnation(&held.member)?));
    Ok(Acquired {
        leases: response.leases.into_iter().map(|it| lease(it, member)).collect(),
        held: response.held.into_iter().map(held).collect::<Result<_>>()?,
    })
}

pub(super) fn slots(response: proto::WorkersResponse) -> Result<Vec<SlotInfo>> {
    response.slots.into_iter().map(slot).collect()
}

fn slot(slot: proto::Slot) -> Result<SlotInfo> {
    let mark = Mark::new(slot.mark);
    Ok(SlotInfo {
        pool: slot.pool,
        slot: slot.slot,
        term: Term::new(slot.term),
        mark,
        owner: slot.owner,
        holder: slot.holder.map(|holder| incarnation(&holder)).transpose()?,
        host: slot.host,
        process: slot.process,
        joined_at: slot.joined_at.map(UnixMillis::new),
        held_since: UnixMillis::new(slot.held_since),
        renewed_at: slot.renewed_at.map(UnixMillis::new),
        live: slot.live,
        kept_away: mark == Mark::MAX,
    })
}

pub(super) fn segment(response: &proto::ReserveResponse) -> Segment {
    let &proto::ReserveResponse { first, last, version, catalog_version, writes, at, .. } =
        response;
    Segment { first, last, version, catalog_version, writes, at: at.map(UnixMillis::new) }
}

/// Returns the state; `None` for a newer server's.
fn state(state: i32) -> Result<Option<SourceState>> {
    Ok(match proto::State::try_from(state) {
        Ok(proto::State::Enabled) => Some(SourceState::Enabled),
        Ok(proto::State::Disabled) => Some(SourceState::Disabled),
        Ok(proto::State::Deleted) => Some(SourceState::Deleted),
        Ok(proto::State::Unspecified) => there("state of a source", None)?,
        Err(_) => None,
    })
}

fn definition(definition: proto::Definition, state: SourceState) -> Definition {
    Definition {
        name: definition.name,
        spec: definition.spec,
        identity: definition.identity,
        version: definition.version,
        state,
        segment: segment::SegmentRow {
            mark: Mark::new(definition.mark),
            floor: Mark::new(definition.floor),
            version: definition.segment_version,
        },
    }
}

pub(super) fn defined(response: proto::DefinitionResponse) -> Result<Definition> {
    let message = there("definition", response.definition)?;
    let state = state(message.state)?.ok_or_else(|| {
        Error::unsupported(format!(
            "source {:?} has state {}, unknown to this version; update this program",
            message.name, message.state
        ))
    })?;
    Ok(definition(message, state))
}

pub(super) fn catalog(response: proto::ListResponse) -> Result<Catalog> {
    // With a state that is unknown here, the source cannot be used here.
    let each = |each: proto::Definition| {
        let state = state(each.state)?.unwrap_or(SourceState::Disabled);
        Ok(definition(each, state))
    };
    let definitions = response.definitions.into_iter().map(each).collect::<Result<_>>()?;
    Ok(Catalog { version: response.version, definitions })
}
