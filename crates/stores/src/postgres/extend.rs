//! An extension in one statement.

use snowmint_coord::Extend;
use snowmint_coord::verbs::{Failure, Seen};
use sqlx::Postgres as Database;

use super::{NOW_MS, Postgres, SERVER};
use crate::sql::network::{Boxed, is_lost};
use crate::sql::{bound, extending, read};

/// Like every step that writes, the statement locks the store's row first. It succeeds only if that
/// row did not change since the statement began. Then no other step ended meanwhile, and the
/// statement sees the newest version of the other rows.
const EXTEND: &str = "WITH store AS (
    UPDATE snowmint_store SET writes = writes + 1, row_changes = row_changes + 1
    WHERE id = $12 AND writes >= $8 AND writes = (SELECT writes FROM snowmint_store)
        AND $9 = COALESCE(
            (SELECT catalog_version FROM snowmint_namespace WHERE namespace = $1), 0)
        AND EXISTS (
            SELECT FROM snowmint_slot
            WHERE namespace = $1 AND pool = $2 AND slot = $3 AND term = $4 AND mark = $5
                AND holder = COALESCE($11, holder))";
const MOVE: &str = "RETURNING writes)
UPDATE snowmint_slot SET mark = $6, extend_request = $7, changes = changes + 1 FROM store
WHERE namespace = $1 AND pool = $2 AND slot = $3 RETURNING store.writes";

impl Postgres {
    /// Returns the write count after the extension; none if nothing was done.
    pub(super) async fn extend_in_one(
        &self,
        item: &Extend,
        seen: &Seen,
    ) -> Result<Option<u64>, Failure<sqlx::Error>> {
        // A server that does not report its identity is not compared.
        let server = match self.mute {
            Some(_) => String::new(),
            None => format!("AND server = {SERVER}"),
        };
        let statement = format!("{EXTEND} AND $10 <= {NOW_MS} {server} {MOVE}");
        let values = extending::values(&self.namespace, item, seen)?;
        let query = bound::<Database>(statement, values.into());
        let mut connection = self.own.checkout().await.map_err(Failure::Backend)?;
        let row: Boxed<'_, _> = Box::pin(async { query.fetch_optional(&mut connection).await });
        let row = match row.await {
            Ok(row) => row,
            // The verb over rows recognizes a repeated request that was already applied.
            Err(error) if is_overtaken(&error) || is_lost(&error) => return Ok(None),
            Err(error) => return Err(Failure::Backend(error)),
        };
        self.own.put(connection);
        let writes =
            row.as_ref().map(read).transpose().map_err(Failure::Backend)?.map(extending::writes);
        writes.transpose()
    }
}

/// Returns whether the statement lost to another transaction. A database with a stricter isolation
/// level fails a transaction that waited for another.
fn is_overtaken(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| code == "40001")
}
