//! Rows of pools and slots.

use snowmint_coord::{Pool, Reuse, SlotRow};

use super::result::{SqlResult, damaged};
use super::session::{NumberLookup, Session};
use super::value::{Value, Values};
use super::{Table, Tx};

pub(super) const POOLS: Table = Table {
    name: "snowmint_pool",
    keys: &["pool"],
    columns: &["slots", "group_slots", "reuse", "next"],
    counted: true,
};

pub(super) const SLOTS: Table = Table {
    name: "snowmint_slot",
    keys: &["pool", "slot"],
    columns: &[
        "term",
        "floor",
        "mark",
        "holder",
        "owner",
        "claim_request",
        "extend_request",
        "held_since_ms",
        "given_up_at_ms",
    ],
    counted: true,
};

/// Most slots in one query.
pub(super) const NAMED_MAX: usize = 500;

pub(super) const SELECT: &str =
    "SELECT pool, slot, term, floor, mark, holder, owner, claim_request,
    extend_request, held_since_ms, given_up_at_ms FROM snowmint_slot WHERE namespace = ?";

impl<S: Session> Tx<S> {
    /// Returns the query for these slots, and its values.
    pub(super) fn lookup(&self, pool: &str, slots: &[u64]) -> SqlResult<(String, Vec<Value>)> {
        let (named, pool) = (self.named(), Value::text(pool));
        let mut numbers = Vec::with_capacity(slots.len());
        for slot in slots {
            numbers.push(Value::exact("slot", *slot)?);
        }
        Ok(match S::NUMBER_LOOKUP {
            NumberLookup::List => {
                let places = vec!["?"; slots.len()].join(", ");
                let query = format!("{SELECT} AND pool = ? AND slot IN ({places})");
                (query, [named, pool].into_iter().chain(numbers).collect())
            }
            NumberLookup::Each => {
                let query = format!(
                    "SELECT found.* FROM unnest(CAST(string_to_array(?, ',') AS BIGINT[])) AS given (number)
                     CROSS JOIN LATERAL ({SELECT} AND pool = ? AND slot = number OFFSET 0) AS found"
                );
                let slots: Vec<String> = slots.iter().map(u64::to_string).collect();
                (query, vec![Value::text(slots.join(",")), named, pool])
            }
        })
    }
}

pub(super) fn pool_values(pool: &Pool, next: u64) -> SqlResult<Vec<Value>> {
    let reuse = match pool.reuse {
        Reuse::Recycle => "recycle",
        Reuse::Never => "never",
        Reuse::Ordered => "ordered",
    };
    Ok(vec![
        Value::text(&pool.name),
        Value::exact("slots", pool.slots)?,
        Value::Integer(pool.group.into()),
        Value::text(reuse),
        Value::exact("next", next)?,
    ])
}

/// Returns the pool with this name, and its next number.
pub(super) fn pool(name: &str, mut row: Values) -> SqlResult<(Pool, u64)> {
    let (slots, group) = (row.number()?, row.small()?);
    let reuse = match row.text()?.as_str() {
        "never" => Reuse::Never,
        "recycle" => Reuse::Recycle,
        "ordered" => Reuse::Ordered,
        other => return Err(damaged(format!("reuse rule is {other:?}, unknown"))),
    };
    Ok((Pool { name: name.into(), slots, group, reuse }, row.number()?))
}

pub(super) fn values(pool: &str, row: &SlotRow) -> SqlResult<Vec<Value>> {
    Ok(vec![
        Value::text(pool),
        Value::exact("slot", row.slot)?,
        Value::exact("term", row.term.get())?,
        Value::exact("floor", row.floor.get())?,
        Value::exact("mark", row.mark.get())?,
        row.holder.map_or(Value::Null, |holder| Value::text(holder.to_string())),
        Value::text(&row.owner),
        Value::bits(row.claim_request),
        Value::bits(row.extend_request),
        Value::capped(row.held_since.get()),
        Value::capped(row.given_up_at.get()),
    ])
}

pub(super) fn row(mut row: Values) -> SqlResult<(String, SlotRow)> {
    let pool = row.text()?;
    let row = SlotRow {
        slot: row.number()?,
        term: row.term()?,
        floor: row.mark()?,
        mark: row.mark()?,
        holder: row.maybe_incarnation()?,
        owner: row.text()?,
        claim_request: row.bits()?,
        extend_request: row.bits()?,
        held_since: row.time()?,
        given_up_at: row.time()?,
    };
    Ok((pool, row))
}
