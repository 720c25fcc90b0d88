//! The verbs on slots.

use std::collections::HashMap;

use snowmint_coord::lease::{
    ExtendStep, decide_extend, decide_release, forwarded, never_claimed, slot_info,
};
use snowmint_coord::pool::{Choice, Ground, choose, leases};
use snowmint_coord::{
    ClaimRequest, Error, Extend, Extended, FastForward, Incarnation, Lease, Mark, MemberInfo, Pool,
    Release, Reuse, SlotInfo, SlotRow, StoreIdentity,
};
use snowmint_core::UnixMillis;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::failure::Failure;
use super::tx::{Step, Tx, capped, incarnation, integer, mark, number, term};

impl Tx {
    pub(super) async fn claim(
        &mut self,
        request: &ClaimRequest,
        now: UnixMillis,
    ) -> Step<Vec<Lease>> {
        let pool = &request.pool;
        let next = self.next_of(pool).await?;
        let rows = self.rows_of(&pool.name).await?;
        let members = self.members(now).await?;
        let ground = self.ground().await?;
        match choose(request, &rows, &members, ground, next, now)? {
            Choice::Repeat(rows) => Ok((leases(&pool.name, &rows), false)),
            Choice::Take { rows, next, forget } => {
                self.write_pool(pool, next).await?;
                for slot in forget {
                    self.remove_slot(&pool.name, slot).await?;
                }
                for row in &rows {
                    self.write_slot(&pool.name, row).await?;
                }
                Ok((leases(&pool.name, &rows), true))
            }
        }
    }

    pub(super) async fn extend(
        &mut self,
        items: &[Extend],
        now: UnixMillis,
    ) -> Step<Vec<snowmint_coord::Result<Extended>>> {
        let mut moved_any = false;
        let mut marks = Vec::with_capacity(items.len());
        for item in items {
            marks.push(match self.extend_one(item, now).await {
                Ok((mark, moved)) => {
                    moved_any |= moved;
                    Ok(mark)
                }
                Err(Failure::Refused(kind)) => Err(Error::new("extend", kind)),
                Err(failure) => return Err(failure),
            });
        }
        let catalog_version = self.catalog_version().await?;
        let writes = if moved_any { self.writes_after() } else { self.identity.writes };
        let extended = |mark| Extended { mark, catalog_version, writes };
        Ok((marks.into_iter().map(|mark| mark.map(extended)).collect(), moved_any))
    }

    async fn extend_one(&mut self, item: &Extend, now: UnixMillis) -> Step<Mark> {
        let row = self.slot(&item.pool, item.slot).await?;
        let moved = decide_extend(&row, item, now)? == ExtendStep::Move;
        if moved {
            let after = SlotRow { mark: item.to, extend_request: item.request, ..row };
            self.write_slot(&item.pool, &after).await?;
        }
        Ok((item.to, moved))
    }

    pub(super) async fn release(&mut self, release: &Release, now: UnixMillis) -> Step<()> {
        let row = self.slot(&release.pool, release.slot).await?;
        let after = decide_release(&row, release, now)?;
        if let Some(after) = &after {
            self.write_slot(&release.pool, after).await?;
        }
        Ok(((), after.is_some()))
    }

    pub(super) async fn workers(&mut self, now: UnixMillis) -> Result<Vec<SlotInfo>, Failure> {
        let members: HashMap<Incarnation, MemberInfo> = self
            .members(now)
            .await?
            .into_iter()
            .map(|info| (info.member.incarnation, info))
            .collect();
        let rows = self.all_slots().await?;
        let info = |(pool, row): &(String, SlotRow)| {
            slot_info(pool, row, row.holder.and_then(|holder| members.get(&holder)))
        };
        Ok(rows.iter().map(info).collect())
    }

    pub(super) async fn fast_forward(
        &mut self,
        forward: &FastForward,
        new_id: String,
    ) -> Step<StoreIdentity> {
        forward.check()?;
        for (source, mark) in &forward.segments {
            self.forward_source(source, *mark).await?;
        }
        for (pool, row) in self.all_slots().await? {
            self.write_slot(&pool, &forwarded(&row, forward.marks_at_least)).await?;
        }
        let ground = self.ground().await?.forwarded(forward.marks_at_least);
        self.change_rows(
            sqlx::query(
                "INSERT INTO snowmint_namespace (namespace, mark, term, changes) VALUES (?1, ?2, ?3, 1)
             ON CONFLICT DO UPDATE SET mark = ?2, term = ?3, changes = changes + 1",
            )
            .bind(self.namespace())
            .bind(integer("mark", ground.mark.get())?)
            .bind(integer("term", ground.term.get())?),
        )
        .await?;
        self.accept_rows().await?;
        self.identity.writes = self.identity.writes.max(forward.writes_at_least);
        if forward.new_identity {
            self.identity.id = new_id;
        }
        let identity = StoreIdentity { writes: self.writes_after(), ..self.identity.clone() };
        Ok((identity, true))
    }

    async fn ground(&mut self) -> Result<Ground, Failure> {
        let row = self
            .row(
                sqlx::query("SELECT mark, term FROM snowmint_namespace WHERE namespace = ?")
                    .bind(self.namespace()),
            )
            .await?;
        match row {
            Some(row) => Ok(Ground { mark: mark(&row, 0)?, term: term(&row, 1)? }),
            None => Ok(Ground::default()),
        }
    }

    /// The first number of the pool that nobody had, once its shape is found to be the same.
    async fn next_of(&mut self, pool: &Pool) -> Result<u64, Failure> {
        let row = self
            .row(
                sqlx::query(
                    "SELECT slots, group_slots, reuse, next FROM snowmint_pool
             WHERE namespace = ? AND pool = ?",
                )
                .bind(self.namespace())
                .bind(&pool.name),
            )
            .await?;
        let Some(row) = row else { return Ok(0) };
        let group: i64 = row.try_get(1)?;
        let reuse = match row.try_get(2)? {
            "never" => Reuse::Never,
            "recycle" => Reuse::Recycle,
            other => return Err(Failure::Damaged(format!("{other:?} as a reuse rule"))),
        };
        let stored = Pool {
            name: pool.name.clone(),
            slots: number(&row, 0)?,
            group: u32::try_from(group)
                .map_err(|_| Failure::Damaged(format!("{group} as a group of slots")))?,
            reuse,
        };
        pool.check_same(&stored)?;
        number(&row, 3)
    }

    async fn write_pool(&mut self, pool: &Pool, next: u64) -> Result<(), Failure> {
        let reuse = match pool.reuse {
            Reuse::Recycle => "recycle",
            Reuse::Never => "never",
        };
        self.change_rows(
            sqlx::query(
                "INSERT INTO snowmint_pool (namespace, pool, slots, group_slots, reuse, next, changes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)
             ON CONFLICT DO UPDATE SET next = ?6, changes = changes + 1",
            )
            .bind(self.namespace())
            .bind(&pool.name)
            .bind(integer("slots", pool.slots)?)
            .bind(i64::from(pool.group))
            .bind(reuse)
            .bind(integer("next", next)?),
        )
        .await?;
        Ok(())
    }

    async fn slot(&mut self, pool: &str, slot: u64) -> Result<SlotRow, Failure> {
        let unknown = || Failure::Refused(never_claimed(pool, slot));
        // A number that cannot be kept was never claimed.
        let number = i64::try_from(slot).map_err(|_| unknown())?;
        let row = self
            .row(
                sqlx::query(
                    "SELECT slot, term, floor, mark, holder, owner, claim_request, extend_request,
                held_since_ms, given_up_at_ms
             FROM snowmint_slot WHERE namespace = ? AND pool = ? AND slot = ?",
                )
                .bind(self.namespace())
                .bind(pool)
                .bind(number),
            )
            .await?;
        slot_row(&row.ok_or_else(unknown)?)
    }

    async fn rows_of(&mut self, pool: &str) -> Result<Vec<SlotRow>, Failure> {
        let rows = self
            .rows(
                sqlx::query(
                    "SELECT slot, term, floor, mark, holder, owner, claim_request, extend_request,
                held_since_ms, given_up_at_ms
             FROM snowmint_slot WHERE namespace = ? AND pool = ? ORDER BY slot",
                )
                .bind(self.namespace())
                .bind(pool),
            )
            .await?;
        rows.iter().map(slot_row).collect()
    }

    async fn all_slots(&mut self) -> Result<Vec<(String, SlotRow)>, Failure> {
        let rows = self
            .rows(
                sqlx::query(
                    "SELECT slot, term, floor, mark, holder, owner, claim_request, extend_request,
                held_since_ms, given_up_at_ms, pool
             FROM snowmint_slot WHERE namespace = ? ORDER BY pool, slot",
                )
                .bind(self.namespace()),
            )
            .await?;
        rows.iter().map(|row| Ok((row.try_get(10)?, slot_row(row)?))).collect()
    }

    pub(super) async fn held_by(
        &mut self,
        member: Incarnation,
    ) -> Result<Vec<(String, SlotRow)>, Failure> {
        let rows = self
            .rows(
                sqlx::query(
                    "SELECT slot, term, floor, mark, holder, owner, claim_request, extend_request,
                held_since_ms, given_up_at_ms, pool
             FROM snowmint_slot WHERE namespace = ? AND holder = ?",
                )
                .bind(self.namespace())
                .bind(member.to_string()),
            )
            .await?;
        rows.iter().map(|row| Ok((row.try_get(10)?, slot_row(row)?))).collect()
    }

    pub(super) async fn write_slot(&mut self, pool: &str, row: &SlotRow) -> Result<(), Failure> {
        self.change_rows(sqlx::query(
            "INSERT INTO snowmint_slot (namespace, pool, slot, term, floor, mark, holder, owner,
                claim_request, extend_request, held_since_ms, given_up_at_ms, changes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 1)
             ON CONFLICT DO UPDATE SET term = ?4, floor = ?5, mark = ?6, holder = ?7, owner = ?8,
                claim_request = ?9, extend_request = ?10, held_since_ms = ?11,
                given_up_at_ms = ?12, changes = changes + 1",
        )
        .bind(self.namespace())
        .bind(pool)
        .bind(integer("slot", row.slot)?)
        .bind(integer("term", row.term.get())?)
        .bind(integer("floor", row.floor.get())?)
        .bind(integer("mark", row.mark.get())?)
        .bind(row.holder.map(|holder| holder.to_string()))
        .bind(&row.owner)
        // Request numbers are only compared: their 64 bits are kept as they are.
        .bind(row.claim_request.cast_signed())
        .bind(row.extend_request.cast_signed())
        .bind(capped(row.held_since.get()))
        .bind(capped(row.given_up_at.get()))).await?;
        Ok(())
    }

    async fn remove_slot(&mut self, pool: &str, slot: u64) -> Result<(), Failure> {
        let removed = self
            .row(
                sqlx::query(
                    "DELETE FROM snowmint_slot WHERE namespace = ? AND pool = ? AND slot = ?
                     RETURNING changes",
                )
                .bind(self.namespace())
                .bind(pool)
                .bind(integer("slot", slot)?),
            )
            .await?;
        if let Some(removed) = removed {
            self.count_changes(-removed.try_get::<i64, _>(0)?);
        }
        Ok(())
    }
}

/// A row as selected above: the first ten columns.
fn slot_row(row: &SqliteRow) -> Result<SlotRow, Failure> {
    let holder: Option<&str> = row.try_get(4)?;
    Ok(SlotRow {
        slot: number(row, 0)?,
        term: term(row, 1)?,
        floor: mark(row, 2)?,
        mark: mark(row, 3)?,
        holder: holder.map(incarnation).transpose()?,
        owner: row.try_get(5)?,
        claim_request: row.try_get::<i64, _>(6)?.cast_unsigned(),
        extend_request: row.try_get::<i64, _>(7)?.cast_unsigned(),
        held_since: UnixMillis::new(number(row, 8)?),
        given_up_at: UnixMillis::new(number(row, 9)?),
    })
}
