//! Slots of pools: worker numbers, external leases and sections.

use proto::claim_request::Preference as ProtoPreference;
use snowmint_coord::{
    Error, Extend, Extended, Incarnation, Lease, Mark, Pool, Preference, Reuse, SlotInfo,
    StalledMember, Term,
};
use snowmint_wire::grpc::store as proto;

use crate::codec::{Codec, codec};
use crate::malformed::Malformed;

codec! {
    Pool as Pool { name, slots, group, reuse } = [Pool { name, slots, group, reuse }];
    // The holder is the member that called.
    Lease as Lease { pool, slot, term, floor, mark }
        = [Lease { pool, slot, term, holder, floor, mark }] with holder = None;
    Extend as Extend { pool, slot, term, from, to, request, ahead_max_ms, member }
        = [Extend { pool, slot, term, holder: member, from, to, request, ahead_max_ms }];
    Extended as Extended { error: none, mark, catalog_version, writes }
        = [Extended { mark, catalog_version, writes }];
    StalledMember as Silent { member, renewals } = [StalledMember { member, renewals }];
    (u64, Incarnation) as Held { slot, member } = [(slot, member)];
    (u64, Term) as HeldBy { slot, term } = [(slot, term)];
    SlotInfo as Slot {
        pool, slot, term, mark, owner, holder, host, process, joined_at, held_since, renewed_at,
        live,
    } = [SlotInfo {
        pool, slot, term, mark, owner, holder, host, process, joined_at, held_since, renewed_at,
        live, kept_away,
    }] with kept_away = mark == Mark::MAX;
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
