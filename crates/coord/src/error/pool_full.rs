//! Reasons why no slot could be claimed.

use std::fmt;

use snowmint_core::{Rfc3339, UnixMillis};

use crate::ids::Incarnation;

/// Counts that explain why no slot could be claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolFull {
    /// Name of the pool.
    pub pool: String,
    /// Number of groups of slots in the pool; a group may be a single slot.
    pub groups: u64,
    /// The one requested group, when the caller accepts no other.
    pub only: Option<u64>,
    /// Number of groups that live members hold.
    pub held: u64,
    /// Number of free groups with a mark above the caller's limit.
    pub marked_ahead: u64,
    /// The first few holders, in slot order.
    pub holders: Vec<Holder>,
    /// Earliest time at which a group becomes usable if its holder does not renew, by the clock
    /// that decided. `None` when waiting does not help.
    pub usable_at: Option<UnixMillis>,
    /// Milliseconds from the call until `usable_at`.
    pub usable_in_ms: Option<u64>,
    /// Whether the mark to wait for was moved ahead by an operator's recovery.
    pub by_recovery: bool,
}

/// Holder of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The slot.
    pub slot: u64,
    /// Incarnation of the member.
    pub incarnation: Incarnation,
    /// Label of the member.
    pub owner: String,
    /// Time at which its presence expires unless it renews.
    pub expires_at: UnixMillis,
}

/// Longest wait for a mark, in milliseconds, that the message recommends without `accept-lead`.
const LONG_MS: u64 = 600_000;
/// [`LONG_MS`] for marks that a recovery moved: windows reach at most a day ahead, and operators
/// move marks further only with `--far-ahead`.
const LONG_AFTER_RECOVERY_MS: u64 = 2 * 86_400_000;

impl PoolFull {
    /// Returns whether all numbers are free and only the clock has to reach their marks.
    #[must_use]
    pub const fn waits_for_clock(&self) -> bool {
        self.held == 0 && self.marked_ahead > 0 && self.usable_at.is_some()
    }

    /// Returns whether claims succeed so soon without an operator's action that the message
    /// recommends none.
    #[must_use]
    pub fn continues_by_itself(&self) -> bool {
        let long_ms = if self.by_recovery { LONG_AFTER_RECOVERY_MS } else { LONG_MS };
        self.waits_for_clock() && self.usable_in_ms.is_some_and(|in_ms| in_ms <= long_ms)
    }
}

impl fmt::Display for PoolFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.only {
            Some(number) => write!(f, "number {number} of pool {:?} cannot be claimed", self.pool)?,
            None if self.waits_for_clock() => {
                write!(f, "pool {:?} has no number whose mark the clock has reached", self.pool)?;
            }
            None => write!(f, "pool {:?} is full", self.pool)?,
        }
        write!(
            f,
            ": {} of {} numbers held, {} with a mark ahead of the time allowed",
            self.held, self.groups, self.marked_ahead
        )?;
        for (index, holder) in self.holders.iter().enumerate() {
            let lead = if index == 0 { " (held: " } else { ", " };
            write!(f, "{lead}{} by {:?}", holder.slot, holder.owner)?;
        }
        f.write_str(if self.holders.is_empty() { "" } else { ")" })?;
        self.write_remedy(f)
    }
}

impl PoolFull {
    /// Writes what a caller can do, and from when on waiting helps.
    fn write_remedy(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ACCEPT: &str = "; to mint ahead of the clock run snowmint worker accept-lead";
        match (self.usable_at, self.usable_in_ms) {
            (Some(at), Some(_)) if self.waits_for_clock() => {
                let at = Rfc3339(at);
                if self.continues_by_itself() {
                    write!(
                        f,
                        "; minting continues at {at} by itself, as after a recovery; no action is needed"
                    )
                } else {
                    write!(f, "; minting continues at {at}{ACCEPT}")
                }
            }
            (_, Some(ms)) => {
                f.write_str(if self.marked_ahead > 0 { ACCEPT } else { "" })?;
                write!(f, "; one may be usable in {ms} ms")
            }
            (_, None) => f.write_str("; waiting does not help, use a pool with more numbers"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Retry, Verb};

    #[test]
    fn full_pool_names_holders_and_time() {
        let full = PoolFull {
            pool: "workers-0".into(),
            groups: 1,
            only: None,
            held: 1,
            marked_ahead: 0,
            holders: vec![Holder {
                slot: 0,
                incarnation: Incarnation::new(1),
                owner: "orders".into(),
                expires_at: UnixMillis::new(5000),
            }],
            usable_at: Some(UnixMillis::new(5000)),
            usable_in_ms: Some(1200),
            by_recovery: false,
        };
        let error = Error::pool_full(full).with_verb(Verb::Claim);
        assert_eq!(
            error.to_string(),
            "claim: pool \"workers-0\" is full: 1 of 1 numbers held, 0 with a mark ahead of the time \
             allowed (held: 0 by \"orders\"); one may be usable in 1200 ms"
        );
        assert_eq!(error.retry(), Retry::AfterMs(1200));
    }
    #[test]
    fn marks_ahead_are_reported_with_time_and_remedy() {
        let mut full = PoolFull {
            pool: "workers-10".into(),
            groups: 1024,
            only: None,
            held: 0,
            marked_ahead: 1024,
            holders: Vec::new(),
            usable_at: Some(UnixMillis::new(85_000)),
            usable_in_ms: Some(85_000),
            by_recovery: false,
        };
        let soon = full.to_string();
        assert!(soon.contains("continues at 1970-01-01T00:01:25.000Z by itself"), "{soon}");
        assert!(!soon.contains("is full") && !soon.contains("accept-lead"), "{soon}");
        // The cause was a clock that was ahead, or a mistyped year.
        full.usable_in_ms = Some(LONG_MS + 1);
        let late = full.to_string();
        assert!(late.contains("accept-lead") && !late.contains("no action is needed"), "{late}");
        // The lost windows were as long.
        full.by_recovery = true;
        let recovered = full.to_string();
        assert!(recovered.contains("no action is needed"), "{recovered}");
        assert!(!recovered.contains("accept-lead"), "{recovered}");
        full.usable_in_ms = Some(LONG_AFTER_RECOVERY_MS + 1);
        assert!(full.to_string().contains("accept-lead"), "{full}");
        // The holders of the other numbers may hold them forever.
        full = PoolFull { held: 1_000, marked_ahead: 24, usable_in_ms: Some(9_000), ..full };
        let held = full.to_string();
        assert!(held.contains("is full") && held.contains("accept-lead"), "{held}");
    }
}
