//! Rows of pools and slots.

use std::collections::BTreeMap;

use snowmint_coord::{Incarnation, Pool, Reuse, SlotRow};

use super::result::{SqlResult, damaged};
use super::session::{NumberLookup, Session};
use super::value::{Value, Values};
use super::{Table, Tx};

const POOLS: Table = Table {
    name: "snowmint_pool",
    keys: &["pool"],
    columns: &["slots", "group_slots", "reuse", "next"],
    counted: true,
};

const SLOTS: Table = Table {
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
const NAMED_MAX: usize = 500;

const SELECT: &str = "SELECT pool, slot, term, floor, mark, holder, owner, claim_request,
    extend_request, held_since_ms, given_up_at_ms FROM snowmint_slot WHERE namespace = ?";

impl<S: Session> Tx<S> {
    pub(super) async fn read_pool(&mut self, name: &str) -> SqlResult<Option<(Pool, u64)>> {
        let query = "SELECT slots, group_slots, reuse, next FROM snowmint_pool
             WHERE namespace = ? AND pool = ?";
        let row = self.fetch_one(query, vec![self.named(), Value::text(name)]).await?;
        let Some(mut row) = row else { return Ok(None) };
        let (slots, group) = (row.number()?, row.small()?);
        let reuse = match row.text()?.as_str() {
            "never" => Reuse::Never,
            "recycle" => Reuse::Recycle,
            "ordered" => Reuse::Ordered,
            other => return Err(damaged(format!("reuse rule is {other:?}, unknown"))),
        };
        Ok(Some((Pool { name: name.into(), slots, group, reuse }, row.number()?)))
    }

    pub(super) async fn write_pool(&mut self, pool: &Pool, next: u64) -> SqlResult<()> {
        let reuse = match pool.reuse {
            Reuse::Recycle => "recycle",
            Reuse::Never => "never",
            Reuse::Ordered => "ordered",
        };
        let values = vec![
            Value::text(&pool.name),
            Value::exact("slots", pool.slots)?,
            Value::Integer(pool.group.into()),
            Value::text(reuse),
            Value::exact("next", next)?,
        ];
        self.upsert(&POOLS, vec![values]).await
    }

    pub(super) async fn read_slot(&mut self, pool: &str, slot: u64) -> SqlResult<Option<SlotRow>> {
        let values = vec![self.named(), Value::text(pool), Value::exact("slot", slot)?];
        let row = self.fetch_one(format!("{SELECT} AND pool = ? AND slot = ?"), values).await?;
        Ok(row.map(slot_row).transpose()?.map(|(_, row)| row))
    }

    pub(super) async fn read_named_slots(
        &mut self,
        pool: &str,
        slots: &[u64],
    ) -> SqlResult<Vec<(u64, Option<SlotRow>)>> {
        let mut found: BTreeMap<u64, SlotRow> = BTreeMap::new();
        for slots in slots.chunks(NAMED_MAX) {
            let (query, values) = self.lookup(pool, slots)?;
            for row in self.fetch(query, values).await? {
                let (_, row) = slot_row(row)?;
                found.insert(row.slot, row);
            }
        }
        Ok(slots.iter().map(|slot| (*slot, found.remove(slot))).collect())
    }

    /// Returns the query for these slots, and its values.
    fn lookup(&self, pool: &str, slots: &[u64]) -> SqlResult<(String, Vec<Value>)> {
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

    pub(super) async fn read_slots(&mut self, pool: &str) -> SqlResult<Vec<SlotRow>> {
        let query = format!("{SELECT} AND pool = ? ORDER BY slot");
        let rows = self.fetch(query, vec![self.named(), Value::text(pool)]).await?;
        rows.into_iter().map(|row| slot_row(row).map(|(_, row)| row)).collect()
    }

    pub(super) async fn read_all_slots(&mut self) -> SqlResult<Vec<(String, SlotRow)>> {
        let rows = self.fetch(SELECT, vec![self.named()]).await?;
        rows.into_iter().map(slot_row).collect()
    }

    pub(super) async fn read_held_by(
        &mut self,
        member: Incarnation,
        max: usize,
    ) -> SqlResult<Vec<(String, SlotRow)>> {
        let values = vec![self.named(), Value::text(member.to_string())];
        let rows = self.fetch(format!("{SELECT} AND holder = ? LIMIT {max}"), values).await?;
        rows.into_iter().map(slot_row).collect()
    }

    pub(super) async fn write_slots(&mut self, pool: &str, rows: &[SlotRow]) -> SqlResult<()> {
        let rows = rows.iter().map(|row| values(pool, row)).collect::<SqlResult<_>>()?;
        self.upsert(&SLOTS, rows).await
    }

    pub(super) async fn delete_slots(&mut self, pool: &str, slots: &[u64]) -> SqlResult<()> {
        const WHERE: &str = "FROM snowmint_slot WHERE namespace = ? AND pool = ? AND slot = ?";
        for slot in slots {
            let values = vec![self.named(), Value::text(pool), Value::exact("slot", *slot)?];
            let counted = self.fetch_one(format!("SELECT changes {WHERE}"), values.clone()).await?;
            if let Some(mut counted) = counted {
                // The store's total must not include the changes of a deleted row.
                self.row_changes = self.row_changes.saturating_sub(counted.changes()?);
                self.run(format!("DELETE {WHERE}"), values).await?;
            }
        }
        Ok(())
    }
}

fn values(pool: &str, row: &SlotRow) -> SqlResult<Vec<Value>> {
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

fn slot_row(mut row: Values) -> SqlResult<(String, SlotRow)> {
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
