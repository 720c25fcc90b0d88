//! Rows of members.

use snowmint_coord::member::{MemberRow, MemberStatus};
use snowmint_coord::{Member, Presence};

use super::Table;
use super::result::{SqlResult, damaged};
use super::value::{Value, Values};

pub(super) const TABLE: Table = Table {
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

pub(super) const SELECT: &str =
    "SELECT incarnation, owner, host, process, address, sample_ms, renewals,
    ttl_ms, joined_at_ms, renewed_at_ms, status FROM snowmint_member WHERE namespace = ?";

pub(super) fn values(row: &MemberRow) -> Vec<Value> {
    let MemberRow { member, presence, joined_at, renewed_at, status } = row;
    vec![
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
    ]
}

pub(super) fn row(mut row: Values) -> SqlResult<MemberRow> {
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
