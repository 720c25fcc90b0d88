//! What is to become of the sources, given where another system stands: worked out without asking
//! anybody.

use serde::Serialize;
use snowmint_coord::catalog::{Definition, SourceState, check_name};
use snowmint_coord::spec::{Kind, Plan, SegmentPlan, SourceSpec, StepRule, StepSpec, Stripe};
use snowmint_stores::foreign::{Numbers, Sequence, Standing};

/// What is to become of one key.
#[derive(Debug, Serialize)]
pub(super) struct Item {
    /// What the other system calls it.
    pub(super) key: String,
    /// What it is called here.
    pub(super) source: String,
    #[serde(flatten)]
    pub(super) action: Action,
    /// Numbers that the source has handed out, and that the other system may have handed out too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) overlap: Option<[u64; 2]>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub(super) enum Action {
    /// There is no such source yet.
    Define {
        /// Its first number.
        first: u64,
        #[serde(skip)]
        spec: Box<SourceSpec>,
    },
    /// It would come to numbers of the other system.
    Raise {
        /// Its next number, so far.
        next: u64,
        /// Its next number, from then on.
        first: u64,
        #[serde(skip)]
        stripe: RaiseTo,
    },
    /// It is above all.
    Keep {
        /// Its next number.
        next: u64,
    },
    /// Nothing is done, about the others neither.
    Refuse {
        /// Why.
        reason: String,
    },
}

/// Where and under which version a source is raised.
#[derive(Clone, Copy, Debug)]
pub(super) struct RaiseTo {
    pub(super) offset: u64,
    pub(super) increment: u64,
    pub(super) version: u64,
}

/// What a key becomes, by the definition of its source, if there is one.
pub(super) fn item(
    sequence: Sequence,
    source: String,
    step: StepRule,
    stored: Option<&Definition>,
) -> Item {
    let Sequence { key, standing } = sequence;
    let worked_out = match standing {
        Standing::At(numbers) => decide(&key, &source, numbers, step, stored),
        Standing::Senseless(reason) => Err(reason),
    };
    let (action, overlap) = worked_out.unwrap_or_else(|reason| (Action::Refuse { reason }, None));
    Item { key, source, action, overlap }
}

type Decided = Result<(Action, Option<[u64; 2]>), String>;

fn decide(
    key: &str,
    source: &str,
    numbers: Numbers,
    step: StepRule,
    stored: Option<&Definition>,
) -> Decided {
    check_name("source", source)
        .map_err(|kind| format!("{kind}; give it a name by --name {key}=SOURCE"))?;
    let Numbers { highest, offset, increment, .. } = numbers;
    let stripe = Stripe::new(offset, increment, highest.saturating_add(1), 1)
        .map_err(|error| error.to_string())?;
    let first = stripe.next(1).ok_or("it has no number left")?;
    let Some(stored) = stored else {
        let spec = new(numbers, first, step);
        spec.check().map_err(|error| error.to_string())?;
        return Ok((Action::Define { first, spec: Box::new(spec) }, None));
    };
    let (theirs, spec) = segment(source, stored)?;
    let has = (spec.offset.unwrap_or(1), spec.increment.unwrap_or(1));
    if has != (offset, increment) {
        return Err(format!(
            "source {source} is stripe {} of {}, and its numbers there are stripe {offset} of {increment}: \
             take another source by --name {key}=SOURCE",
            has.0, has.1
        ));
    }
    let mark = stored.segment.mark.get();
    let next = theirs.next(mark).ok_or_else(|| format!("source {source} has no number left"))?;
    let lowest = theirs.next(1).unwrap_or(next);
    let overlap = (lowest < next && lowest <= highest).then(|| [lowest, highest.min(next - 1)]);
    let action = if next >= first {
        Action::Keep { next }
    } else {
        let version = stored.version;
        Action::Raise { next, first, stripe: RaiseTo { offset, increment, version } }
    };
    Ok((action, overlap))
}

/// The numbers of a source that there is.
fn segment(source: &str, stored: &Definition) -> Result<(Stripe, SourceSpec), String> {
    let other = |why: &str| format!("source {source} {why}: take another by --name KEY=SOURCE");
    if stored.state == SourceState::Deleted {
        return Err(other("was deleted"));
    }
    let spec = SourceSpec::from_json(&stored.spec).map_err(|error| error.to_string())?;
    match spec.check() {
        Ok(Plan::Segment(SegmentPlan { stripe, serial: None, .. })) if stripe.until().is_none() => {
            Ok((stripe, spec))
        }
        Ok(Plan::Segment(SegmentPlan { serial: None, .. })) => Err(format!(
            "source {source} is getting other stripes: end that first (source restripe)"
        )),
        _ => Err(other("is no segment source of plain numbers")),
    }
}

/// A source that goes on as the other system did.
fn new(numbers: Numbers, first: u64, rule: StepRule) -> SourceSpec {
    let sized = |size| StepSpec { rule: Some(rule), size: Some(size), ..StepSpec::default() };
    SourceSpec {
        first: Some(first),
        offset: Some(numbers.offset),
        increment: Some(numbers.increment),
        step: numbers.step.filter(|_| rule != StepRule::Adaptive).map(sized),
        ..SourceSpec::of(Kind::Segment)
    }
}

#[cfg(test)]
mod tests {
    use snowmint_coord::Mark;
    use snowmint_coord::segment::SegmentRow;

    use super::*;

    fn at(highest: u64) -> Sequence {
        let numbers = Numbers { highest, step: Some(100), offset: 1, increment: 1 };
        Sequence { key: "old".into(), standing: Standing::At(numbers) }
    }

    fn stored(spec: &SourceSpec, mark: u64) -> Definition {
        Definition {
            name: "orders".into(),
            spec: serde_json::Value::from(spec.to_json()).to_string(),
            identity: String::new(),
            version: 4,
            state: SourceState::Enabled,
            segment: SegmentRow { mark: Mark::new(mark), ..SegmentRow::NEW },
        }
    }

    fn of(sequence: Sequence, stored: Option<&Definition>) -> Item {
        item(sequence, "orders".into(), StepRule::Leaf, stored)
    }

    fn from(first: u64) -> SourceSpec {
        SourceSpec { first: Some(first), ..SourceSpec::of(Kind::Segment) }
    }

    #[test]
    fn a_source_begins_above_everything_handed_out() {
        for highest in [0, 1, 2000, 1 << 62] {
            let item = of(at(highest), None);
            let Action::Define { first, spec } = item.action else { panic!("{item:?}") };
            assert_eq!(first, highest + 1);
            let Ok(Plan::Segment(plan)) = spec.check() else { panic!("{spec:?}") };
            assert_eq!(plan.stripe.next(1), Some(highest + 1));
        }
        let odd = Numbers { highest: 10, step: None, offset: 1, increment: 2 };
        let odd = Sequence { key: "old".into(), standing: Standing::At(odd) };
        assert!(matches!(of(odd, None).action, Action::Define { first: 11, .. }));
    }

    #[test]
    fn a_source_that_is_there_is_raised_never_lowered() {
        let stored = stored(&from(1001), 1);
        let raised = of(at(1500), Some(&stored));
        assert!(
            matches!(raised.action, Action::Raise { next: 1001, first: 1501, .. }),
            "{raised:?}"
        );
        for highest in [0, 500, 1000] {
            let kept = of(at(highest), Some(&stored));
            assert!(matches!(kept.action, Action::Keep { next: 1001 }), "{kept:?}");
            assert_eq!(kept.overlap, None);
        }
    }

    #[test]
    fn numbers_that_both_may_have_handed_out_are_named() {
        // 1001 to 1100 were handed out here.
        let stored = stored(&from(1001), 101);
        for (highest, overlap) in [
            (1000, None),
            (1001, Some([1001, 1001])),
            (1100, Some([1001, 1100])),
            (9000, Some([1001, 1100])),
        ] {
            assert_eq!(of(at(highest), Some(&stored)).overlap, overlap, "{highest}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |item: Item| match item.action {
            Action::Refuse { reason } => reason,
            other => panic!("{other:?}"),
        };
        let senseless = Sequence { key: "old".into(), standing: Standing::Senseless("no".into()) };
        assert_eq!(refused(of(senseless, None)), "no");
        let unnamed = item(at(1), "a:b".into(), StepRule::Leaf, None);
        assert!(refused(unnamed).contains("--name old=SOURCE"));
        let two = SourceSpec { increment: Some(2), ..from(1) };
        assert!(refused(of(at(1), Some(&stored(&two, 1)))).contains("stripe 1 of 2"));
        let other = stored(&SourceSpec::default(), 1);
        assert!(refused(of(at(1), Some(&other))).contains("no segment source"));
        let deleted = Definition { state: SourceState::Deleted, ..stored(&from(1), 1) };
        assert!(refused(of(at(1), Some(&deleted))).contains("deleted"));
        let capped = SourceSpec { until: Some(50), ..from(1) };
        assert!(refused(of(at(1), Some(&stored(&capped, 1)))).contains("restripe"));
        let huge = Numbers { highest: 1, step: Some(1 << 41), offset: 1, increment: 1 };
        let huge = Sequence { key: "old".into(), standing: Standing::At(huge) };
        assert!(refused(of(huge, None)).contains("step.size"));
    }
}
