//! Mapping of ZooKeeper's errors to errors of the domain.

use snowmint_coord::Error as CoordError;
use zookeeper_client::Error;

use super::url::FORM;
use crate::failure::Class;

/// Maps ZooKeeper's error to an error of the domain.
pub(super) fn map_error(label: &str, error: Error) -> CoordError {
    let mapped = match &error {
        Error::NoNode => CoordError::store_mismatch(format!(
            "{label} has lost a node that always exists; restore it, or move the new store forward \
             (snowmint worker fast-forward)"
        )),
        error => class(error).of_store(label),
    };
    mapped.with_source(error)
}

const fn class(error: &Error) -> Class {
    match error {
        Error::NoHosts
        | Error::Timeout
        | Error::ConnectionLoss
        | Error::SessionExpired
        | Error::SessionMoved
        | Error::ClientClosed
        | Error::Throttled
        | Error::NotReadOnly
        // The operating system's error of a connection.
        | Error::Custom(_) => Class::Unavailable,
        Error::NoAuth => Class::PermissionDenied,
        Error::AuthFailed => Class::Credentials,
        Error::QuotaExceeded => Class::StorageFull,
        // The source names the part of the URL.
        Error::BadArguments(_) => Class::BadUrl(FORM),
        _ => Class::Internal,
    }
}
