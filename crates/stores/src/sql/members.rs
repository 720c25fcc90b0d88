//! Rows of members.

use snowmint_coord::member::{MemberRow, MemberStatus};
use snowmint_coord::{Incarnation, Member, Presence};

use super::result::{SqlResult, damaged};
use super::session::Session;
use super::value::{Value, Values};
use super::{Table, Tx};

const MEMBERS: Table = Table {
    name: "snowmint_member",
    keys: &["incarnation"],
    columns: &[
        "owner",
        "host",
        "process",
        "address",
        "sample_ms",
        "renewals",
        "ttl_ms",
        "joined_at_ms",
        "renewed_at_ms",
        "status",
    ],
    counted: false,
};

const SELECT: &str = "SELECT incarnation, owner, host, process, address, sample_ms, renewals,
    ttl_ms, joined_at_ms, renewed_at_ms, status FROM snowmint_member WHERE namespace = ?";

impl<S: Session> Tx<S> {
    pub(super) async fn read_members(&mut self) -> SqlResult<Vec<MemberRow>> {
        let rows = self.fetch(SELECT, vec![self.named()]).await?;
        rows.into_iter().map(member_row).collect()
    }

    pub(super) async fn read_member(
        &mut self,
        member: Incarnation,
    ) -> SqlResult<Option<MemberRow>> {
        let values = vec![self.named(), Value::text(member.to_string())];
        let row = self.fetch_one(format!("{SELECT} AND incarnation = ?"), values).await?;
        row.map(member_row).transpose()
    }

    pub(super) async fn write_member(&mut self, row: &MemberRow) -> SqlResult<()> {
        let MemberRow { member, presence, joined_at, renewed_at, status } = row;
        let values = vec![
            Value::text(member.incarnation.to_string()),
            Value::text(&member.owner),
            Value::text(&member.host),
            Value::Integer(member.process.into()),
            Value::text(&member.address),
            Value::capped(presence.sample.get()),
            Value::capped(presence.renewals),
            Value::capped(presence.ttl_ms),
            Value::capped(joined_at.get()),
            Value::capped(renewed_at.get()),
            Value::text(status.to_string()),
        ];
        self.upsert(&MEMBERS, vec![values]).await
    }

    pub(super) async fn delete_member(&mut self, member: Incarnation) -> SqlResult<bool> {
        let statement = "DELETE FROM snowmint_member WHERE namespace = ? AND incarnation = ?";
        let values = vec![self.named(), Value::text(member.to_string())];
        Ok(self.run(statement, values).await? > 0)
    }
}

fn member_row(mut row: Values) -> SqlResult<MemberRow> {
    Ok(MemberRow {
        member: Member {
            incarnation: row.incarnation()?,
            owner: row.text()?,
            host: row.text()?,
            process: row.small()?,
            address: row.text()?,
        },
        presence: Presence { sample: row.time()?, renewals: row.number()?, ttl_ms: row.number()? },
        joined_at: row.time()?,
        renewed_at: row.time()?,
        status: status(&row.text()?)?,
    })
}

fn status(text: &str) -> SqlResult<MemberStatus> {
    text.parse().map_err(|_| damaged(format!("member status is {text:?}, unknown")))
}
