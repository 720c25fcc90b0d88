//! Members, and their presence.

use snowmint_coord::{Incarnation, Member, MemberInfo, MemberStatus, Presence, StoreIdentity};
use snowmint_wire::grpc::store as proto;

use crate::codec::{Codec, codec};
use crate::malformed::Malformed;

/// Report of a server to a member that joins or renews its presence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// The name of the member in lists, if it is not its own.
    pub known_as: Option<Incarnation>,
    /// The newest fingerprint of the store.
    pub seen: Option<StoreIdentity>,
}

codec! {
    Member as Member { incarnation, owner, host, process, address }
        = [Member { incarnation, owner, host, process, address }];
    Presence as Presence { sample, renewals, ttl_ms } = [Presence { sample, renewals, ttl_ms }];
    // Only servers receive the status.
    MemberInfo as MemberInfo {
        member: needed("member"), presence: needed("presence"), joined_at, renewed_at, live,
    } = [MemberInfo { member, presence, joined_at, renewed_at, live, status }]
        with status = MemberStatus::default();
}

/// The response of a verb without a result.
impl Codec<proto::DoneResponse> for () {
    fn write(self) -> proto::DoneResponse {
        Joined::default().write()
    }

    fn read(_: proto::DoneResponse) -> Result<Self, Malformed> {
        Ok(())
    }
}
