//! Mapping of Redis's errors to errors of the domain.

use redis::{ErrorKind as Kind, RedisError, ServerErrorKind};
use snowmint_coord::Error;

use crate::failure::{Class, Sentence};

/// Form of a URL.
const FORM: &str =
    "redis://USER@HOST:PORT/DATABASE, with TLS rediss://USER@HOST:PORT/DATABASE?ca=FILE";

/// Maps Redis's error to an error of the domain.
pub(crate) fn map_error(label: &str, error: RedisError, sentence: Sentence) -> Error {
    sentence(class(&error), label).with_source(error)
}

/// Returns the class of an error, by its code:
/// <https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors>.
fn class(error: &RedisError) -> Class {
    match (error.kind(), error.code().unwrap_or_default()) {
        (_, "OOM" | "MISCONF") => Class::StorageFull,
        (Kind::Server(ServerErrorKind::ReadOnly), _) => Class::ReadOnly,
        _ if lacks_permission(error) => Class::PermissionDenied,
        (Kind::AuthenticationFailed, _) | (_, "NOAUTH" | "WRONGPASS") => Class::Credentials,
        (Kind::InvalidClientConfig, _) => Class::BadUrl(FORM),
        (Kind::Parse | Kind::UnexpectedReturnType, _) => Class::Corrupt,
        (Kind::Io | Kind::ClusterConnectionNotFound, _)
        | (
            Kind::Server(
                ServerErrorKind::BusyLoading
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::Moved
                | ServerErrorKind::Ask,
            ),
            _,
        )
        | (_, "BUSY" | "NOREPLICAS") => Class::Unavailable,
        _ => Class::Internal,
    }
}

/// Returns whether a permission is missing. A script without permission fails with a text instead
/// of a code, which differs between 7.0 and versions from 7.2 on. For a database that may not be
/// selected, the driver returns the server's text with a code of its own.
pub(super) fn lacks_permission(error: &RedisError) -> bool {
    let message = error.to_string();
    matches!(error.kind(), Kind::Server(ServerErrorKind::NoPerm))
        || ["has no permissions to", "The user executing the script can't", "ACL failure in script"]
            .iter()
            .any(|words| message.contains(words))
}
