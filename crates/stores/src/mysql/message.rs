//! An extension in one message, which the server parses once and keeps. The fastest form differs
//! (measured: bench/README.md). MySQL has compound statements only within procedures, and waits for
//! the client to read each result of several statements. An `UPDATE` over several tables makes a
//! temporary table, which is slow in MariaDB.

use sqlx::mysql::{MySqlConnection, MySqlRow};
use sqlx::{MySql as Database, Row as _};

use super::texts::{ISOLATION, NOW_MS, SERVER, SETTINGS, TIMEOUTS};
use crate::sql::{Value, bound, extending};

/// Form of the one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// One compound statement of short ones: MariaDB from 10.6, which can keep it.
    Compound,
    /// One `UPDATE` over the tables.
    Joined,
}

/// Like every step that writes, both forms lock the store's row first. A writing statement reads
/// the newest version of other rows. The write count is returned as the last inserted number, 0 if
/// nothing was written. The write itself locks the row, and an unneeded write is rolled back. This
/// saves a statement in the usual case, where the extension succeeds.
///
/// The connection does not autocommit, so the transaction begins with the first statement.
const COMPOUND: &str = "BEGIN NOT ATOMIC
    UPDATE snowmint_store SET row_changes = row_changes + 1, writes = LAST_INSERT_ID(writes + 1)
    WHERE id = ?12 AND writes >= ?8 AND server = {SERVER};
    UPDATE snowmint_slot SET mark = ?6, extend_request = ?7, changes = changes + 1
    WHERE namespace = ?1 AND pool = ?2 AND slot = ?3
        AND term = ?4 AND mark = ?5 AND ?10 <= {NOW} AND ROW_COUNT() = 1
        AND holder = COALESCE(?11, holder)
        AND ?9 = COALESCE(
            (SELECT catalog_version FROM snowmint_namespace WHERE namespace = ?1), 0);
    IF ROW_COUNT() = 1 THEN
        COMMIT;
        SELECT CAST(LAST_INSERT_ID() AS SIGNED);
    ELSE
        ROLLBACK;
        SELECT 0;
    END IF;
    END";

/// Each table is found by values of the table before it, so it is neither read nor locked before
/// that.
const JOINED: &str = "UPDATE snowmint_store
    STRAIGHT_JOIN snowmint_slot ON snowmint_slot.namespace = ?1 AND snowmint_slot.pool = ?2
        AND snowmint_slot.slot = ?3 * snowmint_store.only_one
    LEFT JOIN snowmint_namespace ON snowmint_namespace.namespace = snowmint_slot.namespace
    SET snowmint_store.row_changes = snowmint_store.row_changes + 1,
        snowmint_store.writes = LAST_INSERT_ID(snowmint_store.writes + 1),
        snowmint_slot.mark = ?6, snowmint_slot.extend_request = ?7,
        snowmint_slot.changes = snowmint_slot.changes + 1
    WHERE snowmint_store.only_one = 1
        AND snowmint_store.id = ?12 AND snowmint_store.writes >= ?8 AND snowmint_store.server = {SERVER}
        AND snowmint_slot.term = ?4 AND snowmint_slot.mark = ?5 AND ?10 <= {NOW}
        AND snowmint_slot.holder = COALESCE(?11, snowmint_slot.holder)
        AND COALESCE(snowmint_namespace.catalog_version, 0) = ?9";

impl Message {
    /// Returns the form for a server with this `VERSION()`.
    pub(super) fn of(version: &str) -> Self {
        let mut numbers = version.split(['.', '-']).map(|number| number.parse().unwrap_or(0));
        let first_two = [numbers.next(), numbers.next()].map(Option::unwrap_or_default);
        let keeps_compounds = version.contains("MariaDB") && first_two >= [10_u32, 6];
        if keeps_compounds { Self::Compound } else { Self::Joined }
    }

    /// Returns the first statements on a connection for this form.
    pub(super) const fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Compound => &[TIMEOUTS, ISOLATION, "SET SESSION autocommit = 0"],
            Self::Joined => SETTINGS,
        }
    }

    /// Sends the message and returns the last inserted number.
    pub(super) async fn send(
        self,
        connection: &mut MySqlConnection,
        values: &[Value; extending::PLACES],
    ) -> Result<u64, sqlx::Error> {
        let (statement, values) = ordered(&self.statement(), values);
        let query = bound::<Database>(statement, values);
        match self {
            Self::Compound => {
                let rows: Vec<MySqlRow> = query.fetch_all(connection).await?;
                let row = rows.last().ok_or(sqlx::Error::RowNotFound)?;
                Ok(row.try_get::<i64, _>(0)?.cast_unsigned())
            }
            Self::Joined => Ok(query.execute(connection).await?.last_insert_id()),
        }
    }

    fn statement(self) -> String {
        let statement = match self {
            Self::Compound => COMPOUND,
            Self::Joined => JOINED,
        };
        statement.replace("{NOW}", NOW_MS).replace("{SERVER}", SERVER)
    }
}

/// Returns the statement with a question mark for each `?1`, `?2`, …, and the values in that order.
fn ordered(statement: &str, values: &[Value]) -> (String, Vec<Value>) {
    let mut parts = statement.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut ordered = Vec::new();
    for part in parts {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let place: Option<usize> = part.strip_suffix(rest).and_then(|place| place.parse().ok());
        let value = place.and_then(|place| values.get(place.checked_sub(1)?));
        ordered.push(value.cloned().unwrap_or(Value::Null));
        text.push('?');
        text.push_str(rest);
    }
    (text, ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_the_statement_order() {
        let values: Vec<_> = (101..=112).map(Value::Integer).collect();
        for (message, order) in [
            (
                Message::Compound,
                [112, 108, 106, 107, 101, 102, 103, 104, 105, 110, 111, 109, 101].as_slice(),
            ),
            (Message::Joined, &[101, 102, 103, 106, 107, 112, 108, 104, 105, 110, 111, 109]),
        ] {
            let (text, ordered) = ordered(&message.statement(), &values);
            assert!(text.contains("mark = ? AND ? <= CAST("), "{text}");
            assert!(!text.contains(['{', '}']), "{text}");
            let order: Vec<_> = order.iter().copied().map(Value::Integer).collect();
            assert_eq!(ordered, order);
        }
    }

    #[test]
    fn compound_statement_support_follows_the_version() {
        for (version, message) in [
            ("10.11.19-MariaDB-0+deb12u1", Message::Compound),
            ("12.0.2-MariaDB", Message::Compound),
            ("10.6.2-MariaDB-log", Message::Compound),
            ("10.5.29-MariaDB", Message::Joined),
            ("9.7.4-2", Message::Joined),
            ("11.1", Message::Joined),
            ("", Message::Joined),
        ] {
            assert_eq!(Message::of(version), message, "{version}");
        }
    }
}
