//! An extend in one message: a transaction of short statements. One `UPDATE` over several tables makes a temporary
//! table each time, and takes the server six times as long as one of each table (measured: bench/README.md).

use snowmint_coord::Extend;
use sqlx::AssertSqlSafe;
use sqlx::mysql::MySqlRow;

use super::{MySql, NOW_MS, SERVER};
use crate::sql::network::is_lost;
use crate::sql::{Value, extending, read};
use crate::verbs::{Failure, Seen};

impl MySql {
    /// The count of writes after it; none where it was not done.
    pub(super) async fn extend_in_one(
        &self,
        item: &Extend,
        seen: Seen,
    ) -> Result<Option<u64>, Failure<sqlx::Error>> {
        let message = message(&extending::values(&self.namespace, item, seen)?);
        // After an error in the middle it is within a transaction, and is not put back.
        let mut connection = self.own.take().await?;
        let rows = sqlx::raw_sql(AssertSqlSafe(message)).fetch_all(&mut connection);
        let rows: Vec<MySqlRow> = match rows.await {
            Ok(rows) => rows,
            // The rows of the tables know a request again that has happened.
            Err(error) if is_lost(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.own.put(connection);
        let row = rows.last().map(read).transpose()?;
        let writes = row.map(extending::writes).transpose()?;
        Ok(writes.filter(|writes| *writes > 0))
    }
}

/// As every step that writes, it locks the store's row first. What a statement that writes reads of other rows
/// is the newest. The count of writes is answered as the number that was inserted last, 0 if nothing was written.
///
/// MariaDB reads the words in its own comments, and takes the whole for one statement with one answer.
fn message(values: &[Value; extending::PLACES]) -> String {
    let [namespace, pool, slot, term, from, to, request, writes, version, allowed_from] =
        values.each_ref().map(literal);
    format!(
        "/*M!100101 BEGIN NOT ATOMIC */ START TRANSACTION;
        SELECT LAST_INSERT_ID(0) INTO @snowmint FROM snowmint_store FOR UPDATE;
        UPDATE snowmint_slot SET mark = {to}, extend_request = {request}, changes = changes + 1
        WHERE namespace = {namespace} AND pool = {pool} AND slot = {slot}
            AND term = {term} AND mark = {from} AND {allowed_from} <= {NOW_MS}
            AND (SELECT writes >= {writes} AND server = {SERVER} FROM snowmint_store)
            AND {version} = COALESCE(
                (SELECT catalog_version FROM snowmint_namespace WHERE namespace = {namespace}), 0);
        UPDATE snowmint_store
        SET row_changes = row_changes + 1, writes = LAST_INSERT_ID(writes + 1)
        WHERE ROW_COUNT() = 1;
        COMMIT;
        SELECT CAST(LAST_INSERT_ID() AS SIGNED) /*M!100101 ; END */"
    )
}

/// A value as a part of a statement: several in one message have no places for values. Of a text, the bytes are
/// written as digits, whatever they are.
fn literal(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => {
            let digits: String = text.bytes().map(|byte| format!("{byte:02X}")).collect();
            format!("_utf8mb4 X'{digits}'")
        }
        Value::Null => "NULL".into(),
    }
}

#[test]
fn a_text_is_written_as_digits() {
    assert_eq!(literal(&Value::text("a'b")), "_utf8mb4 X'612762'");
    assert_eq!(literal(&Value::Integer(-5)), "-5");
}
