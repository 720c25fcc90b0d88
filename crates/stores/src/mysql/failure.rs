//! Mapping of MySQL's and MariaDB's errors to errors of the domain.

use snowmint_coord::{Error, ErrorKind};

use crate::sql::network;

/// Error number for a missing table.
pub(super) const NO_SUCH_TABLE: u16 = 1146;
/// MySQL's error number in a session that it ended because its client was silent for too long. It
/// has no SQLSTATE class of its own, unlike all errors that are recognized by class.
pub(super) const ENDED_FOR_SILENCE: u16 = 4031;

/// Returns the server's number of an error.
pub(super) fn number(error: &sqlx::Error) -> Option<u16> {
    let error = error.as_database_error()?;
    Some(error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>()?.number())
}

/// Returns whether the connection ended and another may succeed. The request may have been applied.
pub(super) fn is_lost(error: &sqlx::Error) -> bool {
    network::is_lost(error) || number(error) == Some(ENDED_FOR_SILENCE)
}

/// Maps MySQL's error to an error of the domain, by error number. Numbers from 3000 on are MySQL's
/// alone: <https://dev.mysql.com/doc/mysql-errors/9.7/en/server-error-reference.html>.
pub(crate) fn explain(op: &'static str, label: &str, error: sqlx::Error) -> Error {
    match number(&error) {
        None => network::explain(op, label, error),
        Some(number) => Error::new(op, kind(label, number)).with_source(error),
    }
}

/// Returns the error kind for the server's error number.
fn kind(label: &str, number: u16) -> ErrorKind {
    let what = label.to_owned();
    match number {
        // Disk full, table full.
        1021 | 1114 => ErrorKind::StorageFull { what },
        // Read-only server or transaction.
        1290 | 1792 | 1836 => ErrorKind::Unwritable { what },
        // No permission on the database, table or column, or on the server.
        1044 | 1142 | 1143 | 1227 => ErrorKind::NoRight { what },
        1034 | 1035 | 1712 => ErrorKind::Corrupt { what },
        1049 => ErrorKind::Invalid { what: format!("{label} has no such database; make it") },
        // Also from this host, for a locked user, or with an expired password.
        1045 | 1130 | 1698 | 1820 | 1862 | 3118 => {
            ErrorKind::Invalid { what: format!("{label} refuses this user or password") }
        }
        3159 => ErrorKind::Invalid {
            what: format!("{label} takes no connections without TLS: say ssl-mode=VERIFY_IDENTITY"),
        },
        // Another writer was faster (MariaDB's `innodb_snapshot_isolation`); too many connections,
        // shutdown, lock wait, deadlock, killed, connection lost.
        1020 | 1040 | 1053 | 1077 | 1152..=1161 | 1203 | 1205 | 1213 | 1226 | 1317 | 1927 => {
            ErrorKind::Unavailable { what }
        }
        // Tables are being dropped and recreated, as during the load of a dump.
        1412 | 1615 => ErrorKind::Unavailable { what },
        3032 | 3100 | 3101 | 3168 | 3169 | ENDED_FOR_SILENCE => ErrorKind::Unavailable { what },
        _ => ErrorKind::Internal { what: format!("{label} refused a statement") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_met_a_faster_writer_may_try_again_as_in_a_deadlock() {
        for number in [1020, 1213] {
            let kind = kind("it", number);
            assert!(matches!(kind, ErrorKind::Unavailable { .. }), "{number}: {kind:?}");
        }
        let other = kind("it", 1064);
        assert!(matches!(other, ErrorKind::Internal { .. }), "{other:?}");
    }
}
