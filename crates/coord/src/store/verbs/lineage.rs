//! State of the store that a handle has seen: the identity and the count of writes, kept together.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use snowmint_core::ElapsedMillis;

use super::history::{check_server_of, is_in_doubt, put_start, read_history, refuse_doubt};
use super::rows::{Access, Failure, Rows, RowsResult, THIS_PROCESS};
use super::seen_by_handle::SeenByHandle;
use crate::error::{Error, ErrorKind, Result};
use crate::model::history::{History, Recalled, StoreIdentity};
use crate::platform::lock::lock;

#[derive(Debug)]
pub(super) struct Lineage {
    /// `None` before the first step on rows.
    seen: Mutex<Option<SeenByHandle>>,
    /// Elapsed milliseconds at the beginning of the last step that reached the store.
    reached_at: AtomicU64,
    /// Milliseconds without a step after which this handle is out of touch.
    in_touch_ms: AtomicU64,
    /// Present time in touch; another one begins after a time out of touch.
    time_in_touch: AtomicU64,
    /// Time in touch in which this handle has last left a start; 0 before the first.
    begun_in: AtomicU64,
}

/// Fewest and most milliseconds without a step after which a handle is out of touch. The most is
/// the longest lease of counters.
const IN_TOUCH_MS: RangeInclusive<u64> = 5_000..=300_000;

impl Lineage {
    pub(super) const fn new() -> Self {
        Self {
            seen: Mutex::new(None),
            reached_at: AtomicU64::new(0),
            in_touch_ms: AtomicU64::new(*IN_TOUCH_MS.start()),
            time_in_touch: AtomicU64::new(1),
            begun_in: AtomicU64::new(0),
        }
    }

    /// Resets the state to that of a newly opened handle.
    pub(super) fn forget(&self) {
        *lock(&self.seen) = None;
        self.begun_in.store(0, Ordering::SeqCst);
    }

    /// Records that a member with this time to live has joined: it renews three times in it.
    pub(super) fn joined(&self, ttl_ms: u64) {
        let ttl_ms = ttl_ms.clamp(*IN_TOUCH_MS.start(), *IN_TOUCH_MS.end());
        self.in_touch_ms.fetch_max(ttl_ms, Ordering::SeqCst);
    }

    /// Returns the time in touch of a step that begins now. After a time out of touch it is another
    /// one: meanwhile others may have written, and the store may have been restored to what this
    /// handle has seen. Only another start then tells its next writes from the lost ones.
    pub(super) fn time_in_touch(&self, now: ElapsedMillis) -> u64 {
        let reached_at = self.reached_at.load(Ordering::SeqCst);
        if now.since(ElapsedMillis::new(reached_at)) > self.in_touch_ms.load(Ordering::SeqCst) {
            // Steps that begin after the same time out of touch agree. The first one is 1.
            self.time_in_touch.fetch_max(reached_at.saturating_add(2), Ordering::SeqCst);
        }
        self.time_in_touch.load(Ordering::SeqCst)
    }

    /// Records that a step in this time in touch has left a start.
    pub(super) fn has_begun(&self, time_in_touch: u64) {
        self.begun_in.fetch_max(time_in_touch, Ordering::SeqCst);
    }

    fn is_begun(&self) -> bool {
        self.begun_in.load(Ordering::SeqCst) >= self.time_in_touch.load(Ordering::SeqCst)
    }

    /// Records that a step reached the store, which began at `began`.
    pub(super) fn reached(&self, began: ElapsedMillis) {
        self.reached_at.fetch_max(began.get(), Ordering::SeqCst);
    }

    /// Records the state that an earlier process has seen.
    pub(super) fn remember(&self, seen: &StoreIdentity) {
        let is_known = !seen.id.is_empty();
        let mut known = lock(&self.seen);
        if known.is_none() && is_known {
            *known = Some(SeenByHandle::new(seen.clone()));
        }
    }

    pub(super) fn seen(&self) -> Option<Arc<StoreIdentity>> {
        self.by_handle().map(|seen| seen.identity)
    }

    pub(super) fn by_handle(&self) -> Option<SeenByHandle> {
        lock(&self.seen).clone()
    }

    /// Returns the base for steps of the back end's own: `None` before this handle has left a
    /// start, in doubt, and where the store lacks writes.
    pub(super) fn begun(&self) -> Option<Arc<StoreIdentity>> {
        let seen = self.by_handle().filter(|_| self.is_begun())?;
        let is_base = seen.short.is_none() && !History::says_doubt(&seen.identity.id);
        is_base.then_some(seen.identity)
    }

    /// Records that a step has written to the store, and found that it lacks an earlier write. The
    /// count hides that from later steps.
    pub(super) fn is_short(&self, found: u64) {
        if let Some(seen) = lock(&self.seen).as_mut() {
            seen.short = Some(seen.short.unwrap_or(found).min(found));
        }
    }

    /// Records the identity after a step.
    pub(super) fn saw(&self, identity: StoreIdentity, access: Access) {
        let mut seen = lock(&self.seen);
        // The rest of a store in doubt, which may have counted further, is not the state that was
        // seen.
        if access == Access::Read && seen.is_some() && History::says_doubt(&identity.id) {
            return;
        }
        let is_newest = seen.as_ref().is_none_or(|seen| {
            let is_short = seen.short.is_some() && seen.identity.id == identity.id;
            !is_short && seen.identity.writes <= identity.writes
        });
        if access == Access::Forward || is_newest {
            *seen = Some(SeenByHandle::new(identity));
        }
    }

    /// Records the count after a step of the back end's own, in the history that the step was
    /// given.
    pub(super) fn counted(&self, id: &str, writes: u64) {
        let mut seen = lock(&self.seen);
        let is_later = |seen: &&mut SeenByHandle| {
            seen.short.is_none() && seen.identity.id == id && seen.identity.writes < writes
        };
        if let Some(seen) = seen.as_mut().filter(is_later) {
            seen.identity = Arc::new(StoreIdentity { id: id.to_owned(), writes });
        }
    }

    /// Checks the store against the seen state: a handle that saw another store detects a
    /// replacement, and a handle that saw more of this store detects an older copy.
    pub(super) async fn check<R: Rows>(
        &self,
        rows: &mut R,
        access: Access,
        seen: Option<&SeenByHandle>,
        label: &str,
    ) -> RowsResult<R, ()> {
        let found = rows.identity().clone();
        if access == Access::Write {
            refuse_doubt(rows).await?;
            rows.check_rows()?;
        }
        let Some(seen) = seen else { return Ok(()) };
        if seen.is_kept_by(&found) {
            return Ok(());
        }
        let known = &seen.identity;
        // An operator who recovers a store in doubt reads the rest of it.
        let is_same = History::of(&known.id).store == History::of(&found.id).store;
        if is_same && access == Access::Read && is_in_doubt(rows).await? {
            return Ok(());
        }
        let past = read_history(rows).await?;
        let rolled_back = |seen, found| {
            Failure::from(Error::store_rolled_back(format!("change count of {label}"), seen, found))
        };
        let recalled = seen.recall(&found, &past);
        check_server_of(rows, &recalled)?;
        match recalled {
            Ok(Recalled::Same) => Ok(()),
            Ok(Recalled::Recovered) => {
                let writes = found.writes;
                // Users of this handle get one error, to learn that their leases and numbers are
                // void.
                self.saw(found, Access::Forward);
                Err(rolled_back(known.writes, writes))
            }
            Err(error) => match *error.kind() {
                ErrorKind::StoreRolledBack { seen, found, .. } => Err(rolled_back(seen, found)),
                _ => Err(Failure::from(error)),
            },
        }
    }

    /// Checks that the store is the one that was seen, in whatever state: doubts and reports
    /// concern that store.
    pub(super) fn check_store<R: Rows>(rows: &R, seen: Option<&SeenByHandle>) -> Result<()> {
        let Some(SeenByHandle { identity, .. }) = seen else { return Ok(()) };
        let (expected, found) =
            (History::of(&identity.id).store, History::of(&rows.identity().id).store);
        if expected == found {
            return Ok(());
        }
        Err(Error::store_mismatch(format!(
            "store is {found}, but {THIS_PROCESS} used {expected}; to use it in its place, move it \
             forward (snowmint worker fast-forward)"
        )))
    }

    /// Leaves a start with a step that writes, if this handle has left none since it was out of
    /// touch. Returns whether it did.
    pub(super) async fn begin<R: Rows>(&self, rows: &mut R) -> RowsResult<R, bool> {
        if self.is_begun() {
            return Ok(false);
        }
        let history = put_start(rows, None).await?;
        rows.name(history.to_string())?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::history::{Starts, StoredHistory};

    fn at(id: &str, writes: u64) -> StoreIdentity {
        StoreIdentity { id: id.into(), writes }
    }

    /// Returns the lineage of a handle that has left the start 1, and saw five writes.
    fn begun() -> Lineage {
        let lineage = Lineage::new();
        lineage.saw(at("s.0.1", 5), Access::Write);
        lineage.has_begun(1);
        lineage
    }

    /// The handle's own write has raised the count past the lost one.
    #[test]
    fn handle_that_missed_a_write_keeps_missing_it() {
        let lineage = begun();
        lineage.is_short(3);
        lineage.is_short(4);
        lineage.saw(at("s.0.1", 9), Access::Write);
        lineage.counted("s.0.1", 9);
        let seen = lineage.by_handle().unwrap();
        assert_eq!((&*seen.identity, seen.short), (&at("s.0.1", 5), Some(3)));
        assert_eq!(seen.lost_from(), Some(4));
        assert_eq!(lineage.begun(), None, "a fast step compares counts alone");
        assert!(!seen.is_kept_by(&at("s.0.1", 9)));
        let past =
            |text, recovered| StoredHistory { starts: Starts::read(text, 1).unwrap(), recovered };
        let refused = seen.recall(&at("s.0.1", 9), &past("1-1", 0)).unwrap_err();
        let shown = matches!(refused.kind(), ErrorKind::StoreRolledBack { seen: 5, found: 3, .. });
        assert!(shown, "{refused:?}");
        // A recovery that began at a higher count does not know of it.
        let recovered = at("s.1.2", 12);
        let recalled = seen.recall(&recovered, &past("1-1 10-2", 1)).unwrap();
        assert_eq!(recalled, Recalled::Recovered);
        lineage.saw(recovered.clone(), Access::Forward);
        assert!(lineage.by_handle().unwrap().is_kept_by(&recovered));
    }

    #[test]
    fn fast_steps_need_a_start_in_a_store_without_doubt() {
        assert_eq!(begun().begun().as_deref(), Some(&at("s.0.1", 5)));
        let reader = Lineage::new();
        reader.saw(at("s.0.1", 5), Access::Read);
        assert_eq!(reader.begun(), None);
        let lineage = begun();
        lineage.saw(at("s.0.2!", 6), Access::Write);
        assert_eq!(lineage.begun(), None);
    }

    /// A fast step may end after another step has found a newer history.
    #[test]
    fn counts_rise_within_one_history() {
        let lineage = begun();
        for (id, writes, seen) in [("s.0.1", 4, 5), ("s.0.2", 9, 5), ("s.0.1", 7, 7)] {
            lineage.counted(id, writes);
            assert_eq!(lineage.seen().as_deref(), Some(&at("s.0.1", seen)), "{id} {writes}");
        }
    }

    #[test]
    fn remembered_state_replaces_nothing_that_was_seen() {
        let lineage = begun();
        lineage.remember(&at("s.0.0", 99));
        assert_eq!(lineage.seen().as_deref(), Some(&at("s.0.1", 5)));
        let fresh = Lineage::new();
        fresh.remember(&at("", 9));
        assert_eq!(fresh.seen(), None);
        fresh.remember(&at("s.0.0", 9));
        assert_eq!(fresh.seen().as_deref(), Some(&at("s.0.0", 9)));
    }

    /// Meanwhile the store may have been restored to what the handle has seen.
    #[test]
    fn handle_that_was_out_of_touch_leaves_another_start() {
        let step = |lineage: &Lineage, ms| {
            let time = lineage.time_in_touch(ElapsedMillis::new(ms));
            lineage.reached(ElapsedMillis::new(ms));
            time
        };
        for (ttls_ms, in_touch_ms) in [
            (&[][..], 5_000),
            (&[3_000], 5_000),
            (&[60_000, 4_000], 60_000),
            (&[u64::MAX], 300_000),
        ] {
            let lineage = begun();
            ttls_ms.iter().for_each(|ttl_ms| lineage.joined(*ttl_ms));
            step(&lineage, 0);
            for turn in 1..4 {
                step(&lineage, turn * in_touch_ms);
                assert!(lineage.begun().is_some(), "{ttls_ms:?}");
            }
            // A read reaches the store as well; the next write must leave the start all the same.
            step(&lineage, 4 * in_touch_ms + 1);
            let time = step(&lineage, 4 * in_touch_ms + 2);
            assert_eq!(lineage.begun(), None, "{ttls_ms:?}");
            lineage.has_begun(time);
            assert!(lineage.begun().is_some(), "{ttls_ms:?}");
        }
    }

    /// The process slept before it handled the result.
    #[test]
    fn start_from_before_a_time_out_of_touch_does_not_count() {
        let lineage = Lineage::new();
        lineage.saw(at("s.0.1", 5), Access::Write);
        let before = lineage.time_in_touch(ElapsedMillis::new(1));
        lineage.reached(ElapsedMillis::new(1));
        let after = [60_000, 60_001].map(|ms| lineage.time_in_touch(ElapsedMillis::new(ms)));
        assert_eq!(after, [3; 2], "two steps after one time out of touch");
        lineage.has_begun(before);
        assert_eq!(lineage.begun(), None);
        lineage.has_begun(after[0]);
        assert!(lineage.begun().is_some());
    }
}
