//! Errors of the store, restored from messages.

use snowmint_coord::{Error, ErrorParts, Holder, PoolFull, Retry};
use snowmint_core::UnixMillis;
use snowmint_wire::grpc::store as said;

/// Returns the error that a server's store responded with.
pub(crate) fn refused(refusal: said::Refusal) -> Error {
    let said::Refusal { code, texts, numbers, pool_full: full, retry_after_ms, message } = refusal;
    let parts = ErrorParts { code, texts, numbers, full: full.and_then(pool_full) };
    Error::from_parts(parts, message).with_retry(match retry_after_ms {
        None => Retry::Never,
        Some(0) => Retry::Now,
        Some(ms) => Retry::AfterMs(ms),
    })
}

fn pool_full(full: said::PoolFull) -> Option<PoolFull> {
    let holder = |holder: said::Holder| {
        Some(Holder {
            slot: holder.slot,
            incarnation: holder.member.parse().ok()?,
            owner: holder.owner,
            lapses_at: UnixMillis::new(holder.lapses_at),
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
pub(crate) trait Refusable {
    fn refusal(&mut self) -> Option<said::Refusal>;
}

macro_rules! refusable {
    ($($answer:ident)*) => {
        $(impl Refusable for said::$answer {
            fn refusal(&mut self) -> Option<said::Refusal> {
                self.refusal.take()
            }
        })*
    };
}

refusable! {
    NowResponse IdentityResponse RecallResponse DoneResponse MembersResponse ClaimResponse ExtendResponse
    TakeResponse WorkersResponse ReserveResponse GiveBackResponse DefinitionResponse ListResponse
}
