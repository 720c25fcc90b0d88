//! The verbs on members.

use std::collections::HashSet;

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use super::BackendStore;
use super::put::put_slots;
use super::rows::{Backend, FirstRow, Rows, RowsResult, VerbResult};
use super::run_verb::{RunVerb, step_slots, steps};
use crate::error::{Result, Verb};
use crate::ids::Incarnation;
use crate::model::lease::given_up;
use crate::model::member::{
    Member, MemberInfo, MemberRow, MemberStatus, Presence, check, check_presence, not_joined,
};

struct JoinVerb<'a> {
    member: &'a Member,
    presence: Presence,
    now: UnixMillis,
}

#[async_trait]
impl RunVerb for JoinVerb<'_> {
    type Output = ();
    const VERB: Verb = Verb::Join;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, ()> {
        check(self.member, self.presence)?;
        let now = rows.time(self.now);
        let known = rows.members().await?;
        let before = known.iter().find(|row| row.member.incarnation == self.member.incarnation);
        let member = self.member.clone();
        let row = match before {
            None => MemberRow::new(member, self.presence, now),
            Some(before) => match before.renewed(self.presence, now) {
                Some(row) => MemberRow { member, ..row },
                None => return Ok(((), false)),
            },
        };
        rows.put_member(&row).await?;
        forget(rows, &known, self.member.incarnation, now).await?;
        Ok(((), true))
    }
}

/// Removes the records of members that are long gone and hold nothing.
async fn forget<R: Rows>(
    rows: &mut R,
    known: &[MemberRow],
    joined: Incarnation,
    now: UnixMillis,
) -> RowsResult<R, ()> {
    let others = known.iter().filter(|row| row.member.incarnation != joined);
    let gone: Vec<Incarnation> =
        others.filter(|row| row.forgettable(now)).map(|row| row.member.incarnation).collect();
    if gone.is_empty() {
        return Ok(());
    }
    let slots = rows.all_slots().await?;
    let holders: HashSet<Incarnation> = slots.iter().filter_map(|(_, row)| row.holder).collect();
    let unheld = gone.into_iter().filter(|member| !holders.contains(member));
    for member in unheld.take(R::WRITES_MAX) {
        rows.remove_member(member).await?;
    }
    Ok(())
}

struct RenewVerb {
    member: Incarnation,
    presence: Presence,
    now: UnixMillis,
}

#[async_trait]
impl RunVerb for RenewVerb {
    type Output = ();
    const VERB: Verb = Verb::Renew;

    fn first_row(&self) -> Option<FirstRow<'_>> {
        Some(FirstRow::Member(self.member))
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, ()> {
        check_presence(self.presence)?;
        let renewed_at = rows.time(self.now);
        let row = rows.member(self.member).await?.ok_or_else(|| not_joined(self.member))?;
        let renewed = row.renewed(self.presence, renewed_at);
        if let Some(row) = &renewed {
            rows.put_member(row).await?;
        }
        Ok(((), renewed.is_some()))
    }
}

async fn announce<R: Rows>(
    rows: &mut R,
    member: Incarnation,
    status: &MemberStatus,
) -> VerbResult<R, ()> {
    status.check()?;
    let row = rows.member(member).await?.ok_or_else(|| not_joined(member))?;
    let announced = row.announced(status);
    if let Some(row) = &announced {
        rows.put_member(row).await?;
    }
    Ok(((), announced.is_some()))
}

struct LeaveVerb {
    member: Incarnation,
    now: UnixMillis,
}

#[async_trait]
impl RunVerb for LeaveVerb {
    /// Whether the member is still there, with slots that did not fit into this step.
    type Output = bool;
    const VERB: Verb = Verb::Leave;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, bool> {
        let now = rows.time(self.now);
        let max = step_slots(R::WRITES_MAX);
        let held = rows.held_by(self.member, max.saturating_add(1)).await?;
        let given = held.iter().take(max);
        let given = given.map(|(pool, row)| (pool.as_str(), given_up(row, row.mark, now)));
        put_slots(rows, given).await?;
        if held.len() > max {
            return Ok((true, true));
        }
        let known = rows.remove_member(self.member).await?;
        Ok((false, known || !held.is_empty()))
    }
}

async fn members<R: Rows>(rows: &mut R, now: UnixMillis) -> VerbResult<R, Vec<MemberInfo>> {
    let now = rows.time(now);
    Ok((infos(rows, now).await?, false))
}

/// Returns all members at `now`, in the order of their incarnations.
pub(super) async fn infos<R: Rows>(
    rows: &mut R,
    now: UnixMillis,
) -> RowsResult<R, Vec<MemberInfo>> {
    let mut known = rows.members().await?;
    known.sort_by_key(|row| row.member.incarnation);
    Ok(known.iter().map(|row| row.info(now)).collect())
}

steps! {
    Announce: fn announce(member: Incarnation, status: &'a MemberStatus) -> ();
    Members: fn members(now: UnixMillis) -> Vec<MemberInfo>;
}

impl<B: Backend> BackendStore<B> {
    async fn check_settings(&self, verb: Verb) -> Result<()> {
        self.backend.check_settings().await.map_err(|failure| self.error(verb, failure))
    }

    pub(super) async fn join(
        &self,
        member: &Member,
        presence: Presence,
        now: UnixMillis,
    ) -> Result<()> {
        self.check_settings(Verb::Join).await?;
        self.output_of(JoinVerb { member, presence, now }).await?;
        // A program of a token joins through its server, which renews for itself.
        if member.incarnation.token().is_none() {
            self.lineage.joined(presence.ttl_ms);
        }
        Ok(())
    }

    pub(super) async fn renew(
        &self,
        member: Incarnation,
        presence: Presence,
        now: UnixMillis,
    ) -> Result<()> {
        let renewal = async {
            if self.try_fast_renew(member, presence, now).await? {
                return Ok(());
            }
            self.output_of(RenewVerb { member, presence, now }).await
        };
        // Both run at once: a late renewal costs more than a superfluous one.
        let (renewed, safe) = tokio::join!(renewal, self.check_settings(Verb::Renew));
        renewed.and(safe)
    }

    pub(super) async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        while self.output_of(LeaveVerb { member, now }).await? {}
        Ok(())
    }
}
