//! Store that a call is for: its name in the header, and its results as responses.

use snowmint_coord::{Definition, Error as StoreError};
use snowmint_store_rpc::{Codec, StoreResponse};
use snowmint_wire::grpc::store::DefinitionResponse;
use tonic::{Response, Status};

use super::respond::{rejected, respond};
use crate::service::NotDone;
use crate::service::programs::TargetStore;

/// Splits the header: the instance, and the name of a secondary store after it.
pub(super) fn named_by(header: &str) -> Option<(&str, &str)> {
    match header.split_once('/') {
        Some((_, "")) => None,
        Some(named) => Some(named),
        None => Some((header, "")),
    }
}

impl TargetStore {
    /// Writes any result of the store for the caller.
    pub(super) fn respond<T: Codec<A>, A: StoreResponse>(
        &self,
        result: snowmint_coord::Result<T>,
    ) -> Result<Response<A>, Status> {
        respond(result, self.in_full)
    }

    /// Writes why a call was not done; a status where its caller may not make it.
    pub(super) fn not_done<A: StoreResponse>(
        &self,
        reason: NotDone,
    ) -> Result<Response<A>, Status> {
        match reason {
            NotDone::Refused(error) => Err(error.into()),
            NotDone::Unknown(error) => self.rejected(error),
        }
    }

    /// Writes a definition that a program wrote.
    pub(super) fn written(
        &self,
        written: Result<Definition, NotDone>,
    ) -> Result<Response<DefinitionResponse>, Status> {
        written
            .map_or_else(|reason| self.not_done(reason), |definition| self.respond(Ok(definition)))
    }

    /// Writes an error of the store for the caller.
    pub(super) fn rejected<A: StoreResponse>(
        &self,
        error: StoreError,
    ) -> Result<Response<A>, Status> {
        rejected(error, self.in_full)
    }

    /// Returns the header value for calls to this store.
    pub(super) fn instance(&self, instance: &str) -> String {
        if self.secondary_store.is_empty() {
            instance.to_owned()
        } else {
            format!("{instance}/{}", self.secondary_store)
        }
    }
}
