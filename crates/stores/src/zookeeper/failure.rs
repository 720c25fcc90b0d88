//! Mapping of ZooKeeper's errors to errors of the domain.

use snowmint_coord::verbs::emptied;
use snowmint_coord::{Error as CoordError, ErrorKind};
use zookeeper_client::Error;

/// Maps ZooKeeper's error to an error of the domain.
pub(super) fn explain(op: &'static str, label: &str, error: Error) -> CoordError {
    let what = label.to_owned();
    let kind = match &error {
        Error::NoHosts
        | Error::Timeout
        | Error::ConnectionLoss
        | Error::SessionExpired
        | Error::SessionMoved
        | Error::ClientClosed
        | Error::Throttled
        | Error::NotReadOnly
        // The operating system's error of a connection.
        | Error::Custom(_) => ErrorKind::Unavailable { what },
        Error::NoAuth => ErrorKind::NoRight { what },
        Error::AuthFailed => {
            ErrorKind::Invalid { what: format!("{label} refuses this user or password") }
        }
        Error::QuotaExceeded => ErrorKind::StorageFull { what },
        Error::BadArguments(why) => ErrorKind::Invalid { what: format!("{label}: {why}") },
        Error::NoNode => {
            return emptied(label, "a node that is always there is gone").with_source(error);
        }
        _ => ErrorKind::Internal { what: format!("{label} refused a request") },
    };
    CoordError::new(op, kind).with_source(error)
}
