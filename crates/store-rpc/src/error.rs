//! Errors of a store.

use snowmint_coord::{Error, ErrorParts, Holder, PoolFull, Retry};
use snowmint_wire::grpc::store as proto;

use crate::codec::{Codec, codec};
use crate::malformed::Malformed;

codec! {
    Holder as Holder { slot, member, owner, lapses_at }
        = [Holder { slot, incarnation: member, owner, expires_at: lapses_at }];
    PoolFull as PoolFull {
        pool, groups, only, held, marked_ahead, holders, usable_at, usable_in_ms, by_recovery,
    } = [PoolFull {
        pool, groups, only, held, marked_ahead, holders, usable_at, usable_in_ms, by_recovery,
    }];
}

/// The source stays where the error arose.
impl Codec<proto::Error> for Error {
    fn write(self) -> proto::Error {
        let ErrorParts { code, texts, numbers, full } = self.kind().parts();
        let retry_after_ms = match self.retry() {
            Retry::Never => None,
            Retry::Now => Some(0),
            Retry::AfterMs(ms) => Some(ms),
        };
        let (message, detail) = (self.message().into(), self.detail().unwrap_or_default().into());
        let pool_full = full.map(PoolFull::write);
        proto::Error { code, texts, numbers, pool_full, retry_after_ms, message, detail }
    }

    fn read(error: proto::Error) -> Result<Self, Malformed> {
        Ok(store_error(error))
    }
}

/// Returns the error in a response. It is `Unsupported` when a newer server sent it.
#[must_use]
pub fn store_error(error: proto::Error) -> Error {
    let proto::Error { code, texts, numbers, pool_full, retry_after_ms, message, detail } = error;
    let full = pool_full.and_then(|full| PoolFull::read(full).ok());
    let retry = match retry_after_ms {
        None => Retry::Never,
        Some(0) => Retry::Now,
        Some(ms) => Retry::AfterMs(ms),
    };
    let parts = ErrorParts { code, texts, numbers, full };
    let error = Error::from_parts(parts, message).with_retry(retry);
    if detail.is_empty() { error } else { error.with_detail(detail) }
}
