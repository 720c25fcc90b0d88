//! One slot's window: how far it reaches, and when it moves.

use snowmint_core::{ElapsedMillis, Rfc3339, UnixMillis};

use super::{Now, RequestNumbers, WindowPolicy};
use crate::error::{Error, Result};
use crate::ids::Mark;
use crate::model::lease::{Extend, Extended, Lease, NotExtended, Release};
use crate::platform::backoff::backoff_ms;

/// Position of a slot's generators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// End of everything taken, or the time of the next ID if that is later because a clock that
    /// stepped back is held.
    pub taken_until: UnixMillis,
    /// Whether the slot may be needed soon; false for clock values that are not in use.
    pub wanted: bool,
    /// A clock that stepped back is held: time advances at half speed until the wall clock has
    /// caught up.
    pub held: bool,
}

/// Action due for a window.
#[derive(Clone, Debug)]
pub enum WindowAction {
    /// Send this extend to the store, and report the result.
    Extend(Extend),
    /// Write the journal with this mark, and report when it is durable.
    Journal(UnixMillis),
    /// Everything below this time may be minted. Never less than what was open before.
    Open(UnixMillis),
    /// Close the generators for good, now: another member has, or may have, the slot.
    Shut(Error),
}

/// One slot's window, from the claim to its end.
#[derive(Clone, Debug)]
pub struct WindowMachine {
    lease: Lease,
    floor: UnixMillis,
    window_policy: WindowPolicy,
    requests: RequestNumbers,
    /// Store's mark, as it acknowledged it.
    mark: Mark,
    /// Journal's mark, as the disk has it.
    journal_mark: UnixMillis,
    journal_pending: Option<UnixMillis>,
    opened: UnixMillis,
    use_seen: UseSeen,
    /// Nothing was taken for so long that the journal's mark is left behind; true until a newer
    /// mark is on disk.
    idle: bool,
    pending: Option<PendingExtend>,
    retry_at: ElapsedMillis,
    failures: u32,
    /// Store's error for the last extend, if it failed.
    extend_error: Option<Error>,
    over: bool,
}

/// Time at which a change of `taken_until` was last seen.
#[derive(Clone, Copy, Debug, Default)]
struct UseSeen {
    taken_until: UnixMillis,
    /// None before the first poll.
    at: Option<ElapsedMillis>,
}

/// Extend with an unknown outcome.
#[derive(Clone, Debug)]
struct PendingExtend {
    extend: Extend,
    /// In flight; otherwise it waits to be repeated, with the same request number.
    sent: bool,
}

impl WindowMachine {
    /// Creates the window of a lease. `floor` is where its generators begin: the lease's own floor,
    /// or a finer one from a journal that proves that no other member held the slot in between.
    /// `seed` is any random number.
    #[must_use]
    pub fn new(lease: Lease, floor: UnixMillis, window_policy: WindowPolicy, seed: u64) -> Self {
        let mark = lease.mark;
        Self {
            lease,
            floor,
            window_policy,
            requests: RequestNumbers::new(seed),
            mark,
            journal_mark: floor,
            journal_pending: None,
            opened: floor,
            use_seen: UseSeen::default(),
            idle: false,
            pending: None,
            retry_at: ElapsedMillis::default(),
            failures: 0,
            extend_error: None,
            over: false,
        }
    }

    /// Returns the lease as it was claimed.
    #[must_use]
    pub const fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Returns the time at which generators of this slot begin.
    #[must_use]
    pub const fn floor(&self) -> UnixMillis {
        self.floor
    }

    /// Keeps the window by this policy from here on.
    pub fn set_window_policy(&mut self, window_policy: WindowPolicy) {
        self.window_policy = window_policy;
    }

    /// Returns the store's mark, as it acknowledged it.
    #[must_use]
    pub const fn mark(&self) -> Mark {
        self.mark
    }

    /// Returns the exclusive end of what may be minted: the nearer one of the store's and the
    /// journal's mark.
    #[must_use]
    pub fn open_until(&self) -> UnixMillis {
        let mark = self.mark.unix_millis();
        if self.window_policy.journal.is_some() { mark.min(self.journal_mark) } else { mark }
    }

    /// Returns the mark that the journal should hold now: the one in flight to it, or the one it
    /// has.
    #[must_use]
    pub fn journal_target(&self) -> UnixMillis {
        self.journal_pending.unwrap_or(self.journal_mark)
    }

    /// Returns whether the window has ended for good.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Returns the actions that are due now, with the generators at `position`.
    pub fn poll(&mut self, now: Now, position: Position) -> Vec<WindowAction> {
        let mut actions = Vec::new();
        if self.over {
            return actions;
        }
        let at = self.at(now, position);
        if self.use_seen.at.is_none() || self.use_seen.taken_until != position.taken_until {
            self.use_seen = UseSeen { taken_until: position.taken_until, at: Some(now.elapsed) };
        }
        self.idle |= self.is_unused(now);
        if self.next_extend_ms(now, position) == Some(0) {
            actions.extend(self.extend(at, now.chance).map(WindowAction::Extend));
        }
        if self.next_journal_ms(now, position) == Some(0) {
            actions.extend(self.move_journal(at).map(WindowAction::Journal));
        }
        actions.extend(self.open_if_more().map(WindowAction::Open));
        actions
    }

    /// Returns the time that is minted from now.
    fn at(&self, now: Now, position: Position) -> UnixMillis {
        now.wall.max(position.taken_until).max(self.floor)
    }

    /// Records that a caller wants to mint and found the window spent.
    pub fn note_demand(&mut self, now: Now) {
        self.use_seen.at = Some(now.elapsed);
    }

    /// Returns whether the journal is idle: nothing is minted.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.idle
    }

    /// Returns whether nothing was taken for so long that the journal may become idle.
    fn is_unused(&self, now: Now) -> bool {
        let idle_after_ms = self.window_policy.journal.and_then(|policy| policy.idle_after_ms);
        let unused_ms = self.use_seen.at.map_or(0, |at| now.elapsed.since(at));
        idle_after_ms.is_some_and(|idle_after_ms| unused_ms >= idle_after_ms)
    }

    /// Returns the milliseconds until an extend is sent; none while one is in flight, or none is
    /// wanted.
    fn next_extend_ms(&self, now: Now, position: Position) -> Option<u64> {
        let retry_ms = self.retry_at.since(now.elapsed);
        if let Some(pending) = &self.pending {
            return (!pending.sent).then_some(retry_ms);
        }
        let window_ms = self.window_policy.window_ms;
        let end = self.mark.unix_millis();
        (position.wanted && window_ms > 0)
            .then(|| self.ms_until_left(window_ms / 2, end, now, position).max(retry_ms))
    }

    /// Returns the milliseconds until the journal's mark is moved; none while a write is in flight,
    /// or there is nothing to write.
    fn next_journal_ms(&self, now: Now, position: Position) -> Option<u64> {
        let policy = self.window_policy.journal?;
        // There is nothing to write until the store's mark is further ahead.
        let room = self.mark.unix_millis() > self.journal_mark;
        let waits =
            position.wanted && room && self.journal_pending.is_none() && !self.is_unused(now);
        waits.then(|| self.ms_until_left(policy.renew_below_ms, self.journal_mark, now, position))
    }

    /// Returns the milliseconds until at most `left_ms` are left before `end`. By the wall clock
    /// alone, the machine would poll a held clock again and again, each time after half of what is
    /// left.
    fn ms_until_left(&self, left_ms: u64, end: UnixMillis, now: Now, position: Position) -> u64 {
        let at = self.at(now, position);
        let ms = end.since(at).saturating_sub(left_ms);
        if position.held { ms.saturating_add(ms.min(at.since(now.wall))) } else { ms }
    }

    fn extend(&mut self, at: UnixMillis, chance: fn() -> u64) -> Option<Extend> {
        if let Some(pending) = &mut self.pending {
            // Repeat the same request: the store knows whether it has done it.
            pending.sent = true;
            return Some(pending.extend.clone());
        }
        let to = Mark::from(at.saturating_add(self.window_policy.window_ms)).min(Mark::MAX);
        if to <= self.mark {
            return None;
        }
        let extend = Extend {
            pool: self.lease.pool.clone(),
            slot: self.lease.slot,
            term: self.lease.term,
            holder: self.lease.holder,
            from: self.mark,
            to,
            request: self.requests.next(chance),
            ahead_max_ms: Some(self.window_policy.ahead_max_ms),
        };
        self.pending = Some(PendingExtend { extend: extend.clone(), sent: true });
        Some(extend)
    }

    /// Moves the journal's mark for a write that happens anyway, due or not.
    pub fn journal(&mut self, now: Now, position: Position) {
        if !self.over && self.next_journal_ms(now, position).is_some() {
            self.move_journal(self.at(now, position));
        }
    }

    /// Moves the journal's mark.
    fn move_journal(&mut self, at: UnixMillis) -> Option<UnixMillis> {
        let policy = self.window_policy.journal?;
        // Nothing can be minted beyond the store's mark.
        let to = at.saturating_add(policy.ahead_ms).min(self.mark.unix_millis());
        if to <= self.journal_mark {
            return None;
        }
        self.journal_pending = Some(to);
        Some(to)
    }

    /// Returns the store's error for the last extend; none if it succeeded.
    #[must_use]
    pub const fn extend_error(&self) -> Option<&Error> {
        self.extend_error.as_ref()
    }

    fn open_if_more(&mut self) -> Option<UnixMillis> {
        let until = self.open_until();
        (until > self.opened).then(|| {
            self.opened = until;
            until
        })
    }

    /// Handles the store's result for the extend with this request number.
    pub fn extended(
        &mut self,
        now: Now,
        request: u64,
        result: &Result<Extended>,
    ) -> Vec<WindowAction> {
        let mut actions = Vec::new();
        let pending = match self.pending.take() {
            Some(pending) if pending.extend.request == request && !self.over => pending,
            // Late, and settled otherwise since.
            other => {
                self.pending = other;
                return actions;
            }
        };
        self.extend_error = result.as_ref().err().cloned();
        match result {
            Ok(extended) if extended.mark == pending.extend.to => {
                self.failures = 0;
                self.mark = extended.mark;
                actions.extend(self.open_if_more().map(WindowAction::Open));
            }
            Ok(extended) => {
                let error = Error::internal(format!(
                    "internal error: extend to mark {} returned mark {}; please report it",
                    Rfc3339(pending.extend.to.unix_millis()),
                    Rfc3339(extended.mark.unix_millis())
                ));
                self.over = true;
                actions.push(WindowAction::Shut(error));
            }
            Err(error) => match NotExtended::by(error.kind()) {
                NotExtended::Refused => self.retry_later(now),
                NotExtended::Lost => {
                    self.over = true;
                    actions.push(WindowAction::Shut(error.clone()));
                }
                NotExtended::Unknown => {
                    self.pending = Some(PendingExtend { sent: false, ..pending });
                    self.retry_later(now);
                }
            },
        }
        actions
    }

    fn retry_later(&mut self, now: Now) {
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now.elapsed.saturating_add(backoff_ms(self.failures));
    }

    /// Records that the journal holds `mark` durably.
    pub fn journalled(&mut self, mark: UnixMillis) -> Option<UnixMillis> {
        if self.over {
            return None;
        }
        if self.journal_pending.is_some_and(|pending| pending <= mark) {
            self.journal_pending = None;
            self.idle = false;
        }
        self.journal_mark = self.journal_mark.max(mark);
        self.open_if_more()
    }

    /// Records that the journal could not be written: its content is unknown, but never beyond the
    /// requested mark.
    pub fn journal_failed(&mut self) {
        self.journal_pending = None;
        self.idle = false;
    }

    /// Ends the window: its generators are closed, and have taken everything below `taken_until`.
    /// Returns the release that gives the slot up.
    pub fn close(&mut self, taken_until: UnixMillis) -> Release {
        self.over = true;
        let floor = self.lease.floor;
        // An extend in flight may have moved the store's mark, never lowered it.
        let mark = Mark::from(taken_until).clamp(floor, self.mark.max(floor));
        Release {
            pool: self.lease.pool.clone(),
            slot: self.lease.slot,
            term: self.lease.term,
            holder: self.lease.holder,
            mark,
            from: None,
        }
    }

    /// Returns the milliseconds until the next poll, if nothing happens before.
    #[must_use]
    pub fn next_poll_ms(&self, now: Now, position: Position) -> Option<u64> {
        if self.over {
            return None;
        }
        let next = [self.next_extend_ms(now, position), self.next_journal_ms(now, position)];
        next.into_iter().flatten().min()
    }

    /// Returns whether the slot can be minted from now, with at least `margin_ms` to spare. An idle
    /// slot can be minted from after one write of the journal.
    #[must_use]
    pub fn has_margin(&self, now: Now, margin_ms: u64) -> bool {
        let until = if self.idle { self.mark.unix_millis() } else { self.open_until() };
        !self.over && until > now.wall.max(self.floor).saturating_add(margin_ms)
    }
}
