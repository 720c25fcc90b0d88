//! Slots of pools: worker numbers, external leases and sections.

use proto::claim_request::Preference as ProtoPreference;
use snowmint_coord::{
    Acquire, Acquired, ClaimRequest, Error, Exclude, Extend, Extended, Incarnation, Lease, Mark,
    Pool, Preference, Release, Relinquish, Reuse, SlotInfo, StalledMember, Term,
};
use snowmint_core::UnixMillis;
use snowmint_wire::grpc::store as proto;

use crate::codec::{Codec, codec, few};
use crate::malformed::Malformed;

codec! {
    Pool as Pool { name, slots, group, reuse } = [Pool { name, slots, group, reuse }];
    // The holder is the member that called.
    Lease as Lease { pool, slot, term, floor, mark }
        = [Lease { pool, slot, term, holder, floor, mark }] with holder = None;

    (ClaimRequest, UnixMillis) as ClaimRequest {
        pool: needed("pool"), member, owner, count, preference, supersedes, mark_at_most, request,
        now,
    } = [(ClaimRequest {
        pool, member, owner, count, preference, supersedes, mark_at_most, request,
    }, now)];
    Vec<Lease> as ClaimResponse { error: none, leases } = [leases];

    Extend as Extend { pool, slot, term, from, to, request, ahead_max_ms, member }
        = [Extend { pool, slot, term, holder: member, from, to, request, ahead_max_ms }];
    (Vec<Extend>, UnixMillis) as ExtendRequest { items: checked(few), now } = [(items, now)];
    Extended as Extended { error: none, mark, catalog_version, writes }
        = [Extended { mark, catalog_version, writes }];
    Vec<Result<Extended, Error>> as ExtendResponse { error: none, items } = [items];

    (Release, UnixMillis) as ReleaseRequest { pool, slot, term, mark, now, from, member }
        = [(Release { pool, slot, term, holder: member, mark, from }, now)];

    StalledMember as Silent { member, renewals } = [StalledMember { member, renewals }];
    (u64, Incarnation) as Held { slot, member } = [(slot, member)];
    (Acquire, UnixMillis) as AcquireRequest {
        pool: needed("pool"), member, owner, slots: checked(few), silent: checked(few), supersedes,
        length, request, now,
    } = [(Acquire {
        pool, member, owner, slots, stalled: silent, supersedes, length, request,
    }, now)];
    Acquired as AcquireResponse { error: none, leases, held } = [Acquired { leases, held }];

    (u64, Term) as HeldBy { slot, term } = [(slot, term)];
    (Relinquish, UnixMillis) as RelinquishRequest { pool, member, slots: checked(few), now }
        = [(Relinquish { pool, member, slots }, now)];

    (Exclude, UnixMillis) as ExcludeRequest { pool: needed("pool"), slots, until, label, now }
        = [(Exclude { pool, slots, until, label }, now)];

    UnixMillis as WorkersRequest { now } = [now];
    SlotInfo as Slot {
        pool, slot, term, mark, owner, holder, host, process, joined_at, held_since, renewed_at,
        live,
    } = [SlotInfo {
        pool, slot, term, mark, owner, holder, host, process, joined_at, held_since, renewed_at,
        live, kept_away,
    }] with kept_away = mark == Mark::MAX;
    Vec<SlotInfo> as WorkersResponse { error: none, slots } = [slots];
}

impl Codec<i32> for Reuse {
    fn write(self) -> i32 {
        let reuse = match self {
            Self::Recycle => proto::Reuse::Recycle,
            Self::Never => proto::Reuse::Never,
            Self::Ordered => proto::Reuse::Ordered,
        };
        reuse.into()
    }

    fn read(reuse: i32) -> Result<Self, Malformed> {
        match proto::Reuse::try_from(reuse) {
            Ok(proto::Reuse::Recycle) => Ok(Self::Recycle),
            Ok(proto::Reuse::Never) => Ok(Self::Never),
            Ok(proto::Reuse::Ordered) => Ok(Self::Ordered),
            Ok(proto::Reuse::Unspecified) => {
                let sentence = "pool has no reuse rule; send recycle, never or ordered";
                Err(Malformed::Unspecified("reuse rule", sentence))
            }
            Err(_) => Err(Malformed::Newer(format!("reuse rule {reuse}"))),
        }
    }
}

/// Through servers no claim outranks another.
impl Codec<Option<ProtoPreference>> for Preference {
    fn write(self) -> Option<ProtoPreference> {
        match self {
            Self::Any => None,
            Self::LastOfOwner => Some(ProtoPreference::LastOfOwner(true)),
            Self::Exactly(group) | Self::Configured(group) => Some(ProtoPreference::Exactly(group)),
        }
    }

    fn read(preference: Option<ProtoPreference>) -> Result<Self, Malformed> {
        Ok(match preference {
            None | Some(ProtoPreference::LastOfOwner(false)) => Self::Any,
            Some(ProtoPreference::LastOfOwner(true)) => Self::LastOfOwner,
            Some(ProtoPreference::Exactly(group)) => Self::Exactly(group),
        })
    }
}

impl Codec<proto::Extended> for Result<Extended, Error> {
    fn write(self) -> proto::Extended {
        match self {
            Ok(extended) => extended.write(),
            Err(error) => {
                proto::Extended { error: Some(error.write()), ..proto::Extended::default() }
            }
        }
    }

    fn read(mut item: proto::Extended) -> Result<Self, Malformed> {
        match item.error.take() {
            Some(error) => Error::read(error).map(Err),
            None => Extended::read(item).map(Ok),
        }
    }
}
