//! One claim, and the windows of its slots.

use snowmint_core::{ElapsedMillis, UnixMillis};

use super::window::{Position, WindowAction, WindowMachine};
use super::window_policy::WindowPolicy;
use super::{Now, RequestNumbers};
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::model::lease::{Extended, Lease, Release};
use crate::platform::backoff::backoff_ms;

/// Retry interval, in milliseconds, after an error that no retry of ours can change: an operator
/// may have changed its cause.
const HOPELESS_RETRY_MS: u64 = 5_000;
/// Longest wait before a new claim on a full pool, even if the pool reports a longer one.
const CLAIM_RETRY_MS_MAX: u64 = 5_000;

/// Claimed slot, and the floor of its generators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Lease.
    pub lease: Lease,
    /// Lease's floor, or a finer one that a journal proves.
    pub floor: UnixMillis,
}

/// Event of a lease.
#[derive(Debug)]
pub enum LeaseEvent<'a> {
    /// Time has passed. One position for each slot held; none while nothing is held.
    Poll(&'a [Position]),
    /// Result of the claim with this request number.
    Claimed {
        /// Claim's request number.
        request: u64,
        /// Store's result.
        result: Result<Vec<Granted>>,
    },
    /// Result of an extend.
    Extended {
        /// Slot.
        slot: u64,
        /// Extend's request number.
        request: u64,
        /// Store's result.
        result: &'a Result<Extended>,
    },
    /// The journal holds these marks durably, one for each slot held.
    Journalled(&'a [(u64, UnixMillis)]),
    /// The journal could not be written.
    JournalFailed,
}

/// Action due for a lease.
#[derive(Clone, Debug)]
pub enum LeaseAction {
    /// Claim slots, under this request number, and report the result.
    Claim {
        /// Number that identifies the claim when it is repeated.
        request: u64,
    },
    /// Slots are held: make generators for them, from [`WindowMachine::floor`].
    Granted,
    /// Action for the window of the slot with this index.
    Window {
        /// Index of the slot, in the order of the claim.
        index: usize,
        /// Action for the window.
        action: WindowAction,
    },
    /// All slots are lost: close all generators for good, now.
    Lost(Error),
}

/// Lease from the first claim to its end.
#[derive(Debug)]
pub struct LeaseMachine {
    window_policy: WindowPolicy,
    requests: RequestNumbers,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Wanting(Wanting),
    Holding(Vec<WindowMachine>),
    /// Lost, or given up.
    Over,
}

#[derive(Debug)]
struct Wanting {
    /// Kept until the outcome is known: the store must recognise a repeat.
    request: u64,
    sent: bool,
    retry_at: ElapsedMillis,
    failures: u32,
    error: Option<Error>,
}

impl Wanting {
    /// Returns the milliseconds until the next claim; none while one is in flight.
    fn next_claim_ms(&self, now: Now) -> Option<u64> {
        (!self.sent).then(|| self.retry_at.since(now.elapsed))
    }
}

impl LeaseMachine {
    /// Creates a lease without any claim yet. `seed` is any random number.
    #[must_use]
    pub fn new(window_policy: WindowPolicy, seed: u64) -> Self {
        let mut requests = RequestNumbers::new(seed);
        let wanting = Wanting {
            // The seed was drawn just now.
            request: requests.next(|| 0),
            sent: false,
            retry_at: ElapsedMillis::default(),
            failures: 0,
            error: None,
        };
        Self { window_policy, requests, phase: Phase::Wanting(wanting) }
    }

    /// Returns the windows of the slots held, in the order of the claim.
    #[must_use]
    pub fn windows(&self) -> &[WindowMachine] {
        match &self.phase {
            Phase::Holding(windows) => windows,
            _ => &[],
        }
    }

    /// Moves the journal marks for a write that happens anyway, with the generators at these
    /// positions.
    pub fn journal(&mut self, now: Now, positions: &[Position]) {
        if let Phase::Holding(windows) = &mut self.phase {
            for (window, position) in windows.iter_mut().zip(positions) {
                window.journal(now, *position);
            }
        }
    }

    /// Returns the last error of the claim, if nothing is held yet.
    #[must_use]
    pub const fn claim_error(&self) -> Option<&Error> {
        match &self.phase {
            Phase::Wanting(wanting) => wanting.error.as_ref(),
            _ => None,
        }
    }

    /// Returns whether the result of the claim with this request number is pending.
    #[must_use]
    pub const fn awaits(&self, request: u64) -> bool {
        matches!(&self.phase, Phase::Wanting(wanting) if wanting.sent && wanting.request == request)
    }

    /// Returns whether the lease has ended for good.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// Handles an event, and returns the actions that are due.
    pub fn on(&mut self, now: Now, event: LeaseEvent<'_>) -> Vec<LeaseAction> {
        match event {
            LeaseEvent::Poll(positions) => self.poll(now, positions),
            LeaseEvent::Claimed { request, result } => self.claimed(now, request, result),
            LeaseEvent::Extended { slot, request, result } => {
                let Phase::Holding(windows) = &mut self.phase else { return Vec::new() };
                let found =
                    windows.iter_mut().enumerate().find(|(_, window)| window.lease().slot == slot);
                let Some((index, window)) = found else { return Vec::new() };
                let actions = window.extended(now, request, result);
                self.window_actions(index, actions)
            }
            LeaseEvent::Journalled(marks) => {
                let Phase::Holding(windows) = &mut self.phase else { return Vec::new() };
                let mut actions = Vec::new();
                for (index, window) in windows.iter_mut().enumerate() {
                    let slot = window.lease().slot;
                    let mark = marks.iter().find(|(of, _)| *of == slot);
                    let open = mark.and_then(|(_, mark)| window.journalled(*mark));
                    actions.extend(open.map(|until| LeaseAction::Window {
                        index,
                        action: WindowAction::Open(until),
                    }));
                }
                actions
            }
            LeaseEvent::JournalFailed => {
                if let Phase::Holding(windows) = &mut self.phase {
                    windows.iter_mut().for_each(WindowMachine::journal_failed);
                }
                Vec::new()
            }
        }
    }

    fn poll(&mut self, now: Now, positions: &[Position]) -> Vec<LeaseAction> {
        match &mut self.phase {
            Phase::Wanting(wanting) if wanting.next_claim_ms(now) == Some(0) => {
                wanting.sent = true;
                vec![LeaseAction::Claim { request: wanting.request }]
            }
            Phase::Holding(windows) => {
                let mut actions = Vec::new();
                for (index, window) in windows.iter_mut().enumerate() {
                    let position = positions.get(index).copied().unwrap_or_default();
                    let todo = window.poll(now, position);
                    actions.extend(
                        todo.into_iter().map(|action| LeaseAction::Window { index, action }),
                    );
                }
                actions
            }
            _ => Vec::new(),
        }
    }

    fn claimed(
        &mut self,
        now: Now,
        request: u64,
        result: Result<Vec<Granted>>,
    ) -> Vec<LeaseAction> {
        let Phase::Wanting(wanting) = &mut self.phase else { return Vec::new() };
        if wanting.request != request || !wanting.sent {
            return Vec::new();
        }
        match result {
            Ok(granted) if !granted.is_empty() => {
                let windows = granted
                    .into_iter()
                    .map(|Granted { lease, floor }| {
                        WindowMachine::new(
                            lease,
                            floor,
                            self.window_policy,
                            self.requests.next(now.chance),
                        )
                    })
                    .collect();
                self.phase = Phase::Holding(windows);
                vec![LeaseAction::Granted]
            }
            Ok(_) => {
                let message =
                    "internal error: claim returned 0 slots, expected at least 1; please report it";
                self.claim_later(now, Error::internal(message))
            }
            // The store no longer knows the member: everything must begin again.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => {
                self.phase = Phase::Over;
                vec![LeaseAction::Lost(error)]
            }
            Err(error) => self.claim_later(now, error),
        }
    }

    fn claim_later(&mut self, now: Now, error: Error) -> Vec<LeaseAction> {
        let Phase::Wanting(wanting) = &mut self.phase else { return Vec::new() };
        wanting.sent = false;
        wanting.failures = wanting.failures.saturating_add(1);
        let wait_ms = match (error.kind(), error.retry()) {
            // The outcome is unknown: repeat the same request.
            (ErrorKind::Unavailable, _) => backoff_ms(wanting.failures),
            // The claim was granted, and this node has given it up since: use a new request.
            (ErrorKind::Fenced, _) => {
                wanting.request = self.requests.next(now.chance);
                backoff_ms(wanting.failures)
            }
            (kind, retry) => {
                // A full pool gets the same request again: an earlier copy in flight must not
                // become a second claim when it arrives.
                if !matches!(kind, ErrorKind::PoolFull(_)) {
                    wanting.request = self.requests.next(now.chance);
                }
                match retry {
                    Retry::Never => HOPELESS_RETRY_MS,
                    Retry::Now => backoff_ms(wanting.failures),
                    Retry::AfterMs(ms) => {
                        ms.clamp(backoff_ms(wanting.failures), CLAIM_RETRY_MS_MAX)
                    }
                }
            }
        };
        wanting.retry_at = now.elapsed.saturating_add(wait_ms);
        wanting.error = Some(error);
        Vec::new()
    }

    /// Ends the lease when one slot is lost: all slots come from one claim.
    fn window_actions(&mut self, index: usize, actions: Vec<WindowAction>) -> Vec<LeaseAction> {
        let lost = actions.iter().find_map(|action| match action {
            WindowAction::Shut(error) => Some(error.clone()),
            _ => None,
        });
        match lost {
            Some(error) => {
                self.phase = Phase::Over;
                vec![LeaseAction::Lost(error)]
            }
            None => {
                let window = |action| LeaseAction::Window { index, action };
                actions.into_iter().map(window).collect()
            }
        }
    }

    /// Keeps windows by this policy from here on.
    pub fn set_window_policy(&mut self, window_policy: WindowPolicy) {
        self.window_policy = window_policy;
        if let Phase::Holding(windows) = &mut self.phase {
            windows.iter_mut().for_each(|window| window.set_window_policy(window_policy));
        }
    }

    /// Claims again at once, after a change to something that the last error depended on.
    pub fn hurry(&mut self) {
        if let Phase::Wanting(wanting) = &mut self.phase {
            wanting.retry_at = ElapsedMillis::default();
            wanting.error = None;
        }
    }

    /// Records that a caller wants to mint and found the window spent.
    pub fn note_demand(&mut self, now: Now) {
        if let Phase::Holding(windows) = &mut self.phase {
            windows.iter_mut().for_each(|window| window.note_demand(now));
        }
    }

    /// Ends the lease: all generators are closed. `taken_until` has, for each slot held, the end of
    /// everything that its generators have taken. Returns the releases that give the slots up.
    pub fn close(&mut self, taken_until: &[UnixMillis]) -> Vec<Release> {
        let Phase::Holding(mut windows) = std::mem::replace(&mut self.phase, Phase::Over) else {
            return Vec::new();
        };
        let ends = taken_until.iter().copied();
        windows.iter_mut().zip(ends).map(|(window, end)| window.close(end)).collect()
    }

    /// Returns the milliseconds until the next poll, if nothing happens before.
    #[must_use]
    pub fn next_poll_ms(&self, now: Now, positions: &[Position]) -> Option<u64> {
        match &self.phase {
            Phase::Wanting(wanting) => wanting.next_claim_ms(now),
            Phase::Holding(windows) => {
                let position = |index: usize| positions.get(index).copied().unwrap_or_default();
                let each = windows.iter().enumerate();
                each.filter_map(|(index, window)| window.next_poll_ms(now, position(index))).min()
            }
            Phase::Over => None,
        }
    }
}
