//! Requests to the store, as messages.

use snowmint_coord::segment::Within;
use snowmint_coord::{
    Acquire, Bounds, ClaimRequest, Exclude, Extend, FastForward, Mark, Member, NewDefinition, Pool,
    Preference, Presence, Release, Relinquish, Reserve, Reuse, SourceState, StoreIdentity, Ticks,
};
use snowmint_core::UnixMillis;
use snowmint_wire::grpc::store as said;

fn presence(presence: Presence) -> said::Presence {
    let Presence { sample, renewals, ttl_ms } = presence;
    said::Presence { sample: sample.get(), renewals, ttl_ms }
}

pub(super) fn join(member: &Member, said_of: Presence, now: UnixMillis) -> said::JoinRequest {
    let Member { incarnation, owner, host, process, address } = member.clone();
    let incarnation = incarnation.to_string();
    said::JoinRequest {
        member: Some(said::Member { incarnation, owner, host, process, address }),
        presence: Some(presence(said_of)),
        now: now.get(),
    }
}

pub(super) fn renew(
    member: snowmint_coord::Incarnation,
    said_of: Presence,
    now: UnixMillis,
) -> said::RenewRequest {
    said::RenewRequest {
        member: member.to_string(),
        presence: Some(presence(said_of)),
        now: now.get(),
    }
}

pub(super) fn recall(who: &str, seen: &StoreIdentity) -> said::RecallRequest {
    let StoreIdentity { id, writes } = seen.clone();
    said::RecallRequest { who: who.into(), seen: Some(said::Identity { id, writes }) }
}

fn pool(pool: &Pool) -> said::Pool {
    let reuse = match pool.reuse {
        Reuse::Recycle => said::Reuse::Recycle,
        Reuse::Never => said::Reuse::Never,
        Reuse::Ordered => said::Reuse::Ordered,
    };
    said::Pool {
        name: pool.name.clone(),
        slots: pool.slots,
        group: pool.group,
        reuse: reuse.into(),
    }
}

pub(super) fn claim(claim: &ClaimRequest, now: UnixMillis) -> said::ClaimRequest {
    use said::claim_request::Preference as Said;
    said::ClaimRequest {
        pool: Some(pool(&claim.pool)),
        member: claim.member.to_string(),
        owner: claim.owner.clone(),
        count: claim.count,
        preference: match claim.preference {
            Preference::Any => None,
            Preference::LastOfOwner => Some(Said::LastOfOwner(true)),
            Preference::Exactly(group) => Some(Said::Exactly(group)),
        },
        supersedes: claim.supersedes.map(|member| member.to_string()),
        mark_at_most: claim.mark_at_most.get(),
        request: claim.request,
        now: now.get(),
    }
}

pub(super) fn exclude(exclude: &Exclude, now: UnixMillis) -> said::ExcludeRequest {
    said::ExcludeRequest {
        pool: Some(pool(&exclude.pool)),
        slots: exclude.slots.clone(),
        until: exclude.until.get(),
        label: exclude.label.clone(),
        now: now.get(),
    }
}

pub(super) fn extend(items: &[Extend], now: UnixMillis) -> said::ExtendRequest {
    let item = |item: &Extend| said::Extend {
        pool: item.pool.clone(),
        slot: item.slot,
        term: item.term.get(),
        from: item.from.get(),
        to: item.to.get(),
        request: item.request,
        ahead_max_ms: item.ahead_max_ms,
        member: item.holder.map(|member| member.to_string()),
    };
    said::ExtendRequest { items: items.iter().map(item).collect(), now: now.get() }
}

pub(super) fn release(release: &Release, now: UnixMillis) -> said::ReleaseRequest {
    said::ReleaseRequest {
        pool: release.pool.clone(),
        slot: release.slot,
        term: release.term.get(),
        mark: release.mark.get(),
        from: release.from.map(|mark| mark.get()),
        member: release.holder.map(|member| member.to_string()),
        now: now.get(),
    }
}

pub(super) fn acquire(acquire: &Acquire, now: UnixMillis) -> said::AcquireRequest {
    let silent = acquire.silent.iter().map(|silent| said::Silent {
        member: silent.member.to_string(),
        renewals: silent.renewals,
    });
    said::AcquireRequest {
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

pub(super) fn relinquish(relinquish: &Relinquish, now: UnixMillis) -> said::RelinquishRequest {
    let slots =
        relinquish.slots.iter().map(|&(slot, term)| said::HeldBy { slot, term: term.get() });
    said::RelinquishRequest {
        pool: relinquish.pool.clone(),
        member: relinquish.member.to_string(),
        slots: slots.collect(),
        now: now.get(),
    }
}

pub(super) fn reserve(reserve: &Reserve) -> said::ReserveRequest {
    said::ReserveRequest {
        source: reserve.source.clone(),
        length: reserve.length,
        definition_version: reserve.definition_version,
        within: match reserve.within {
            Some(Bounds::Range(Within { first, end })) => Some(said::Within { first, end }),
            _ => None,
        },
        now: match reserve.within {
            Some(Bounds::Now(now)) => Some(ticks(now)),
            _ => None,
        },
    }
}

fn ticks(ticks: Ticks) -> said::Ticks {
    let Ticks { epoch, unit_ms, sequence_bits, tick_max, lag, lead, now } = ticks;
    let (epoch, now, sequence_bits) = (epoch.get(), now.get(), sequence_bits.into());
    said::Ticks { epoch, unit_ms, sequence_bits, tick_max, lag, lead, now }
}

pub(super) fn definition(new: &NewDefinition) -> said::NewDefinition {
    let NewDefinition { name, spec, identity, enabled } = new.clone();
    said::NewDefinition { name, spec, identity, enabled }
}

pub(super) fn state(name: &str, state: SourceState) -> said::SetStateRequest {
    let state = match state {
        SourceState::Enabled => said::State::Enabled,
        SourceState::Disabled => said::State::Disabled,
        SourceState::Deleted => said::State::Deleted,
    };
    said::SetStateRequest { name: name.to_owned(), state: state.into() }
}

pub(super) fn fast_forward(forward: &FastForward) -> said::FastForwardRequest {
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
    let segment = |(source, mark): (String, Mark)| said::SourceMark { source, mark: mark.get() };
    said::FastForwardRequest {
        marks_at_least: marks_at_least.get(),
        segments: segments.into_iter().map(segment).collect(),
        writes_at_least,
        new_identity,
        recoveries_at_least,
        forget_journals,
        catalog_at_least,
    }
}
