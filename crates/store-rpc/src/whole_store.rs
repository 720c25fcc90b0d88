//! The store as a whole: its clock, its identity, and its recovery.

use snowmint_coord::{Mark, Recalled, StoreIdentity};
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
    StoreIdentity as Identity { id, writes } = [StoreIdentity { id, writes }];
    (String, Mark) as SourceMark { source, mark } = [(source, mark)];
}

pub(crate) fn short(who: String) -> Result<String, Malformed> {
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
