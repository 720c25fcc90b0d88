//! An extend in one statement.

use snowmint_coord::Extend;
use sqlx::Postgres;

use super::{NOW_MS, PgPool, SERVER};
use crate::sql::network::Boxed;
use crate::sql::{bound, extending, read};
use crate::verbs::{Failure, Seen};

/// As every step that writes, it has the store's row first. That row is as it was when the statement began:
/// so nobody ended a step meanwhile, and what the statement sees of the other rows is the newest.
const EXTEND: &str = "WITH store AS (SELECT writes, server FROM snowmint_store FOR UPDATE),
moved AS (
    UPDATE snowmint_slot SET mark = $6, extend_request = $7, changes = changes + 1 FROM store
    WHERE namespace = $1 AND pool = $2 AND slot = $3 AND term = $4 AND mark = $5
        AND store.writes >= $8 AND store.writes = (SELECT writes FROM snowmint_store)
        AND $9 = COALESCE(
            (SELECT catalog_version FROM snowmint_namespace WHERE namespace = $1), 0)
    ";
const COUNT: &str = "RETURNING 1)
UPDATE snowmint_store SET writes = snowmint_store.writes + 1, row_changes = row_changes + 1
FROM moved RETURNING snowmint_store.writes";

/// The count of writes after it; none where it was not done. `is_mute`: the server does not say who it is.
pub(super) async fn extend(
    pool: &PgPool,
    namespace: &str,
    is_mute: bool,
    item: &Extend,
    seen: Seen,
) -> Result<Option<u64>, Failure<sqlx::Error>> {
    let server = if is_mute { String::new() } else { format!("AND store.server = {SERVER}") };
    let statement = format!("{EXTEND} AND $10 <= {NOW_MS} {server} {COUNT}");
    let values = extending::values(namespace, item, seen)?;
    let query = bound::<Postgres>(statement, values.into());
    let row: Boxed<'_, _> = Box::pin(async { query.fetch_optional(pool).await });
    let row = match row.await {
        Ok(row) => row,
        Err(error) if is_overtaken(&error) => None,
        Err(error) => return Err(error.into()),
    };
    let writes = row.as_ref().map(read).transpose()?.map(extending::writes);
    writes.transpose()
}

/// Where the database's transactions are stricter than ours, one that waited for another fails.
fn is_overtaken(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| code == "40001")
}
