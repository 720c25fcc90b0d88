//! Actions of an operator on a whole store, in words.

use std::fmt;

use snowmint_coord::{Exclude, FastForward, Mark};
use snowmint_core::Rfc3339;

/// Items of a list that are shown; a message may have thousands.
const NAMED_MAX: usize = 8;

/// Describes the move of a store.
pub(super) fn moved_forward(forward: &FastForward) -> String {
    // Every field is named, so that the trail misses none.
    let FastForward {
        marks_at_least,
        segments,
        writes_at_least,
        recoveries_at_least,
        catalog_at_least,
        planned_on: _,
        forget_journals,
        new_identity,
        same_server: _,
        values_only: _,
    } = forward;
    let marks = Time(*marks_at_least);
    format!(
        "moved forward: worker marks at least {marks}, numbers {}, writes at least {writes_at_least}, recoveries at \
         least {recoveries_at_least}, catalog at least {catalog_at_least}, without journals {}, {} identity",
        few(segments, |(name, next)| format!("{name}={next}")),
        few(forget_journals, String::clone),
        if *new_identity { "a new" } else { "the same" },
    )
}

/// Describes the time until which IDs may lead the clocks.
pub(super) fn allowed_to_lead(until: Mark) -> String {
    format!("allowed to lead until {}", Time(until))
}

/// Describes the worker numbers to exclude.
pub(super) fn exclusion_text(exclude: &Exclude) -> String {
    let Exclude { pool, slots, until, label } = exclude;
    let (name, until) = (&pool.name, Time(*until));
    format!(
        "set to exclude {} of pool {name:?} until {until} for {label:?}",
        few(slots, u64::to_string)
    )
}

/// A mark that is a time.
pub(super) struct Time(pub(super) Mark);

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
pub(super) fn few<T>(all: &[T], show: impl Fn(&T) -> String) -> String {
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
            writes_at_least: 7,
            forget_journals: vec!["j".into()],
            same_server: true,
            ..FastForward::default()
        };
        assert_eq!(
            moved_forward(&forward),
            "moved forward: worker marks at least 2026-09-21T14:13:20.000Z, numbers s1=1, s2=2, s3=3, s4=4, s5=5, s6=6, s7=7, \
             s8=8 and 2 more, writes at least 7, recoveries at least 0, catalog at least 0, without journals j, the same \
             identity"
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
