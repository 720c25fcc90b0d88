//! The plan for sources, given the state of another system. Planning does no I/O.

use serde::Serialize;
use snowmint_coord::NewStripe;
use snowmint_coord::catalog::{Definition, SourceState, check_name};
use snowmint_coord::spec::upstream::UpstreamPlan;
use snowmint_coord::spec::{Kind, Plan, SegmentPlan, SourceSpec, StepRule, StepSpec, Stripe};
use snowmint_stores::legacy::{LegacySystem, Numbers, Sequence, SequenceState};

use super::apply::{self, Step};
use super::merge::{KeyPart, Merged};

/// Plan for one key.
#[derive(Debug, Serialize)]
pub(super) struct KeyItem {
    /// Name in the other system.
    pub(super) key: String,
    /// Name of the source here.
    pub(super) source: String,
    #[serde(flatten, serialize_with = "apply::step")]
    pub(super) action: Step<KeyAction>,
    /// Numbers that the source has issued and the other system may have issued, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) overlap: Option<[u64; 2]>,
    /// State in each of several databases.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<KeyPart>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub(super) enum KeyAction {
    /// Defines a source that does not exist yet.
    Define {
        /// First number of the source.
        first: u64,
        #[serde(skip)]
        spec: Box<SourceSpec>,
    },
    /// Raises a source that would reach numbers of the other system.
    Raise {
        /// Next number before the raise.
        next: u64,
        /// Next number after the raise.
        first: u64,
        /// Stripe that begins there.
        #[serde(skip)]
        to: NewStripe,
    },
    /// Cuts over a source that allocates from the other system, which ends there.
    CutOver {
        /// Bound: no higher number was issued so far.
        highest: u64,
        /// Name of the upstream in the configuration.
        #[serde(skip)]
        upstream: String,
    },
    /// Finishes an interrupted cut-over: the other system has ended, and the source gets numbers of
    /// its own.
    Finish {
        /// Next number of the source.
        next: u64,
        #[serde(skip)]
        upstream: String,
    },
    /// Keeps a source that is above all numbers already.
    Keep {
        /// Next number of the source.
        next: u64,
    },
}

/// Options for all keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImportOptions<'a> {
    /// System of the keys.
    pub(super) peer: LegacySystem,
    /// Rule by which a new source sizes its segments.
    pub(super) step: StepRule,
    /// Upstream from which the source allocates.
    pub(super) allocate_from: Option<&'a str>,
    /// Whether allocation from the other system is to end.
    pub(super) cut_over: bool,
}

/// Plans one key, by the definition of its source, if there is one.
pub(super) fn item(
    merged: Merged,
    source: String,
    how: ImportOptions<'_>,
    stored: Option<&Definition>,
) -> KeyItem {
    let Merged { sequence: Sequence { key, state }, parts } = merged;
    let worked_out = match state {
        SequenceState::At(numbers) => match upstream(stored) {
            Some((stored, upstream)) => allocating(stored, &upstream, &key, numbers, how),
            None if how.cut_over => Err(format!("source {source} does not allocate from it")),
            None => decide(&key, &source, numbers, how, stored),
        },
        SequenceState::Moved => moved(&key, &source, stored, how),
        SequenceState::Senseless(reason) => Err(reason),
    };
    let (action, overlap) = match worked_out {
        Ok((action, overlap)) => (Ok(action), overlap),
        Err(reason) => (Err(reason), None),
    };
    KeyItem { key, source, action, overlap, parts }
}

type Decided = Step<(KeyAction, Option<[u64; 2]>)>;

fn decide(
    key: &str,
    source: &str,
    numbers: Numbers,
    how: ImportOptions<'_>,
    stored: Option<&Definition>,
) -> Decided {
    check_name("source", source)
        .map_err(|kind| format!("{kind}; give it a name by --name {key}=SOURCE"))?;
    let Numbers { highest, offset, increment, .. } = numbers;
    let stripe = Stripe::new(offset, increment, highest.saturating_add(1), 1)
        .map_err(|error| error.to_string())?;
    let first = stripe.next(1).ok_or("it has no number left")?;
    let Some(stored) = stored else {
        let spec = match how.allocate_from {
            Some(name) => {
                check_ends(key, how)?;
                allocated(numbers, &format!("{name}:{key}"), how.step)
            }
            None => new(numbers, first, how.step),
        };
        spec.check().map_err(|error| error.to_string())?;
        return Ok((KeyAction::Define { first, spec: Box::new(spec) }, None));
    };
    if how.allocate_from.is_some() {
        return Err(format!(
            "source {source} has numbers of its own already, and cannot allocate others"
        ));
    }
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
        KeyAction::Keep { next }
    } else {
        let if_version = Some(stored.version);
        let to = NewStripe { offset, increment, first: Some(first), if_version };
        KeyAction::Raise { next, first, to }
    };
    Ok((action, overlap))
}

/// Returns a source that allocates from another system, and its upstream.
fn upstream(stored: Option<&Definition>) -> Option<(&Definition, UpstreamPlan)> {
    let stored = stored.filter(|stored| stored.state != SourceState::Deleted)?;
    let upstream = SourceSpec::from_stored(&stored.spec).ok()?.upstream?.parse().ok()?;
    Some((stored, upstream))
}

/// Plans the key of a source that allocates from an upstream.
fn allocating(
    stored: &Definition,
    upstream: &UpstreamPlan,
    key: &str,
    Numbers { highest, .. }: Numbers,
    how: ImportOptions<'_>,
) -> Decided {
    let source = &stored.name;
    if upstream.key != key || how.allocate_from.is_some_and(|name| upstream.name != name) {
        return Err(format!("source {source} allocates from {upstream}"));
    }
    match (how.allocate_from, how.cut_over) {
        (_, true) => {
            check_allocated(stored, highest)?;
            check_ends(key, how)?;
            Ok((KeyAction::CutOver { highest, upstream: upstream.name.clone() }, None))
        }
        (Some(_), false) => Ok((KeyAction::Keep { next: highest.saturating_add(1) }, None)),
        (None, false) => {
            Err(format!("source {source} allocates from {upstream}: end that by --cut-over"))
        }
    }
}

/// Rejects a key that cannot be cut over.
fn check_ends(key: &str, how: ImportOptions<'_>) -> Result<(), String> {
    let length = key.chars().count();
    match how.peer.key_chars_max() {
        Some(max) if length > max => Err(format!(
            "it has {length} characters, maximum {max}, since a cut-over gives it a longer name in the table: stop the \
             other system, and import it without --allocate-from and --cut-over"
        )),
        _ => Ok(()),
    }
}

/// Rejects a row that is behind the numbers allocated from it. An interrupted cut-over may be a
/// little ahead of the row.
fn check_allocated(stored: &Definition, highest: u64) -> Result<(), String> {
    let mark = stored.segment.mark.get();
    let begun = SourceSpec::from_stored(&stored.spec).ok().and_then(|spec| spec.first_at);
    if mark <= highest.saturating_add(1) || begun.is_some_and(|begun| mark <= begun) {
        return Ok(());
    }
    Err(format!(
        "its row is at {highest}, but source {} allocated up to {} from it, so the row is older or \
         a copy; raise it there first",
        stored.name,
        mark.saturating_sub(1)
    ))
}

/// Plans a key from which no numbers can be allocated any more.
fn moved(key: &str, source: &str, stored: Option<&Definition>, how: ImportOptions<'_>) -> Decided {
    if how.allocate_from.is_some() {
        return Err("it was cut over: there is nothing to allocate from".into());
    }
    let Some(stored) = stored else {
        return Err(format!(
            "it was cut over, and the source that replaced it, {source}, does not exist"
        ));
    };
    let (stripe, spec) = segment(source, stored)?;
    let next = stripe.next(stored.segment.mark.get());
    let next = next.ok_or_else(|| format!("source {source} has no number left"))?;
    match upstream(Some(stored)) {
        None => Ok((KeyAction::Keep { next }, None)),
        Some((_, upstream)) if upstream.key != key => {
            Err(format!("source {source} allocates from {upstream}"))
        }
        // Without `first_at`, the row was ended outside of this command, at a number unknown here.
        Some(_) if spec.first_at.is_none() => Err(format!(
            "another program ended it there, and source {source} still allocates from it"
        )),
        Some((_, upstream)) if how.cut_over => {
            Ok((KeyAction::Finish { next, upstream: upstream.name }, None))
        }
        Some(_) => Err(format!(
            "it was ended there, and source {source} still allocates from it: give --cut-over again"
        )),
    }
}

/// Returns the definition of a source that allocates from the other system.
fn allocated(numbers: Numbers, upstream: &str, rule: StepRule) -> SourceSpec {
    let spec = new(numbers, 1, rule);
    SourceSpec { first: None, upstream: Some(upstream.to_owned()), ..spec }
}

/// Returns the stripe and the definition of an existing source.
fn segment(source: &str, stored: &Definition) -> Result<(Stripe, SourceSpec), String> {
    let other = |text: &str| format!("source {source} {text}: take another by --name KEY=SOURCE");
    if stored.state == SourceState::Deleted {
        return Err(other("was deleted"));
    }
    let spec = SourceSpec::from_stored(&stored.spec).map_err(|error| error.to_string())?;
    match spec.check() {
        Ok(Plan::Segment(SegmentPlan { stripe, serial: None, .. })) if stripe.until().is_none() => {
            Ok((stripe, spec))
        }
        Ok(Plan::Segment(SegmentPlan { serial: None, .. })) => Err(format!(
            "source {source} is getting other stripes: end that first (source restripe)"
        )),
        _ => Err(other("does not issue plain numbers from segments")),
    }
}

/// Returns the definition of a source that continues as the other system did.
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

    const NUMBERS: Numbers = Numbers { highest: 2000, step: Some(100), offset: 1, increment: 1 };

    fn at(highest: u64) -> Merged {
        read(SequenceState::At(Numbers { highest, ..NUMBERS }))
    }

    fn read(state: SequenceState) -> Merged {
        Merged { sequence: Sequence { key: "old".into(), state }, parts: Vec::new() }
    }

    fn stored(spec: &SourceSpec, mark: u64) -> Definition {
        Definition {
            name: "orders".into(),
            spec: spec.to_stored(),
            identity: String::new(),
            version: 4,
            state: SourceState::Enabled,
            segment: SegmentRow { mark: Mark::new(mark), ..SegmentRow::NEW },
        }
    }

    const HOW: ImportOptions<'_> = ImportOptions {
        peer: LegacySystem::Leaf,
        step: StepRule::Leaf,
        allocate_from: None,
        cut_over: false,
    };

    fn of(sequence: Merged, stored: Option<&Definition>) -> KeyItem {
        item(sequence, "orders".into(), HOW, stored)
    }

    fn from(first: u64) -> SourceSpec {
        SourceSpec { first: Some(first), ..SourceSpec::of(Kind::Segment) }
    }

    #[test]
    fn a_source_begins_above_everything_handed_out() {
        for highest in [0, 1, 2000, 1 << 62] {
            let item = of(at(highest), None);
            let Ok(KeyAction::Define { first, spec }) = item.action else { panic!("{item:?}") };
            assert_eq!(first, highest + 1);
            let Ok(Plan::Segment(plan)) = spec.check() else { panic!("{spec:?}") };
            assert_eq!(plan.stripe.next(1), Some(highest + 1));
        }
        let odd = Numbers { highest: 10, step: None, offset: 1, increment: 2 };
        let odd = read(SequenceState::At(odd));
        assert!(matches!(of(odd, None).action, Ok(KeyAction::Define { first: 11, .. })));
    }

    #[test]
    fn a_source_that_is_there_is_raised_never_lowered() {
        let stored = stored(&from(1001), 1);
        let raised = of(at(1500), Some(&stored));
        assert!(
            matches!(raised.action, Ok(KeyAction::Raise { next: 1001, first: 1501, .. })),
            "{raised:?}"
        );
        for highest in [0, 500, 1000] {
            let kept = of(at(highest), Some(&stored));
            assert!(matches!(kept.action, Ok(KeyAction::Keep { next: 1001 })), "{kept:?}");
            assert_eq!(kept.overlap, None);
        }
    }

    #[test]
    fn numbers_that_both_may_have_handed_out_are_named() {
        // Numbers 1001 to 1100 were issued here.
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
    fn source_that_allocates_is_cut_over_once() {
        let allocates = ImportOptions { allocate_from: Some("old"), ..HOW };
        let new = item(at(2000), "orders".into(), allocates, None);
        let Ok(KeyAction::Define { spec, .. }) = new.action else { panic!("{new:?}") };
        assert_eq!((spec.upstream.as_deref(), spec.first), (Some("old:old"), None));
        let definition = stored(&spec.canonical().unwrap(), 700);
        let of = |how, sequence| item(sequence, "orders".into(), how, Some(&definition)).action;
        assert!(matches!(of(allocates, at(2000)), Ok(KeyAction::Keep { .. })));
        assert!(of(HOW, at(2000)).is_err());
        let cuts = ImportOptions { cut_over: true, ..HOW };
        assert!(matches!(of(cuts, at(2000)), Ok(KeyAction::CutOver { highest: 2000, .. })));
        let back = of(cuts, at(698));
        let Err(reason) = back else { panic!("{back:?}") };
        assert!(reason.contains("allocated up to 699"), "{reason}");
        assert!(matches!(of(cuts, at(699)), Ok(KeyAction::CutOver { highest: 699, .. })));
        let other = ImportOptions { allocate_from: Some("other"), ..HOW };
        assert!(of(other, at(2000)).is_err());
        let own = stored(&from(2001), 1);
        let of_own = |how, sequence| item(sequence, "orders".into(), how, Some(&own)).action;
        assert!(of_own(cuts, at(2000)).is_err());
        assert!(of_own(allocates, at(2000)).is_err());
        let moved = || read(SequenceState::Moved);
        assert!(matches!(of_own(cuts, moved()), Ok(KeyAction::Keep { next: 2001 })));
        assert!(of(cuts, moved()).is_err(), "ended by others");
        // A command leaves this state if it is interrupted after the table ended.
        let begun = |upstream: &str| {
            let (first, first_at) = (Some(700), Some(700));
            let upstream = Some(upstream.to_owned());
            let spec = SourceSpec { upstream, first, first_at, ..(*spec).clone() };
            stored(&spec.canonical().unwrap(), 700)
        };
        let of_begun =
            |how, upstream| item(moved(), "orders".into(), how, Some(&begun(upstream))).action;
        assert!(matches!(of_begun(cuts, "old:old"), Ok(KeyAction::Finish { next: 700, .. })));
        let half = item(at(650), "orders".into(), cuts, Some(&begun("old:old"))).action;
        assert!(
            matches!(half, Ok(KeyAction::CutOver { .. })),
            "its mark is what was begun: {half:?}"
        );
        assert!(of_begun(HOW, "old:old").is_err());
        assert!(of_begun(cuts, "old:other").is_err());
    }

    #[test]
    fn key_without_room_for_its_end_is_rejected() {
        let named = |length: usize, how| {
            let sequence = Sequence { key: "é".repeat(length), ..at(2000).sequence };
            item(Merged { sequence, parts: Vec::new() }, "orders".into(), how, None).action
        };
        let how = |peer| ImportOptions { peer, allocate_from: Some("old"), ..HOW };
        assert!(matches!(named(57, how(LegacySystem::Tinyid)), Ok(KeyAction::Define { .. })));
        let Err(reason) = named(58, how(LegacySystem::Tinyid)) else { panic!("defined") };
        assert!(reason.contains("58 characters"), "{reason}");
        assert!(matches!(named(58, how(LegacySystem::Leaf)), Ok(KeyAction::Define { .. })));
        // Without a cut-over no space for a longer name is needed.
        assert!(matches!(
            named(63, ImportOptions { peer: LegacySystem::Tinyid, ..HOW }),
            Ok(KeyAction::Define { .. })
        ));
        let long = "k".repeat(58);
        let spec = allocated(NUMBERS, &format!("old:{long}"), StepRule::Fixed);
        let stored = stored(&spec.canonical().unwrap(), 700);
        let sequence = Sequence { key: long, state: SequenceState::At(NUMBERS) };
        let cuts = ImportOptions { peer: LegacySystem::Tinyid, cut_over: true, ..HOW };
        let long = Merged { sequence, parts: Vec::new() };
        let cut = item(long, "orders".into(), cuts, Some(&stored)).action;
        assert!(cut.is_err(), "{cut:?}");
    }

    #[test]
    fn invalid_import_is_rejected() {
        let refused = |item: KeyItem| match item.action {
            Err(reason) => reason,
            other => panic!("{other:?}"),
        };
        let senseless = read(SequenceState::Senseless("no".into()));
        assert_eq!(refused(of(senseless, None)), "no");
        let unnamed = item(at(1), "a:b".into(), HOW, None);
        assert!(refused(unnamed).contains("--name old=SOURCE"));
        let two = SourceSpec { increment: Some(2), ..from(1) };
        assert!(refused(of(at(1), Some(&stored(&two, 1)))).contains("stripe 1 of 2"));
        let other = stored(&SourceSpec::default(), 1);
        assert!(refused(of(at(1), Some(&other))).contains("plain numbers from segments"));
        let deleted = Definition { state: SourceState::Deleted, ..stored(&from(1), 1) };
        assert!(refused(of(at(1), Some(&deleted))).contains("deleted"));
        let capped = SourceSpec { until: Some(50), ..from(1) };
        assert!(refused(of(at(1), Some(&stored(&capped, 1)))).contains("restripe"));
        let huge = Numbers { highest: 1, step: Some(1 << 41), offset: 1, increment: 1 };
        let huge = read(SequenceState::At(huge));
        assert!(refused(of(huge, None)).contains("step.size"));
    }
}
