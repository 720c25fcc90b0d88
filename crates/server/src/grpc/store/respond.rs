//! Results of the store, as responses.

use snowmint_coord::error::chain;
use snowmint_coord::{Error as StoreError, ErrorKind, Result as StoreResult};
use snowmint_store_rpc::{Codec, StoreResponse};
use snowmint_wire::error::Code;
use tonic::{Response, Status};

use crate::error::Error;

/// Writes any result of the store, for a caller that may read details if `in_full`; a status when
/// the store is closed.
pub(super) fn respond<T: Codec<A>, A: StoreResponse>(
    result: StoreResult<T>,
    in_full: bool,
) -> Result<Response<A>, Status> {
    match result {
        Ok(done) => Ok(Response::new(done.write())),
        Err(error) => rejected(error, in_full),
    }
}

/// Writes an error of the store.
pub(super) fn rejected<A: StoreResponse>(
    error: StoreError,
    in_full: bool,
) -> Result<Response<A>, Status> {
    // This server's state, not the caller's fault: another server may have the store open.
    if matches!(error.kind(), ErrorKind::Closed) {
        return Err(
            Error::new(Code::Closed, "server has closed its store; call another server").into()
        );
    }
    let mut message = A::default();
    *message.error() = Some(for_caller(error, in_full).write());
    Ok(Response::new(message))
}

/// Returns an error without what the caller may not read. The back end's own text stays in the
/// log: it may name hosts, paths and users.
pub(super) fn for_caller(error: StoreError, in_full: bool) -> StoreError {
    if std::error::Error::source(&error).is_some() {
        tracing::warn!(error = %chain(&error), "the store rejected a call of an embedded client");
    }
    if in_full { error } else { error.without_detail() }
}
