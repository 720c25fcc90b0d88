//! Description of the store that a server offers.

use snowmint_coord::{Capabilities, ClockOf, PresenceBy, StoreIdentity};
use snowmint_wire::grpc::store as proto;

use crate::codec::{Codec, codec};
use crate::malformed::Malformed;

/// Description of the store that a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The server's instance, which calls repeat.
    pub instance: String,
    /// The namespace.
    pub namespace: String,
    /// The store's identity.
    pub identity: Option<StoreIdentity>,
    /// Capabilities of the store.
    pub capabilities: Capabilities,
    /// Most slots that one claim takes from a group.
    pub group_max: u32,
    /// Warnings about the store.
    pub warnings: Vec<String>,
    /// The version of the service that the server speaks.
    pub version: u32,
    /// Name of a secondary store; empty for the server's own.
    pub store: String,
}

codec! {
    Description as DescribeResponse {
        error: none, instance, namespace, identity, has_clock, durable_on_reply,
        safe_over_failover, presence_by_session, group_max, warnings, version, store,
    } = [Description {
        instance, namespace, identity,
        capabilities: Capabilities {
            clock: has_clock, durable_on_reply, safe_over_failover, presence: presence_by_session,
        },
        group_max, warnings, version, store,
    }];
}

impl Codec<bool> for ClockOf {
    fn write(self) -> bool {
        self == Self::Store
    }

    fn read(has_clock: bool) -> Result<Self, Malformed> {
        Ok(if has_clock { Self::Store } else { Self::Caller })
    }
}

impl Codec<bool> for PresenceBy {
    fn write(self) -> bool {
        self == Self::Session
    }

    fn read(by_session: bool) -> Result<Self, Malformed> {
        Ok(if by_session { Self::Session } else { Self::Record })
    }
}
