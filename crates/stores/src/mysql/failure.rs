//! Mapping of MySQL's and MariaDB's errors to errors of the domain.

use snowmint_coord::Error;

use super::texts::FORM;
use crate::failure::{Class, Sentence};
use crate::sql::network;

/// Error number for a missing table.
pub(super) const NO_SUCH_TABLE: u16 = 1146;
/// Error number for a missing column.
pub(super) const NO_SUCH_COLUMN: u16 = 1054;
/// MySQL's error number for a connection without TLS to a server that requires it.
const NO_TLS: u16 = 3159;
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

/// Maps MySQL's error to an error of the domain.
pub(crate) fn map_error(label: &str, error: sqlx::Error, sentence: Sentence) -> Error {
    let mapped = match number(&error) {
        None => sentence(network::class(&error, FORM), label),
        Some(NO_TLS) => {
            Error::invalid(format!("{label} requires TLS; add ssl-mode=VERIFY_IDENTITY to the URL"))
        }
        Some(number) => sentence(class(number), label),
    };
    mapped.with_source(error)
}

/// Returns the class of the server's error number. Numbers from 3000 on are MySQL's alone:
/// <https://dev.mysql.com/doc/mysql-errors/9.7/en/server-error-reference.html>.
const fn class(number: u16) -> Class {
    match number {
        // Disk full, table full.
        1021 | 1114 => Class::StorageFull,
        // Read-only server or transaction.
        1290 | 1792 | 1836 => Class::ReadOnly,
        // No permission on the database, table or column, or on the server.
        1044 | 1142 | 1143 | 1227 => Class::PermissionDenied,
        1034 | 1035 | 1712 => Class::Corrupt,
        1049 => Class::NoDatabase,
        // Also from this host, for a locked user, or with an expired password.
        1045 | 1130 | 1698 | 1820 | 1862 | 3118 => Class::Credentials,
        // Another writer was faster (MariaDB's `innodb_snapshot_isolation`); too many connections,
        // shutdown, lock wait, deadlock, killed, connection lost.
        1020 | 1040 | 1053 | 1077 | 1152..=1161 | 1203 | 1205 | 1213 | 1226 | 1317 | 1927 => {
            Class::Unavailable
        }
        // Tables are being dropped and recreated, as during the load of a dump.
        1412 | 1615 => Class::Unavailable,
        3032 | 3100 | 3101 | 3168 | 3169 | ENDED_FOR_SILENCE => Class::Unavailable,
        _ => Class::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_write_race_is_retryable_like_a_deadlock() {
        for number in [1020, 1213] {
            assert_eq!(class(number), Class::Unavailable, "{number}");
        }
        assert_eq!(class(1064), Class::Internal);
    }
}
