//! The verbs on members.

use snowmint_coord::lease::given_up;
use snowmint_coord::member::{check, check_presence, not_joined};
use snowmint_coord::{Incarnation, Member, MemberInfo, Presence};
use snowmint_core::UnixMillis;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::failure::Failure;
use super::tx::{Step, Tx, capped, incarnation, number};

impl Tx {
    pub(super) async fn join(
        &mut self,
        member: &Member,
        presence: Presence,
        now: UnixMillis,
    ) -> Step<()> {
        check(member, presence)?;
        self.run(sqlx::query(
            "INSERT INTO snowmint_member (namespace, incarnation, owner, host, process, sample_ms,
                renewals, ttl_ms, joined_at_ms, renewed_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
             ON CONFLICT DO UPDATE SET owner = ?3, host = ?4, process = ?5, sample_ms = ?6,
                renewals = ?7, ttl_ms = ?8, renewed_at_ms = ?9",
        )
        .bind(self.namespace())
        .bind(member.incarnation.to_string())
        .bind(&member.owner)
        .bind(&member.host)
        .bind(i64::from(member.process))
        .bind(capped(presence.sample.get()))
        .bind(capped(presence.renewals))
        .bind(capped(presence.ttl_ms))
        .bind(capped(now.get()))).await?;
        self.forget_members(now).await?;
        Ok(((), true))
    }

    /// Drops the records of members that are long gone and hold nothing.
    async fn forget_members(&mut self, now: UnixMillis) -> Result<(), Failure> {
        let idle = self
            .rows(
                sqlx::query(
                    "SELECT incarnation, ttl_ms, renewed_at_ms FROM snowmint_member m
             WHERE namespace = ? AND NOT EXISTS (SELECT 1 FROM snowmint_slot s
                WHERE s.namespace = m.namespace AND s.holder = m.incarnation)",
                )
                .bind(self.namespace()),
            )
            .await?;
        for row in idle {
            let renewed_at = UnixMillis::new(number(&row, 2)?);
            if Presence::forgettable(number(&row, 1)?, renewed_at, now) {
                self.remove_member(row.try_get(0)?).await?;
            }
        }
        Ok(())
    }

    async fn remove_member(&mut self, incarnation: String) -> Result<bool, Failure> {
        let removed = self
            .run(
                sqlx::query("DELETE FROM snowmint_member WHERE namespace = ? AND incarnation = ?")
                    .bind(self.namespace())
                    .bind(incarnation),
            )
            .await?;
        Ok(removed > 0)
    }

    pub(super) async fn renew(
        &mut self,
        member: Incarnation,
        presence: Presence,
        now: UnixMillis,
    ) -> Step<()> {
        check_presence(presence)?;
        let renewed = self.run(sqlx::query(
            "UPDATE snowmint_member SET sample_ms = ?, renewals = ?, ttl_ms = ?, renewed_at_ms = ?
             WHERE namespace = ? AND incarnation = ?",
        )
        .bind(capped(presence.sample.get()))
        .bind(capped(presence.renewals))
        .bind(capped(presence.ttl_ms))
        .bind(capped(now.get()))
        .bind(self.namespace())
        .bind(member.to_string())).await?;
        if renewed == 0 {
            return Err(not_joined(member).into());
        }
        Ok(((), true))
    }

    pub(super) async fn leave(&mut self, member: Incarnation, now: UnixMillis) -> Step<()> {
        let held = self.held_by(member).await?;
        for (pool, row) in &held {
            self.write_slot(pool, &given_up(row, row.mark, now)).await?;
        }
        let known = self.remove_member(member.to_string()).await?;
        Ok(((), known || !held.is_empty()))
    }

    pub(super) async fn members(&mut self, now: UnixMillis) -> Result<Vec<MemberInfo>, Failure> {
        let rows = self.rows(sqlx::query(
            "SELECT incarnation, owner, host, process, sample_ms, renewals, ttl_ms, joined_at_ms,
                renewed_at_ms
             FROM snowmint_member WHERE namespace = ? ORDER BY incarnation",
        )
        .bind(self.namespace())).await?;
        rows.iter().map(|row| member_info(row, now)).collect()
    }
}

fn member_info(row: &SqliteRow, now: UnixMillis) -> Result<MemberInfo, Failure> {
    let process: i64 = row.try_get(3)?;
    let ttl_ms = number(row, 6)?;
    let renewed_at = UnixMillis::new(number(row, 8)?);
    Ok(MemberInfo {
        member: Member {
            incarnation: incarnation(row.try_get(0)?)?,
            owner: row.try_get(1)?,
            host: row.try_get(2)?,
            process: u32::try_from(process)
                .map_err(|_| Failure::Damaged(format!("{process} as a process number")))?,
        },
        presence: Presence {
            sample: UnixMillis::new(number(row, 4)?),
            renewals: number(row, 5)?,
            ttl_ms,
        },
        joined_at: UnixMillis::new(number(row, 7)?),
        renewed_at,
        live: Presence::live(ttl_ms, renewed_at, now),
    })
}
