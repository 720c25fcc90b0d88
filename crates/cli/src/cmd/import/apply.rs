//! The way of every plan: it is shown whole, and then rejected or carried out.

use serde::{Serialize, Serializer};
use serde_json::json;
use snowmint_wire::error::Code;

use super::common::Common;
use crate::terminal::exit::{Failure, Outcome, complain};
use crate::terminal::output::Output;
use crate::terminal::plural::after;

/// Action about one thing, or the reason why the whole plan is rejected.
pub(super) type Step<A> = Result<A, String>;

/// Serializes a step as the fields of its item.
pub(super) fn step<A: Serialize, S: Serializer>(
    step: &Step<A>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match step {
        Ok(action) => action.serialize(serializer),
        Err(reason) => json!({ "action": "refuse", "reason": reason }).serialize(serializer),
    }
}

/// Plan for all things of one sort.
pub(super) trait ImportPlan {
    /// Shows each thing, and what is to be done about it.
    fn show(&self, json: bool, out: &mut Output) -> Outcome;

    /// Returns the things that it rejects, such as `2 of 5 keys`.
    fn refused(&self) -> Option<String>;
}

/// Shows plans and, unless it is a dry run, carries them out. `way` says how to leave out a thing
/// that a plan rejects.
pub(super) fn finish(
    plans: &[&dyn ImportPlan],
    way: &str,
    common: &Common,
    carry_out: impl FnOnce() -> Outcome,
) -> Outcome {
    let mut out = Output::new();
    plans.iter().try_for_each(|plan| plan.show(common.json, &mut out))?;
    out.flush()?;
    if let Some(what) = plans.iter().find_map(|plan| plan.refused()) {
        let message = format!("nothing was changed: the plan rejects {what}; {way}");
        return Err(Failure::refused(Code::Conflict, message));
    }
    if common.dry_run {
        complain("nothing was changed (--dry-run)");
        return Ok(());
    }
    carry_out()
}

/// Returns the rejected keys of a plan.
pub(super) fn refused_keys<'a, A: 'a>(
    steps: impl ExactSizeIterator<Item = &'a Step<A>>,
) -> Option<String> {
    let all = steps.len();
    let refused = steps.filter(|step| step.is_err()).count();
    (refused > 0).then(|| format!("{refused} of {all} keys"))
}

/// Returns the failure of a key, and how many were done before it.
pub(super) fn stopped(failure: impl Into<Failure>, done: usize, all: usize, key: &str) -> Failure {
    let are = after(done as u64, "is", "are");
    failure.into().after(&format!(
        "{done} of {all} keys {are} done, and {key} is not; correct this error and repeat the command"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    #[serde(tag = "action", rename_all = "kebab-case")]
    enum Action {
        Keep { next: u64 },
    }

    #[derive(Serialize)]
    struct Item {
        key: &'static str,
        #[serde(flatten, serialize_with = "step")]
        action: Step<Action>,
        parts: [u64; 1],
    }

    #[test]
    fn rejection_is_an_action_for_machines() {
        for (action, json) in [
            (Ok(Action::Keep { next: 7 }), r#"{"key":"a","action":"keep","next":7,"parts":[1]}"#),
            (Err("no".into()), r#"{"key":"a","action":"refuse","reason":"no","parts":[1]}"#),
        ] {
            let item = Item { key: "a", action, parts: [1] };
            assert_eq!(serde_json::to_string(&item).unwrap(), json);
        }
    }
}
