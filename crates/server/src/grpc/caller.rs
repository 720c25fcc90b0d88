//! The service for the caller of a gRPC request.

use tonic::Request;

use crate::access::Caller;
use crate::service::Service;

/// Returns the service, acting for the caller.
pub(super) fn of_caller<T>(service: &Service, request: &Request<T>) -> Service {
    match request.extensions().get::<Caller>() {
        Some(caller) => service.for_caller(caller.clone()),
        // A request without a caller is anonymous.
        None => service.clone(),
    }
}
