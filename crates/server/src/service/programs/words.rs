//! Actions of an operator on a whole store, in words.

use std::fmt;

use snowmint_coord::{Exclude, FastForward, Mark};
use snowmint_core::Rfc3339;

/// Items of a list that are shown; a message may have thousands.
const NAMED_MAX: usize = 8;

/// Describes values that a program raises.
pub(crate) fn raised(forward: &FastForward) -> String {
    let FastForward { marks_at_least, segments, .. } = forward;
    format!(
        "raised: worker marks at least {}, numbers at least {}",
        Time(*marks_at_least),
        few(segments, |(name, next)| format!("{name}={next}")),
    )
}

/// Describes the time until which IDs may lead the clocks.
pub(crate) fn allowed_to_lead(until: Mark) -> String {
    format!("allowed to lead until {}", Time(until))
}

/// Describes the worker numbers to exclude.
pub(crate) fn exclusion_text(exclude: &Exclude) -> String {
    let Exclude { pool, slots, until, label } = exclude;
    let (name, until) = (&pool.name, Time(*until));
    format!(
        "set to exclude {} of pool {name:?} until {until} for {label:?}",
        few(slots, u64::to_string)
    )
}

/// A mark that is a time.
pub(crate) struct Time(pub(crate) Mark);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Mark::ZERO => f.write_str("no time"),
            Mark::MAX => f.write_str("the end of time"),
            mark => Rfc3339(mark.unix_millis()).fmt(f),
        }
    }
}

/// Writes the first items, and the number of the rest.
pub(crate) fn few<T>(all: &[T], show: impl Fn(&T) -> String) -> String {
    if all.is_empty() {
        return "none".into();
    }
    let named = all.iter().take(NAMED_MAX).map(show).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use snowmint_coord::pool::{Pool, Reuse};

    use super::*;

    #[test]
    fn audit_texts_are_readable() {
        let forward = FastForward {
            marks_at_least: Mark::new(1_790_000_000_000),
            segments: (1..=10).map(|number| (format!("s{number}"), Mark::new(number))).collect(),
            values_only: true,
            ..FastForward::default()
        };
        assert_eq!(
            raised(&forward),
            "raised: worker marks at least 2026-09-21T14:13:20.000Z, numbers at least s1=1, s2=2, s3=3, s4=4, s5=5, \
             s6=6, s7=7, s8=8 and 2 more"
        );
        assert_eq!(allowed_to_lead(Mark::ZERO), "allowed to lead until no time");
        let pool = Pool { name: "workers-10".into(), slots: 9, group: 1, reuse: Reuse::Recycle };
        let label = "leaf\n".to_owned();
        let exclude = Exclude { pool, slots: vec![3, 4], until: Mark::MAX, label };
        assert_eq!(
            exclusion_text(&exclude),
            r#"set to exclude 3, 4 of pool "workers-10" until the end of time for "leaf\n""#
        );
    }
}
