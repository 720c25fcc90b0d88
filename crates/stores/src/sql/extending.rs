//! An extend in one round trip: the rule of [`decide_extend`](snowmint_coord::lease::decide_extend) as the
//! condition of one statement. Where it does not hold nothing is done, and the rows say why.

use snowmint_coord::Extend;
use snowmint_coord::verbs::Seen;

use super::{Done, Value, Values};

/// What the statement is told, in the order of its places `?1` to `?12`.
pub(crate) const PLACES: usize = 12;

/// The values for the places.
pub(crate) fn values(namespace: &str, item: &Extend, seen: &Seen) -> Done<[Value; PLACES]> {
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

/// The count of writes in the row that the statement answers.
pub(crate) fn writes(row: Vec<Value>) -> Done<u64> {
    Values::of(row).number()
}
