//! The store as a whole: its clock, its identity, and its recovery.

use snowmint_coord::{FastForward, Mark, Recalled, StoreIdentity};
use snowmint_core::UnixMillis;
use snowmint_wire::grpc::store as proto;

use crate::codec::{Codec, codec};
use crate::malformed::Malformed;

/// Longest name of a reporter that recalls a store, in bytes: the response repeats it.
const WHO_BYTES_MAX: usize = 64;

/// The times of a store and of the server that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BothClocks {
    /// The store's time; `None` if it has no clock.
    pub store: Option<UnixMillis>,
    /// The server's time.
    pub server: UnixMillis,
}

codec! {
    () as NowRequest {} = [()];
    BothClocks as NowResponse { error: none, store, server } = [BothClocks { store, server }];

    StoreIdentity as Identity { id, writes } = [StoreIdentity { id, writes }];
    () as IdentityRequest {} = [()];
    StoreIdentity as IdentityResponse { error: none, identity: needed("identity") } = [identity];
    (String, StoreIdentity) as RecallRequest { seen: needed("identity"), who: checked(short) }
        = [(who, seen)];
    Recalled as RecallResponse { error: none, recovered } = [recovered];

    (String, Mark) as SourceMark { source, mark } = [(source, mark)];
    // Servers do not report the store's standing, so no plan depends on it: a program collects no
    // reports, and so recovers nothing. Nor does it accept another database server.
    FastForward as FastForwardRequest {
        marks_at_least, segments, writes_at_least, new_identity, recoveries_at_least,
        forget_journals, catalog_at_least,
    } = [FastForward {
        marks_at_least, segments, writes_at_least, recoveries_at_least, catalog_at_least,
        planned_on, forget_journals, new_identity, same_server, values_only,
    }] with planned_on = None, same_server = true, values_only = true;
    Mark as AcceptLeadRequest { until } = [until];
}

fn short(who: String) -> Result<String, Malformed> {
    if who.len() <= WHO_BYTES_MAX {
        return Ok(who);
    }
    Err(Malformed::TooLong(format!(
        "name of the reporter has {} bytes, maximum {WHO_BYTES_MAX}; shorten it",
        who.len()
    )))
}

impl Codec<bool> for Recalled {
    fn write(self) -> bool {
        self == Self::Recovered
    }

    fn read(recovered: bool) -> Result<Self, Malformed> {
        Ok(if recovered { Self::Recovered } else { Self::Same })
    }
}
