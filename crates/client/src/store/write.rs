//! Requests to the store, as messages.

use snowmint_coord::segment::NumberInterval;
use snowmint_coord::{
    Acquire, Bounds, ClaimRequest, Exclude, Extend, FastForward, Mark, Member, NewDefinition, Pool,
    Preference, Presence, Release, Relinquish, Reserve, Reuse, SourceState, StoreIdentity, Ticks,
};
use snowmint_core::UnixMillis;
use snowmint_wire::grpc::store as proto;

fn presence(presence: Presence) -> proto::Presence {
    let Presence { sample, renewals, ttl_ms } = presence;
    proto::Presence { sample: sample.get(), renewals, ttl_ms }
}

pub(super) fn join(member: &Member, own_presence: Presence, now: UnixMillis) -> proto::JoinRequest {
    let Member { incarnation, owner, host, process, address } = member.clone();
    let incarnation = incarnation.to_string();
    proto::JoinRequest {
        member: Some(proto::Member { incarnation, owner, host, process, address }),
        presence: Some(presence(own_presence)),
        now: now.get(),
    }
}

pub(super) fn renew(
    member: snowmint_coord::Incarnation,
    own_presence: Presence,
    now: UnixMillis,
) -> proto::RenewRequest {
    proto::RenewRequest {
        member: member.to_string(),
        presence: Some(presence(own_presence)),
        now: now.get(),
    }
}

pub(super) fn recall(who: &str, seen: &StoreIdentity) -> proto::RecallRequest {
    let StoreIdentity { id, writes } = seen.clone();
    proto::RecallRequest { who: who.into(), seen: Some(proto::Identity { id, writes }) }
}

fn pool(pool: &Pool) -> proto::Pool {
    let reuse = match pool.reuse {
        Reuse::Recycle => proto::Reuse::Recycle,
        Reuse::Never => proto::Reuse::Never,
        Reuse::Ordered => proto::Reuse::Ordered,
    };
    proto::Pool {
        name: pool.name.clone(),
        slots: pool.slots,
        group: pool.group,
        reuse: reuse.into(),
    }
}

pub(super) fn claim(claim: &ClaimRequest, now: UnixMillis) -> proto::ClaimRequest {
    use proto::claim_request::Preference as ProtoPreference;
    proto::ClaimRequest {
        pool: Some(pool(&claim.pool)),
        member: claim.member.to_string(),
        owner: claim.owner.clone(),
        count: claim.count,
        preference: match claim.preference {
            Preference::Any => None,
            Preference::LastOfOwner => Some(ProtoPreference::LastOfOwner(true)),
            // Through servers no claim outranks another.
            Preference::Exactly(group) | Preference::Configured(group) => {
                Some(ProtoPreference::Exactly(group))
            }
        },
        supersedes: claim.supersedes.map(|member| member.to_string()),
        mark_at_most: claim.mark_at_most.get(),
        request: claim.request,
        now: now.get(),
    }
}

pub(super) fn exclude(exclude: &Exclude, now: UnixMillis) -> proto::ExcludeRequest {
    proto::ExcludeRequest {
        pool: Some(pool(&exclude.pool)),
        slots: exclude.slots.clone(),
        until: exclude.until.get(),
        label: exclude.label.clone(),
        now: now.get(),
    }
}

pub(super) fn extend(items: &[Extend], now: UnixMillis) -> proto::ExtendRequest {
    let item = |item: &Extend| proto::Extend {
        pool: item.pool.clone(),
        slot: item.slot,
        term: item.term.get(),
        from: item.from.get(),
        to: item.to.get(),
        request: item.request,
        ahead_max_ms: item.ahead_max_ms,
        member: item.holder.map(|member| member.to_string()),
    };
    proto::ExtendRequest { items: items.iter().map(item).collect(), now: now.get() }
}

pub(super) fn release(release: &Release, now: UnixMillis) -> proto::ReleaseRequest {
    proto::ReleaseRequest {
        pool: release.pool.clone(),
        slot: release.slot,
        term: release.term.get(),
        mark: release.mark.get(),
        from: release.from.map(|mark| mark.get()),
        member: release.holder.map(|member| member.to_string()),
        now: now.get(),
    }
}

pub(super) fn acquire(acquire: &Acquire, now: UnixMillis) -> proto::AcquireRequest {
    let silent = acquire.stalled.iter().map(|stalled| proto::Silent {
        member: stalled.member.to_string(),
        renewals: stalled.renewals,
    });
    proto::AcquireRequest {
        pool: Some(pool(&acquire.pool)),
        member: acquire.member.to_string(),
        owner: acquire.owner.clone(),
        slots: acquire.slots.clone(),
        silent: silent.collect(),
        supersedes: acquire.supersedes.map(|member| member.to_string()),
        length: acquire.length,
        request: acquire.request,
        now: now.get(),
    }
}

pub(super) fn relinquish(relinquish: &Relinquish, now: UnixMillis) -> proto::RelinquishRequest {
    let slots =
        relinquish.slots.iter().map(|&(slot, term)| proto::HeldBy { slot, term: term.get() });
    proto::RelinquishRequest {
        pool: relinquish.pool.clone(),
        member: relinquish.member.to_string(),
        slots: slots.collect(),
        now: now.get(),
    }
}

pub(super) fn reserve(reserve: &Reserve) -> proto::ReserveRequest {
    proto::ReserveRequest {
        source: reserve.source.clone(),
        length: reserve.length,
        definition_version: reserve.definition_version,
        within: match reserve.within {
            Some(Bounds::Range(NumberInterval { first, end })) => {
                Some(proto::Within { first, end })
            }
            _ => None,
        },
        now: match reserve.within {
            Some(Bounds::Now(now)) => Some(ticks(now)),
            _ => None,
        },
    }
}

fn ticks(ticks: Ticks) -> proto::Ticks {
    let Ticks { epoch, unit_ms, sequence_bits, tick_max, lag, lead, now } = ticks;
    let (epoch, now, sequence_bits) = (epoch.get(), now.get(), sequence_bits.into());
    proto::Ticks { epoch, unit_ms, sequence_bits, tick_max, lag, lead, now }
}

pub(super) fn definition(new: &NewDefinition) -> proto::NewDefinition {
    let NewDefinition { name, spec, identity, enabled } = new.clone();
    proto::NewDefinition { name, spec, identity, enabled }
}

pub(super) fn state(name: &str, state: SourceState) -> proto::SetStateRequest {
    let state = match state {
        SourceState::Enabled => proto::State::Enabled,
        SourceState::Disabled => proto::State::Disabled,
        SourceState::Deleted => proto::State::Deleted,
    };
    proto::SetStateRequest { name: name.to_owned(), state: state.into() }
}

pub(super) fn fast_forward(forward: &FastForward) -> proto::FastForwardRequest {
    // Every field by its name, so that none is forgotten.
    let FastForward {
        marks_at_least,
        segments,
        writes_at_least,
        recoveries_at_least,
        catalog_at_least,
        // Servers do not forward the store's standing, so no client plans on it.
        planned_on: _,
        forget_journals,
        new_identity,
    } = forward.clone();
    let segment = |(source, mark): (String, Mark)| proto::SourceMark { source, mark: mark.get() };
    proto::FastForwardRequest {
        marks_at_least: marks_at_least.get(),
        segments: segments.into_iter().map(segment).collect(),
        writes_at_least,
        new_identity,
        recoveries_at_least,
        forget_journals,
        catalog_at_least,
    }
}
