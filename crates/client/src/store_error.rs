//! Errors of the store, restored from messages.

use snowmint_coord::{Error, ErrorParts, Holder, PoolFull, Retry};
use snowmint_core::UnixMillis;
use snowmint_wire::grpc::store as proto;

/// Returns the error that a server's store responded with.
pub(crate) fn refused(error: proto::Error) -> Error {
    let proto::Error { code, texts, numbers, pool_full: full, retry_after_ms, message, detail } =
        error;
    let parts = ErrorParts { code, texts, numbers, full: full.and_then(pool_full) };
    let error = Error::from_parts(parts, message).with_retry(match retry_after_ms {
        None => Retry::Never,
        Some(0) => Retry::Now,
        Some(ms) => Retry::AfterMs(ms),
    });
    if detail.is_empty() { error } else { error.with_detail(detail) }
}

fn pool_full(full: proto::PoolFull) -> Option<PoolFull> {
    let holder = |holder: proto::Holder| {
        Some(Holder {
            slot: holder.slot,
            incarnation: holder.member.parse().ok()?,
            owner: holder.owner,
            expires_at: UnixMillis::new(holder.lapses_at),
        })
    };
    Some(PoolFull {
        pool: full.pool,
        groups: full.groups,
        only: full.only,
        held: full.held,
        marked_ahead: full.marked_ahead,
        holders: full.holders.into_iter().map(holder).collect::<Option<_>>()?,
        usable_at: full.usable_at.map(UnixMillis::new),
        usable_in_ms: full.usable_in_ms,
        by_recovery: full.by_recovery,
    })
}

/// A response that may hold an error.
pub(crate) trait Fallible {
    fn error(&mut self) -> Option<proto::Error>;
}

macro_rules! fallible {
    ($($response:ident)*) => {
        $(impl Fallible for proto::$response {
            fn error(&mut self) -> Option<proto::Error> {
                self.error.take()
            }
        })*
    };
}

fallible! {
    NowResponse IdentityResponse RecallResponse DoneResponse MembersResponse ClaimResponse
    ExtendResponse AcquireResponse WorkersResponse ReserveResponse GiveBackResponse
    DefinitionResponse ListResponse
}
