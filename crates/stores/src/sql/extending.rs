//! An extension in one round trip: the rule of
//! [`decide_extend`](snowmint_coord::lease::decide_extend) as the condition of one statement. If it
//! does not hold, nothing is done, and the verb over rows returns the reason.

use snowmint_coord::Extend;
use snowmint_coord::verbs::Seen;

use super::result::SqlResult;
use super::value::{Value, Values};

/// Count of the statement's places, `?1` to `?12`.
pub(crate) const PLACES: usize = 12;

/// Returns the values for the places, in order.
pub(crate) fn values(namespace: &str, item: &Extend, seen: &Seen) -> SqlResult<[Value; PLACES]> {
    Ok([
        Value::text(namespace),
        Value::text(&item.pool),
        Value::exact("slot", item.slot)?,
        Value::exact("term", item.term.get())?,
        Value::exact("mark", item.from.get())?,
        Value::exact("mark", item.to.get())?,
        Value::bits(item.request),
        Value::exact("writes", seen.writes)?,
        Value::exact("version", seen.catalog_version)?,
        Value::capped(item.allowed_from().get()),
        item.holder.map_or(Value::Null, |holder| Value::text(holder.to_string())),
        Value::text(&*seen.id),
    ])
}

/// Parses the write count from the statement's row.
pub(crate) fn writes(row: Vec<Value>) -> SqlResult<u64> {
    Values::of(row).number()
}
