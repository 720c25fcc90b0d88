//! Reclaim: an operator takes back worker numbers with marks far ahead of the clock.
//!
//! A mark is a promise: the process that moved it may have minted up to there. A holder that keeps
//! the rules never moves it further ahead of its clock than its settings allow
//! ([`reach_ms`](crate::NodeSettings::reach_ms)). Other holders, such as a malicious program or a
//! server with a clock years ahead, may have minted IDs of future times. No store knows whether
//! these are in use. The operator therefore asserts that none is, and by this assertion alone the
//! mark falls: to the furthest mark of nodes that keep the rules, and no lower.

use std::collections::BTreeSet;

use snowmint_core::UnixMillis;

use crate::error::{Error, Result};
use crate::ids::{Mark, Term};
use crate::model::external::is_external;
use crate::model::lease::{SlotRow, check_mark, given_up, mark_label, slot_label};
use crate::model::member::MemberInfo;
use crate::model::pool::{Pool, Reuse, SlotDefaults};

/// A request to reclaim worker numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reclaim {
    /// Name of their pool.
    pub pool: String,
    /// Numbers, each with its term when the operator read it; a number that was claimed or given up
    /// since is rejected.
    pub slots: Vec<(u64, Term)>,
    /// Maximum distance, in milliseconds, ahead of the clock at which nodes that keep the rules may
    /// have minted.
    pub reach_ms: u64,
    /// Mark up to which IDs are known to be in use. Zero: only `reach_ms` counts.
    pub marks_at_least: Mark,
    /// Whether numbers that live members hold are included.
    pub from_live: bool,
}

/// A reclaimed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reclaimed {
    /// The number.
    pub slot: u64,
    /// Mark before.
    pub from: Mark,
    /// Present mark.
    pub to: Mark,
    /// Present term.
    pub term: Term,
}

impl Reclaim {
    /// Checks that a request is valid.
    ///
    /// # Errors
    /// `Invalid` for a bad mark, a number named twice, or a pool for external leases.
    pub fn check(&self) -> Result<()> {
        check_mark(self.marks_at_least)?;
        let mut named = BTreeSet::new();
        if let Some((slot, _)) = self.slots.iter().find(|(slot, _)| !named.insert(*slot)) {
            return Err(Error::invalid(format!(
                "{} is listed twice; list each number once",
                slot_label(&self.pool, *slot)
            )));
        }
        if is_external(&self.pool) {
            return Err(Error::invalid(format!(
                "pool {:?} is for external leases, which cannot be reclaimed; wait until the \
                 client returns the number or its mark passes",
                self.pool
            )));
        }
        Ok(())
    }

    /// Checks that numbers of this pool can be reclaimed.
    ///
    /// # Errors
    /// `Invalid` for a pool without reuse or with exclusive slots.
    pub fn check_pool(&self, pool: &Pool) -> Result<()> {
        let name = &pool.name;
        match pool.reuse {
            Reuse::Recycle => Ok(()),
            Reuse::Never => Err(Error::invalid(format!(
                "pool {name:?} never reuses numbers (worker.reuse), so none can be reclaimed; name \
                 another pool"
            ))),
            Reuse::Ordered => Err(Error::invalid(format!(
                "pool {name:?} has exclusive slots, which cannot be reclaimed; name a pool of \
                 worker numbers"
            ))),
        }
    }

    /// Returns the new mark at this time: not below `ground`, to which an operator has moved the
    /// namespace.
    #[must_use]
    pub fn to(&self, ground: SlotDefaults, now: UnixMillis) -> Mark {
        let reached = Mark::from(now.saturating_add(self.reach_ms));
        reached.max(self.marks_at_least).max(ground.mark)
    }
}

/// Decides one slot: returns its row with the mark lowered `to` there, or `None` if the mark is not
/// further ahead.
///
/// # Errors
/// `NotFound` for a slot that was never claimed; `Conflict` for a slot that is excluded, that has
/// changed hands since, or that a live member holds.
pub fn decide_reclaim(
    reclaim: &Reclaim,
    (slot, seen): (u64, Term),
    row: Option<&SlotRow>,
    members: &[MemberInfo],
    to: Mark,
    now: UnixMillis,
) -> Result<Option<SlotRow>> {
    let label = slot_label(&reclaim.pool, slot);
    let Some(row) = row else {
        return Err(Error::not_found(format!(
            "{label} was never claimed, so its mark is not ahead; check the number"
        )));
    };
    if row.is_kept_away() {
        return Err(Error::conflict(format!(
            "{label} is excluded for {:?}, its mark {} guards IDs of another system; name another \
             number",
            row.owner,
            mark_label(&reclaim.pool, slot, row.mark)
        )));
    }
    if row.mark <= to {
        return Ok(None);
    }
    if row.term != seen {
        return Err(Error::conflict(format!(
            "{label} changed hands: term {}, seen {}; read it again",
            row.term.get(),
            seen.get()
        )));
    }
    let holder =
        members.iter().find(|info| info.live && Some(info.member.incarnation) == row.holder);
    if let Some(info) = holder.filter(|_| !reclaim.from_live) {
        return Err(Error::conflict(format!(
            "{label} is held by {:?} on host {:?}; stop that process or revoke its token, then \
             reclaim",
            row.owner, info.member.host
        )));
    }
    Ok(Some(SlotRow { floor: to, extend_request: 0, ..given_up(row, to, now) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Incarnation;
    use crate::model::member::{Member, MemberStatus, Presence};

    const FAR: Mark = Mark::new(1 << 62);
    const NOW: UnixMillis = UnixMillis::new(1_000_000);
    const TO: Mark = Mark::new(1_000_085);

    fn row() -> SlotRow {
        SlotRow {
            slot: 3,
            term: Term::new(5),
            floor: Mark::new(900_000),
            mark: FAR,
            holder: Some(Incarnation::new(1)),
            owner: "mallory".into(),
            claim_request: 7,
            extend_request: 9,
            held_since: UnixMillis::new(900_000),
            given_up_at: UnixMillis::ZERO,
        }
    }

    fn reclaim() -> Reclaim {
        Reclaim {
            pool: "workers-10".into(),
            slots: vec![(3, Term::new(5))],
            reach_ms: 85,
            marks_at_least: Mark::ZERO,
            from_live: false,
        }
    }

    fn member(live: bool) -> MemberInfo {
        MemberInfo {
            member: Member {
                incarnation: Incarnation::new(1),
                owner: "mallory".into(),
                host: "h".into(),
                process: 1,
                address: String::new(),
            },
            joined_at: UnixMillis::ZERO,
            renewed_at: UnixMillis::ZERO,
            presence: Presence { sample: UnixMillis::ZERO, renewals: 0, ttl_ms: 1 },
            live,
            status: MemberStatus::default(),
        }
    }

    fn decide(
        reclaim: &Reclaim,
        seen: u64,
        row: Option<&SlotRow>,
        members: &[MemberInfo],
    ) -> Result<Option<SlotRow>, &'static str> {
        decide_reclaim(reclaim, (3, Term::new(seen)), row, members, TO, NOW)
            .map_err(|error| error.kind().code())
    }

    #[test]
    fn mark_far_ahead_is_reclaimed_and_its_holder_fenced() {
        let after = decide(&reclaim(), 5, Some(&row()), &[member(false)]).unwrap().unwrap();
        assert_eq!((after.mark, after.floor, after.term), (TO, TO, Term::new(6)));
        assert_eq!((after.holder, after.given_up_at, after.extend_request), (None, NOW, 0));
        // A second reclaim changes nothing.
        assert_eq!(decide(&reclaim(), 5, Some(&after), &[]), Ok(None));
    }

    #[test]
    fn slot_not_far_ahead_or_unavailable_is_unchanged() {
        let near = SlotRow { mark: TO, ..row() };
        assert_eq!(decide(&reclaim(), 5, Some(&near), &[]), Ok(None));
        assert_eq!(decide(&reclaim(), 5, None, &[]), Err("not_found"));
        assert_eq!(decide(&reclaim(), 4, Some(&row()), &[]), Err("conflict"));
        let excluded = SlotRow { mark: Mark::MAX, floor: Mark::MAX, holder: None, ..row() };
        assert_eq!(decide(&reclaim(), 5, Some(&excluded), &[]), Err("conflict"));
        let until = SlotRow { floor: FAR, claim_request: 0, holder: None, ..row() };
        assert_eq!(decide(&reclaim(), 5, Some(&until), &[]), Err("conflict"));
        let refused = |row: &SlotRow| {
            let refused = decide_reclaim(&reclaim(), (3, row.term), Some(row), &[], TO, NOW);
            refused.unwrap_err().message().into_owned()
        };
        assert!(refused(&excluded).contains(", its mark the end of time guards"));
        let time = UnixMillis::new(1_795_952_102_485);
        let shown = refused(&SlotRow { mark: Mark::from(time), floor: Mark::from(time), ..until });
        assert!(shown.contains(", its mark 2026-11-29T11:35:02.485Z guards"), "{shown}");
        // A number that was claimed since is excluded no more, held or given up.
        for holder in [None, Some(Incarnation::new(1))] {
            let claimed = SlotRow { floor: FAR, holder, ..row() };
            assert!(decide(&reclaim(), 5, Some(&claimed), &[]).unwrap().is_some());
        }
        // A holder that moved a mark to the end excludes nothing.
        let spoilt = SlotRow { mark: Mark::MAX, ..row() };
        assert!(decide(&reclaim(), 5, Some(&spoilt), &[]).unwrap().is_some());
    }

    #[test]
    fn a_live_holder_keeps_its_number_unless_that_is_meant() {
        let live = [member(true)];
        assert_eq!(decide(&reclaim(), 5, Some(&row()), &live), Err("conflict"));
        let meant = Reclaim { from_live: true, ..reclaim() };
        assert!(decide(&meant, 5, Some(&row()), &live).unwrap().is_some());
    }

    #[test]
    fn reclaim_never_lowers_below_known_marks() {
        let ground = |mark| SlotDefaults { mark: Mark::new(mark), ..SlotDefaults::default() };
        assert_eq!(reclaim().to(ground(0), NOW), TO);
        assert_eq!(reclaim().to(ground(2_000_000), NOW), Mark::new(2_000_000));
        let known = Reclaim { marks_at_least: Mark::new(3_000_000), ..reclaim() };
        assert_eq!(known.to(ground(2_000_000), NOW), Mark::new(3_000_000));
    }

    #[test]
    fn only_reusable_worker_numbers_are_reclaimed() {
        let external = Reclaim { pool: "lent-10-orders".into(), ..reclaim() };
        assert_eq!(external.check().unwrap_err().kind().code(), "invalid");
        reclaim().check().unwrap();
        let twice = Reclaim { slots: vec![(3, Term::new(5)), (3, Term::new(6))], ..reclaim() };
        assert_eq!(twice.check().unwrap_err().kind().code(), "invalid");
        let pool = |reuse| Pool { name: "p".into(), slots: 4, group: 1, reuse };
        reclaim().check_pool(&pool(Reuse::Recycle)).unwrap();
        for reuse in [Reuse::Never, Reuse::Ordered] {
            let error = reclaim().check_pool(&pool(reuse)).unwrap_err();
            assert_eq!(error.kind().code(), "invalid", "{error}");
        }
    }
}
