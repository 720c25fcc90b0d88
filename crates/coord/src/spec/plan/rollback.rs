//! Policies for a clock that is set back: their keys, checked, and back, and what each permits.

use snowmint_core::generator::{BORROW_LEAD_MAX_MS, HOLD_LEAD_MAX_MS, WAIT_OFFSET_MAX_MS, WaitFor};
use snowmint_core::layout::Field;
use snowmint_core::{Layout, Rollback};

use super::span::span;
use crate::spec::bounds::{LEAD_MS, WAIT_MS};
use crate::spec::duration::Span;
use crate::spec::error::{SpecError, needs, value};
use crate::spec::kind::{OnRollback, name_of};
use crate::spec::source_spec::SourceSpec;

/// Policies of [`RollbackPlan::keeps_one_mark`].
pub(super) const ONE_MARK: &str = "on_rollback = hold, wait or fail";

/// Policy for a clock that is set back, with its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollbackPlan {
    /// Ticks continue at half speed from elapsed time, up to a lead.
    Hold {
        /// Lead over the clock beyond which minting fails, in milliseconds.
        lead_max_ms: u64,
    },
    /// Small steps are waited out.
    Wait {
        /// Largest step that is waited out, in milliseconds.
        wait_max_ms: u64,
        /// Fixed wait in milliseconds; `None` for twice the step.
        fixed_ms: Option<u64>,
    },
    /// Every step is an error.
    Fail,
    /// The generator moves to another value of the clock bits.
    ClockSequence,
    /// Sequences continue within the last ticks.
    Ring {
        /// Lead over the clock beyond which minting fails, in milliseconds.
        lead_max_ms: u64,
    },
    /// Ticks are spent as needed.
    Borrow {
        /// Lead over the clock beyond which minting fails, in milliseconds.
        lead_max_ms: u64,
    },
}

impl RollbackPlan {
    /// Returns its name in configuration and in reports of clock steps.
    #[must_use]
    pub const fn policy(&self) -> &'static str {
        match self {
            Self::Hold { .. } => "hold",
            Self::Wait { .. } => "wait",
            Self::Fail => "fail",
            Self::ClockSequence => "clock-sequence",
            Self::Ring { .. } => "ring",
            Self::Borrow { .. } => "borrow",
        }
    }

    /// Returns how far IDs may lead the clock, in milliseconds.
    #[must_use]
    pub const fn lead_max_ms(&self) -> u64 {
        match *self {
            Self::Hold { lead_max_ms }
            | Self::Borrow { lead_max_ms }
            | Self::Ring { lead_max_ms } => lead_max_ms,
            Self::Wait { .. } | Self::Fail | Self::ClockSequence => 0,
        }
    }

    /// Returns the same policy, with a lead of at least `max_ms` where it has one.
    pub(crate) fn leading(mut self, max_ms: u64) -> Self {
        match &mut self {
            Self::Hold { lead_max_ms }
            | Self::Borrow { lead_max_ms }
            | Self::Ring { lead_max_ms } => *lead_max_ms = max_ms.max(*lead_max_ms),
            Self::Wait { .. } | Self::Fail | Self::ClockSequence => {}
        }
        self
    }

    /// Returns whether it pushes marks ahead of the clock: its sources need worker numbers of their
    /// own.
    pub(crate) const fn pushes_marks(&self) -> bool {
        match self {
            Self::Borrow { .. } | Self::ClockSequence => true,
            Self::Hold { .. } | Self::Wait { .. } | Self::Fail | Self::Ring { .. } => false,
        }
    }

    /// Returns whether one mark is enough for it, which all minters of a source move in turn: a
    /// source with `order = global`, or one that stores mint.
    pub(super) const fn keeps_one_mark(&self) -> bool {
        match self {
            Self::Hold { .. } | Self::Wait { .. } | Self::Fail => true,
            Self::ClockSequence | Self::Ring { .. } | Self::Borrow { .. } => false,
        }
    }

    /// Returns the policy of one plain generator.
    pub(crate) const fn of_generator(&self) -> Rollback {
        match *self {
            Self::Hold { lead_max_ms } => Rollback::Hold { lead_max_ms },
            Self::Borrow { lead_max_ms } => Rollback::Borrow { lead_max_ms },
            Self::Wait { wait_max_ms, fixed_ms: None } => {
                Rollback::Wait(WaitFor::TwiceTheOffset { offset_max_ms: wait_max_ms })
            }
            Self::Wait { fixed_ms: Some(wait_ms), .. } => {
                Rollback::Wait(WaitFor::Fixed { wait_ms })
            }
            // `ClockSequence` and `Ring` have generators of their own kind, which need this.
            Self::Fail | Self::ClockSequence | Self::Ring { .. } => Rollback::Fail,
        }
    }

    pub(super) fn check(spec: &SourceSpec, layout: &Layout) -> Result<Self, SpecError> {
        let has_clock = layout.bits(Field::Clock) > 0;
        let policy = spec.on_rollback.unwrap_or(if has_clock {
            OnRollback::ClockSequence
        } else {
            OnRollback::Hold
        });
        if has_clock != (policy == OnRollback::ClockSequence) {
            let reason = if has_clock {
                "the layout has clock bits, which only clock-sequence uses"
            } else {
                "the layout has no clock bits: take one such as clock-sequence, or another policy"
            };
            return Err(value("on_rollback", name_of(&policy), reason));
        }
        let leads = matches!(policy, OnRollback::Hold | OnRollback::Borrow | OnRollback::Ring);
        let waits = policy == OnRollback::Wait;
        let leads_for = "on_rollback = hold, borrow or ring";
        needs("lead_max", spec.lead_max.is_some() && !leads, leads_for)?;
        needs("wait_max", spec.wait_max.is_some() && !waits, "on_rollback = wait")?;
        needs("wait_for", spec.wait_for.is_some() && !waits, "on_rollback = wait")?;
        let lead_default_ms =
            if policy == OnRollback::Borrow { BORROW_LEAD_MAX_MS } else { HOLD_LEAD_MAX_MS };
        let lead_max_ms = span("lead_max", spec.lead_max, lead_default_ms, &LEAD_MS)?;
        Ok(match policy {
            OnRollback::Hold => Self::Hold { lead_max_ms },
            OnRollback::Borrow => Self::Borrow { lead_max_ms },
            OnRollback::Wait => {
                let fixed_ms = wait_for(spec.wait_for.as_deref())?;
                let is_fixed = fixed_ms.is_some();
                needs("wait_max", spec.wait_max.is_some() && is_fixed, "wait_for = twice")?;
                let wait_max_ms = span("wait_max", spec.wait_max, WAIT_OFFSET_MAX_MS, &WAIT_MS)?;
                Self::Wait { wait_max_ms, fixed_ms }
            }
            OnRollback::Fail => Self::Fail,
            OnRollback::ClockSequence => Self::ClockSequence,
            OnRollback::Ring => Self::Ring { lead_max_ms },
        })
    }

    /// Writes the policy and its limits.
    pub(super) fn to_spec(self, spec: &mut SourceSpec) {
        let lead = |lead_max_ms| Some(Span::from_ms(lead_max_ms));
        spec.on_rollback = Some(match self {
            Self::Hold { lead_max_ms } => {
                spec.lead_max = lead(lead_max_ms);
                OnRollback::Hold
            }
            Self::Borrow { lead_max_ms } => {
                spec.lead_max = lead(lead_max_ms);
                OnRollback::Borrow
            }
            Self::Wait { wait_max_ms, fixed_ms } => {
                spec.wait_max = fixed_ms.is_none().then_some(Span::from_ms(wait_max_ms));
                spec.wait_for =
                    Some(fixed_ms.map_or("twice".into(), |ms| Span::from_ms(ms).to_string()));
                OnRollback::Wait
            }
            Self::Fail => OnRollback::Fail,
            Self::ClockSequence => OnRollback::ClockSequence,
            Self::Ring { lead_max_ms } => {
                spec.lead_max = lead(lead_max_ms);
                OnRollback::Ring
            }
        });
    }
}

fn wait_for(given: Option<&str>) -> Result<Option<u64>, SpecError> {
    let Some(written) = given else { return Ok(None) };
    if written == "twice" {
        return Ok(None);
    }
    let fixed: Span = written
        .parse()
        .map_err(|error| value("wait_for", written, format!("take \"twice\", or: {error}")))?;
    span("wait_for", Some(fixed), 0, &WAIT_MS).map(Some)
}
