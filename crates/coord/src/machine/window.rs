//! One slot's window: how far it reaches, and when it is moved on.

use snowmint_core::{ElapsedMillis, UnixMillis};

use super::{Now, Pace, Requests, backoff_ms};
use crate::error::{Error, Result};
use crate::lease::{Extend, Extended, Lease, Mark, NotExtended, Release};

/// Where the generators of a slot are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The end of everything taken, or the time that the next ID would say if that is later because
    /// a clock that went back is held.
    pub taken_until: UnixMillis,
    /// Whether the slot may be needed soon: not so for the clock values that do not serve.
    pub wanted: bool,
    /// A clock that went back is held: time runs on at half speed until the wall clock is there.
    pub held: bool,
}

/// What to do about a window.
#[derive(Clone, Debug)]
pub enum WindowAction {
    /// Ask the store for this, and hand in the answer.
    Extend(Extend),
    /// Write the journal with this mark, and hand in that it is durable.
    Journal(UnixMillis),
    /// Everything below this time may be minted. Never less than what was open before.
    Open(UnixMillis),
    /// Close the generators for good, now: somebody else has, or may have, the slot.
    Shut(Error),
}

/// One slot's window, from the claim to its end.
#[derive(Clone, Debug)]
pub struct WindowMachine {
    lease: Lease,
    floor: UnixMillis,
    pace: Pace,
    requests: Requests,
    /// The store's mark, as it acknowledged it.
    mark: Mark,
    /// The journal's mark, as it is on the disk.
    journal_mark: UnixMillis,
    journal_asked: Option<UnixMillis>,
    opened: UnixMillis,
    use_seen: UseSeen,
    /// Nothing was taken for so long that the journal's mark is left behind; true until it is on disk
    /// again.
    resting: bool,
    asked: Option<PendingExtend>,
    retry_at: ElapsedMillis,
    failures: u32,
    /// Why the store did not extend it when it was last asked.
    refusal: Option<Error>,
    over: bool,
}

/// When something was last seen to be taken.
#[derive(Clone, Copy, Debug, Default)]
struct UseSeen {
    taken_until: UnixMillis,
    /// None before the first look.
    at: Option<ElapsedMillis>,
}

/// An extend whose outcome is not known yet.
#[derive(Clone, Debug)]
struct PendingExtend {
    extend: Extend,
    /// On its way; else it waits to be repeated, with the same request number.
    sent: bool,
}

impl WindowMachine {
    /// The window of a lease. `floor` is where its generators begin: the lease's own, or a finer one
    /// from a journal that proves that nobody held the slot in between. `seed` is any random number.
    #[must_use]
    pub fn new(lease: Lease, floor: UnixMillis, pace: Pace, seed: u64) -> Self {
        let mark = lease.mark;
        Self {
            lease,
            floor,
            pace,
            requests: Requests::new(seed),
            mark,
            journal_mark: floor,
            journal_asked: None,
            opened: floor,
            use_seen: UseSeen::default(),
            resting: false,
            asked: None,
            retry_at: ElapsedMillis::default(),
            failures: 0,
            refusal: None,
            over: false,
        }
    }

    /// The lease as it was claimed.
    #[must_use]
    pub const fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Where generators of this slot begin.
    #[must_use]
    pub const fn floor(&self) -> UnixMillis {
        self.floor
    }

    /// From here on the window is kept at this pace.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// The store's mark, as it acknowledged it.
    #[must_use]
    pub const fn mark(&self) -> Mark {
        self.mark
    }

    /// The exclusive end of what may be minted: the nearer one of the store's and the journal's mark.
    #[must_use]
    pub fn open_until(&self) -> UnixMillis {
        let mark = self.mark.unix_millis();
        if self.pace.journal.is_some() { mark.min(self.journal_mark) } else { mark }
    }

    /// The mark that the journal should hold now: the one on its way there, or the one it has.
    #[must_use]
    pub fn journal_target(&self) -> UnixMillis {
        self.journal_asked.unwrap_or(self.journal_mark)
    }

    /// Whether the window has ended for good.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// What is due now, with the generators at `position`.
    pub fn look(&mut self, now: Now, position: Position) -> Vec<WindowAction> {
        let mut actions = Vec::new();
        if self.over {
            return actions;
        }
        let at = self.at(now, position);
        if self.use_seen.at.is_none() || self.use_seen.taken_until != position.taken_until {
            self.use_seen = UseSeen { taken_until: position.taken_until, at: Some(now.elapsed) };
        }
        self.resting |= self.is_unused(now);
        if now.elapsed >= self.retry_at {
            actions.extend(self.extend_if_due(at, position, now.chance).map(WindowAction::Extend));
        }
        if !self.is_unused(now) {
            actions.extend(self.journal_if_due(at, position).map(WindowAction::Journal));
        }
        actions.extend(self.open_if_more().map(WindowAction::Open));
        actions
    }

    /// The time that is minted from now.
    fn at(&self, now: Now, position: Position) -> UnixMillis {
        now.wall.max(position.taken_until).max(self.floor)
    }

    /// Somebody wants to mint, and found the window spent.
    pub fn stir(&mut self, now: Now) {
        self.use_seen.at = Some(now.elapsed);
    }

    /// Whether the journal rests: nobody mints.
    #[must_use]
    pub const fn is_resting(&self) -> bool {
        self.resting
    }

    /// Whether nothing was taken for so long that the journal may rest.
    fn is_unused(&self, now: Now) -> bool {
        let rest_after_ms = self.pace.journal.and_then(|pace| pace.rest_after_ms);
        let unused_ms = self.use_seen.at.map_or(0, |at| now.elapsed.since(at));
        rest_after_ms.is_some_and(|rest_after_ms| unused_ms >= rest_after_ms)
    }

    fn extend_if_due(
        &mut self,
        at: UnixMillis,
        position: Position,
        chance: fn() -> u64,
    ) -> Option<Extend> {
        if let Some(asked) = &mut self.asked {
            // The same request again: the store knows whether it did it.
            return (!std::mem::replace(&mut asked.sent, true)).then(|| asked.extend.clone());
        }
        let left_ms = self.mark.unix_millis().since(at);
        if !position.wanted || self.pace.window_ms == 0 || left_ms > self.pace.window_ms / 2 {
            return None;
        }
        let to = Mark::from(at.saturating_add(self.pace.window_ms)).min(Mark::MAX);
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
            ahead_max_ms: Some(self.pace.ahead_max_ms),
        };
        self.asked = Some(PendingExtend { extend: extend.clone(), sent: true });
        Some(extend)
    }

    /// The journal is written anyway: its mark is moved on with it, due or not.
    pub fn journal(&mut self, now: Now, position: Position) {
        if !self.over && !self.is_unused(now) {
            self.journal_below(u64::MAX, self.at(now, position), position);
        }
    }

    fn journal_if_due(&mut self, at: UnixMillis, position: Position) -> Option<UnixMillis> {
        self.journal_below(self.pace.journal?.renew_below_ms, at, position)
    }

    /// Moves the journal's mark on, if no more than so much is left.
    fn journal_below(
        &mut self,
        left_ms_max: u64,
        at: UnixMillis,
        position: Position,
    ) -> Option<UnixMillis> {
        let pace = self.pace.journal?;
        let left_ms = self.journal_mark.since(at);
        if !position.wanted || self.journal_asked.is_some() || left_ms > left_ms_max {
            return None;
        }
        // Beyond the store's mark nothing can be minted anyway.
        let to = at.saturating_add(pace.ahead_ms).min(self.mark.unix_millis());
        if to <= self.journal_mark {
            return None;
        }
        self.journal_asked = Some(to);
        Some(to)
    }

    /// Why the store did not extend it when it was last asked; none when it did.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Error> {
        self.refusal.as_ref()
    }

    fn open_if_more(&mut self) -> Option<UnixMillis> {
        let until = self.open_until();
        (until > self.opened).then(|| {
            self.opened = until;
            until
        })
    }

    /// The store's answer to the extend with this request number.
    pub fn extended(
        &mut self,
        now: Now,
        request: u64,
        answer: &Result<Extended>,
    ) -> Vec<WindowAction> {
        let mut actions = Vec::new();
        let asked = match self.asked.take() {
            Some(asked) if asked.extend.request == request && !self.over => asked,
            // Late, and settled otherwise since.
            other => {
                self.asked = other;
                return actions;
            }
        };
        self.refusal = answer.as_ref().err().cloned();
        match answer {
            Ok(extended) if extended.mark == asked.extend.to => {
                self.failures = 0;
                self.mark = extended.mark;
                actions.extend(self.open_if_more().map(WindowAction::Open));
            }
            Ok(extended) => {
                let what = format!(
                    "an extend to {} was answered with mark {}",
                    asked.extend.to, extended.mark
                );
                self.over = true;
                actions.push(WindowAction::Shut(Error::internal("extend", what)));
            }
            Err(error) => match NotExtended::by(error.kind()) {
                NotExtended::Refused => self.ask_later(now),
                NotExtended::Lost => {
                    self.over = true;
                    actions.push(WindowAction::Shut(error.clone()));
                }
                NotExtended::Unknown => {
                    self.asked = Some(PendingExtend { sent: false, ..asked });
                    self.ask_later(now);
                }
            },
        }
        actions
    }

    fn ask_later(&mut self, now: Now) {
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now.elapsed.saturating_add(backoff_ms(self.failures));
    }

    /// The journal holds `mark`, durably.
    pub fn journalled(&mut self, mark: UnixMillis) -> Option<UnixMillis> {
        if self.over {
            return None;
        }
        if self.journal_asked.is_some_and(|asked| asked <= mark) {
            self.journal_asked = None;
            self.resting = false;
        }
        self.journal_mark = self.journal_mark.max(mark);
        self.open_if_more()
    }

    /// The journal could not be written: what it holds is not known, but never more than was asked.
    pub fn journal_failed(&mut self) {
        self.journal_asked = None;
        self.resting = false;
    }

    /// Ends the window: its generators are closed, and have taken everything below `taken_until`.
    /// Answers how to give the slot up.
    pub fn close(&mut self, taken_until: UnixMillis) -> Release {
        self.over = true;
        let floor = self.lease.floor;
        // An extend on its way may have moved the store's mark, never lowered it.
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

    /// In how many milliseconds to look again, if nothing happens until then.
    #[must_use]
    pub fn look_in_ms(&self, now: Now, position: Position) -> Option<u64> {
        if self.over {
            return None;
        }
        let at = self.at(now, position);
        // In how long so much of the window is over. By the wall clock alone, a held clock would be looked
        // at again and again, each time after half of what is left.
        let over_in_ms = |ms: u64| {
            let held_ms = ms.saturating_add(ms.min(at.since(now.wall)));
            if position.held { held_ms } else { ms }
        };
        let retry_ms = self.retry_at.since(now.elapsed);
        let extend = match &self.asked {
            Some(asked) => (!asked.sent).then_some(retry_ms),
            None => (position.wanted && self.pace.window_ms > 0).then(|| {
                let left_ms = self.mark.unix_millis().since(at);
                over_in_ms(left_ms.saturating_sub(self.pace.window_ms / 2)).max(retry_ms)
            }),
        };
        let journal = self
            .pace
            .journal
            .filter(|_| {
                // Nothing to write until the store's mark is further ahead.
                let room = self.mark.unix_millis() > self.journal_mark;
                position.wanted && self.journal_asked.is_none() && room && !self.is_unused(now)
            })
            .map(|pace| {
                over_in_ms(self.journal_mark.since(at).saturating_sub(pace.renew_below_ms))
            });
        extend.into_iter().chain(journal).min()
    }

    /// Whether the slot can be minted from now, with at least `margin_ms` to spare. While it rests,
    /// it can after one write of the journal.
    #[must_use]
    pub fn has_margin(&self, now: Now, margin_ms: u64) -> bool {
        let until = if self.resting { self.mark.unix_millis() } else { self.open_until() };
        !self.over && until > now.wall.max(self.floor).saturating_add(margin_ms)
    }
}
