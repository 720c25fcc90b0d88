//! Results of the store, read from messages.

use snowmint_coord::{
    Acquired, Catalog, Definition, Error, Extended, Incarnation, Lease, Mark, Member, MemberInfo,
    MemberStatus, Presence, Recalled, Result, Segment, SlotInfo, SourceState, StoreIdentity, Term,
    segment,
};
use snowmint_core::UnixMillis;
use snowmint_wire::grpc::store as said;

use crate::refusal::refused;

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

pub(super) fn done(_: said::DoneResponse) {}

pub(super) const fn recalled(
    said::RecallResponse { recovered, .. }: &said::RecallResponse,
) -> Recalled {
    if *recovered { Recalled::Recovered } else { Recalled::Same }
}

pub(super) fn known_as(answer: said::DoneResponse) -> Result<Option<Incarnation>> {
    answer.known_as.map(|known| incarnation(&known)).transpose()
}

pub(super) fn identity(answer: said::IdentityResponse) -> Result<StoreIdentity> {
    let said::Identity { id, writes } = there("identity", answer.identity)?;
    Ok(StoreIdentity { id, writes })
}

pub(super) fn members(answer: said::MembersResponse) -> Result<Vec<MemberInfo>> {
    answer.members.into_iter().map(member).collect()
}

fn member(info: said::MemberInfo) -> Result<MemberInfo> {
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

fn lease(lease: said::Lease, holder: Incarnation) -> Lease {
    Lease {
        pool: lease.pool,
        slot: lease.slot,
        term: Term::new(lease.term),
        holder: Some(holder),
        floor: Mark::new(lease.floor),
        mark: Mark::new(lease.mark),
    }
}

pub(super) fn claimed(answer: said::ClaimResponse, member: Incarnation) -> Vec<Lease> {
    answer.leases.into_iter().map(|it| lease(it, member)).collect()
}

pub(super) fn extended(answer: said::ExtendResponse) -> Vec<Result<Extended>> {
    let item = |item: said::Extended| match item.error {
        Some(error) => Err(refused(error)),
        None => Ok(Extended {
            mark: Mark::new(item.mark),
            catalog_version: item.catalog_version,
            writes: item.writes,
        }),
    };
    answer.items.into_iter().map(item).collect()
}

pub(super) fn acquired(answer: said::AcquireResponse, member: Incarnation) -> Result<Acquired> {
    let held = |held: said::Held| Ok((held.slot, incarnation(&held.member)?));
    Ok(Acquired {
        leases: answer.leases.into_iter().map(|it| lease(it, member)).collect(),
        held: answer.held.into_iter().map(held).collect::<Result<_>>()?,
    })
}

pub(super) fn slots(answer: said::WorkersResponse) -> Result<Vec<SlotInfo>> {
    answer.slots.into_iter().map(slot).collect()
}

fn slot(slot: said::Slot) -> Result<SlotInfo> {
    Ok(SlotInfo {
        pool: slot.pool,
        slot: slot.slot,
        term: Term::new(slot.term),
        mark: Mark::new(slot.mark),
        owner: slot.owner,
        holder: slot.holder.map(|holder| incarnation(&holder)).transpose()?,
        host: slot.host,
        process: slot.process,
        joined_at: slot.joined_at.map(UnixMillis::new),
        held_since: UnixMillis::new(slot.held_since),
        renewed_at: slot.renewed_at.map(UnixMillis::new),
        live: slot.live,
    })
}

pub(super) fn segment(answer: &said::ReserveResponse) -> Segment {
    let &said::ReserveResponse { first, last, version, catalog_version, writes, at, .. } = answer;
    Segment { first, last, version, catalog_version, writes, at: at.map(UnixMillis::new) }
}

/// Returns the state; `None` for a newer server's.
fn state(state: i32) -> Result<Option<SourceState>> {
    Ok(match said::State::try_from(state) {
        Ok(said::State::Enabled) => Some(SourceState::Enabled),
        Ok(said::State::Disabled) => Some(SourceState::Disabled),
        Ok(said::State::Deleted) => Some(SourceState::Deleted),
        Ok(said::State::Unspecified) => there("state of a source", None)?,
        Err(_) => None,
    })
}

fn definition(definition: said::Definition, state: SourceState) -> Definition {
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

pub(super) fn defined(answer: said::DefinitionResponse) -> Result<Definition> {
    let said = there("definition", answer.definition)?;
    let state = state(said.state)?.ok_or_else(|| {
        Error::unsupported(format!(
            "source {:?} has state {}, unknown to this version; update this program",
            said.name, said.state
        ))
    })?;
    Ok(definition(said, state))
}

pub(super) fn catalog(answer: said::ListResponse) -> Result<Catalog> {
    // With a state that is unknown here, the source cannot be used here.
    let each = |each: said::Definition| {
        let state = state(each.state)?.unwrap_or(SourceState::Disabled);
        Ok(definition(each, state))
    };
    let definitions = answer.definitions.into_iter().map(each).collect::<Result<_>>()?;
    Ok(Catalog { version: answer.version, definitions })
}
