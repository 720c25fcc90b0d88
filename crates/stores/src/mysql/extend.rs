//! An extend in one statement.

use snowmint_coord::Extend;
use sqlx::MySql;

use super::{MySqlPool, NOW_MS, SERVER};
use crate::sql::network::Boxed;
use crate::sql::{bound, extending};
use crate::verbs::{Failure, Seen};

/// As every step that writes, it has the store's row first; all rows are read as they are now, because all
/// are written, the catalog's as it is. The count of writes is answered as the number that was inserted last.
const EXTEND: &str = "UPDATE snowmint_store AS store
    STRAIGHT_JOIN snowmint_slot AS slot ON slot.namespace = ? AND slot.pool = ? AND slot.slot = ?
    LEFT JOIN snowmint_namespace AS namespace ON namespace.namespace = slot.namespace
    SET slot.mark = ?, slot.extend_request = ?, slot.changes = slot.changes + 1,
        store.row_changes = store.row_changes + 1,
        store.writes = LAST_INSERT_ID(store.writes + 1),
        namespace.catalog_version = namespace.catalog_version
    WHERE slot.term = ? AND slot.mark = ? AND store.writes >= ?
        AND COALESCE(namespace.catalog_version, 0) = ?";

/// The place of each value in the statement, as [`extending::values`] numbers them from 0.
const ORDER: [usize; extending::PLACES] = [0, 1, 2, 5, 6, 3, 4, 7, 8, 9];

/// The count of writes after it; none where it was not done.
pub(super) async fn extend(
    pool: &MySqlPool,
    namespace: &str,
    item: &Extend,
    seen: Seen,
) -> Result<Option<u64>, Failure<sqlx::Error>> {
    let statement = format!("{EXTEND} AND ? <= {NOW_MS} AND store.server = {SERVER}");
    let values = extending::values(namespace, item, seen)?;
    let values = ORDER.iter().filter_map(|place| values.get(*place).cloned()).collect();
    let query = bound::<MySql>(statement, values);
    let done: Boxed<'_, _> = Box::pin(async { query.execute(pool).await });
    let done = done.await?;
    Ok((done.rows_affected() > 0).then(|| done.last_insert_id()))
}
