//! Writes of rows that lie in several pools.

use std::collections::BTreeMap;

use super::rows::{Rows, RowsResult};
use crate::model::lease::SlotRow;

/// Writes rows of several pools, with one call for each pool, as there may be thousands of rows.
pub(super) async fn put_slots<'a, R: Rows>(
    rows: &mut R,
    changed: impl Iterator<Item = (&'a str, SlotRow)> + Send,
) -> RowsResult<R, ()> {
    let mut pools: BTreeMap<&str, Vec<SlotRow>> = BTreeMap::new();
    for (pool, row) in changed {
        pools.entry(pool).or_default().push(row);
    }
    for (pool, changed) in pools {
        rows.put_slots(pool, &changed).await?;
    }
    Ok(())
}
