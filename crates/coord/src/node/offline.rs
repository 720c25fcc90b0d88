//! Offline minting before the store is reached: the rest of the windows that an earlier process of
//! this data directory was granted.
//!
//! From the journal's mark to the end that the store had granted, nothing was minted, and none of
//! it was ever promised to another member. Only a release lowers a mark, and a process journals a
//! release before it sends it. So the slot's present holder began at that end or above. The process
//! that holds the directory's lock may thus mint the rest, once, without the store and whatever
//! its clock shows.

use snowmint_core::UnixMillis;

use super::join::JOURNAL_LEAD_MS_MAX;
use super::lease::ActiveLease;
use crate::error::{Error, Result};
use crate::ids::{Incarnation, Mark};
use crate::journal::JournalLease;
use crate::machine::{Granted, Now, WindowAction, WindowMachine};
use crate::model::lease::Lease;
use crate::model::pool::{Pool, Reuse};
use crate::platform::random;

/// Returns the leases of one group of slots with something left to mint at `wall`; empty when the
/// journal has none.
pub(super) fn unminted_rest(
    past: &[JournalLease],
    pool: &Pool,
    worker: Option<u64>,
    wall: UnixMillis,
) -> Vec<JournalLease> {
    // Each start takes a number that no process had before, this start included.
    if pool.reuse == Reuse::Never {
        return Vec::new();
    }
    let size = u64::from(pool.group.max(1));
    let soon = Mark::from(wall.saturating_add(JOURNAL_LEAD_MS_MAX));
    let ours = || past.iter().filter(|lease| lease.pool == pool.name && !lease.released);
    let has_rest = |lease: &&JournalLease| {
        lease.mark <= soon && lease.granted > lease.mark.max(Mark::from(wall))
    };
    for group in ours().filter(has_rest).map(|lease| lease.slot / size) {
        if worker.is_some_and(|worker| worker != group) {
            continue;
        }
        let mut slots: Vec<_> =
            ours().filter(|lease| lease.slot / size == group).cloned().collect();
        slots.sort_by_key(|lease| lease.slot);
        slots.dedup_by_key(|lease| lease.slot);
        if u64::try_from(slots.len()) == Ok(size) {
            return slots;
        }
    }
    Vec::new()
}

impl ActiveLease {
    /// Mints from the rest of these windows, which an earlier member holds, until a slot is
    /// claimed.
    pub(super) fn resume_offline(
        &mut self,
        rest: &[JournalLease],
        holder: Option<Incarnation>,
    ) -> Result<()> {
        let window_policy = self.window_policy().offline();
        let window = |left: &JournalLease| {
            let lease = Lease {
                pool: left.pool.clone(),
                slot: left.slot,
                term: left.term,
                holder,
                // Nothing below this floor is given back: it may have been minted.
                floor: left.mark,
                mark: left.granted.max(left.mark),
            };
            let floor = left.mark.unix_millis();
            random::number().map(|seed| WindowMachine::new(lease, floor, window_policy, seed))
        };
        self.offline = rest.iter().map(window).collect::<Result<_>>()?;
        Ok(())
    }

    /// Returns whether this lease mints from what an earlier process was granted.
    pub(super) fn is_offline(&self) -> bool {
        !self.offline.is_empty()
    }

    /// Returns the end of offline minting; none when not offline.
    pub(super) fn offline_until(&self) -> Option<UnixMillis> {
        self.offline.iter().map(|window| window.mark().unix_millis()).max()
    }

    /// Returns the actions that are due. No window is extended: the store is not reached.
    pub(super) fn poll_offline(&mut self, now: Now) -> Vec<(usize, WindowAction)> {
        let mut actions = Vec::new();
        for (index, window) in self.offline.iter_mut().enumerate() {
            let position = self.seen.get(index).copied().unwrap_or_default();
            actions.extend(window.poll(now, position).into_iter().map(|action| (index, action)));
        }
        actions
    }

    /// Returns the milliseconds until the next poll.
    pub(super) fn next_offline_poll_ms(&self, now: Now) -> Option<u64> {
        let windows = self.offline.iter().zip(&self.seen);
        windows.filter_map(|(window, position)| window.next_poll_ms(now, *position)).min()
    }

    /// Records that the journal holds these marks durably, or `None` if the write failed. Returns
    /// the windows to open.
    pub(super) fn journalled_offline(
        &mut self,
        marks: Option<&[(u64, UnixMillis)]>,
    ) -> Vec<(usize, UnixMillis)> {
        let mut open = Vec::new();
        for (index, window) in self.offline.iter_mut().enumerate() {
            let Some(marks) = marks else {
                window.journal_failed();
                continue;
            };
            let slot = window.lease().slot;
            let mark = marks.iter().find(|(of, _)| *of == slot);
            open.extend(mark.and_then(|(_, mark)| window.journalled(*mark)).map(|to| (index, to)));
        }
        open
    }

    /// Returns the slots of offline minting, which a claim prefers. Their last minted time is known
    /// once offline minting has ended.
    pub(super) fn known_offline(&self) -> Vec<JournalLease> {
        let known = |window: &WindowMachine| JournalLease {
            pool: window.lease().pool.clone(),
            slot: window.lease().slot,
            term: window.lease().term,
            mark: Mark::from(window.open_until()),
            released: false,
            granted: window.mark(),
        };
        self.offline.iter().map(known).collect()
    }

    /// Ends offline minting once slots are claimed. A slot that is claimed again, and that no other
    /// member held in between, begins at the end of what was taken. Returns what is known of the
    /// old slots from here on.
    pub(super) fn end_offline_with(&mut self, granted: &mut [Granted]) -> Vec<JournalLease> {
        let reason = Error::unavailable("worker number is being claimed again; retry");
        let ends = self.close_groups(&reason);
        let known = self.known(&ends);
        self.offline.clear();
        for granted in granted {
            let same = known.iter().find(|known| known.slot == granted.lease.slot);
            if let Some(same) = same {
                let follows = same.term.next() == granted.lease.term;
                let floor = if follows { same.mark } else { granted.lease.floor };
                granted.floor = floor.unix_millis();
            }
        }
        self.forget_ends();
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Term;

    const NOW: UnixMillis = UnixMillis::new(1_000_000);

    fn lease(slot: u64, mark: u64, granted: u64) -> JournalLease {
        JournalLease {
            pool: "workers-10".into(),
            slot,
            term: Term::new(5),
            mark: Mark::new(mark),
            released: false,
            granted: Mark::new(granted),
        }
    }

    fn pool(group: u32) -> Pool {
        Pool { name: "workers-10".into(), slots: 1_024, group, reuse: Reuse::Recycle }
    }

    fn slots(past: &[JournalLease], pool: &Pool, worker: Option<u64>) -> Vec<u64> {
        unminted_rest(past, pool, worker, NOW).iter().map(|lease| lease.slot).collect()
    }

    #[test]
    fn offline_minting_uses_only_the_rest_of_an_own_window() {
        let left = lease(3, 999_900, 1_020_000);
        let one = |lease: JournalLease| slots(&[lease], &pool(1), None);
        assert_eq!(one(left.clone()), [3]);
        // At the limits: the mark at most one second ahead, the end beyond the clock.
        assert_eq!(one(lease(3, 1_001_000, 1_020_000)), [3]);
        assert!(one(lease(3, 1_001_001, 1_020_000)).is_empty());
        assert_eq!(one(lease(3, 999_900, 1_000_001)), [3]);
        assert!(one(lease(3, 999_900, 1_000_000)).is_empty());
        assert!(one(lease(3, 1_000_500, 1_000_500)).is_empty());
        // A journal that does not record how far the store had granted.
        assert!(one(lease(3, 999_900, 0)).is_empty());
        assert!(one(JournalLease { released: true, ..left.clone() }).is_empty());
        assert!(one(JournalLease { pool: "workers-12".into(), ..left.clone() }).is_empty());
        let past = [left.clone(), lease(7, 999_900, 1_020_000)];
        assert_eq!(slots(&past, &pool(1), Some(7)), [7]);
        assert!(slots(&past, &pool(1), Some(8)).is_empty());
        let never = Pool { reuse: Reuse::Never, ..pool(1) };
        assert!(slots(&past, &never, None).is_empty());
    }

    #[test]
    fn offline_minting_needs_all_clock_values() {
        let value = |slot, granted| lease(slot, 999_900, granted);
        // Nothing is left of the values that are not in use.
        let all = [value(9, 1_020_000), value(8, 5), value(11, 5), value(10, 5)];
        assert_eq!(slots(&all, &pool(4), None), [8, 9, 10, 11]);
        assert!(slots(&all[..3], &pool(4), None).is_empty());
        let mut one_is_gone = all.clone();
        one_is_gone[3].released = true;
        assert!(slots(&one_is_gone, &pool(4), None).is_empty());
    }
}
