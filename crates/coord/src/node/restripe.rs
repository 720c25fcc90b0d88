//! Another stripe for a segment source, while it serves.

use super::definitions::read_spec;
use super::{Node, SourceInfo};
use crate::catalog::{Definition, Restripe, check_name, check_version};
use crate::error::{Error, ErrorKind, Result};
use crate::lease::Mark;
use crate::origin::OriginPlan;
use crate::spec::{Plan, SegmentPlan, SourceSpec, Stripe};

/// How often a mark is aimed at that others overtake. The aim goes twice as far each time.
const TRIES: u32 = 20;

/// Which stripe a source shall have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewStripe {
    /// Which, 1 to `increment`.
    pub offset: u64,
    /// How many there are.
    pub increment: u64,
    /// The new stripe begins here, and not below what was handed out. None: where the old one is now.
    pub first: Option<u64>,
    /// Only if the source still has this version.
    pub if_version: Option<u64>,
}

impl NewStripe {
    /// All numbers.
    const fn all_from(first: Option<u64>) -> Self {
        Self { offset: 1, increment: 1, first, if_version: None }
    }
}

/// Why a stripe changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// An operator wants another.
    Stripe,
    /// What the source draws from is about to end below its `first`.
    BeginCutOver,
    /// It has ended.
    CutOver,
}

impl Node {
    /// Gives a segment source another stripe, for everybody in the namespace. Numbers of the old stripe
    /// lie below all of the new one's; what is in stock is lost. Nothing is known of other stores: to
    /// change several, first tell each where its old stripe ends (`until`).
    ///
    /// # Errors
    /// `Invalid` for a stripe that is none, a `first` at or below what was handed out, or a source of another
    /// kind; `NotFound`; `Conflict` when the source was changed meanwhile.
    pub async fn restripe(&self, name: &str, wanted: NewStripe) -> Result<SourceInfo> {
        self.change_stripe(name, wanted, Change::Stripe).await
    }

    async fn change_stripe(
        &self,
        name: &str,
        wanted: NewStripe,
        change: Change,
    ) -> Result<SourceInfo> {
        check_name("source", name).map_err(|kind| Error::new("restripe", kind))?;
        let around = &self.core().around;
        let mut tries = 0;
        loop {
            let history = self.core().history();
            let stored = around.call("get source", self.core().reads.get(name)).await?;
            let restripe = self.worked_out(&stored, wanted, (1 << tries) - 1, change)?;
            match around.call("restripe", around.store.restripe(&restripe)).await {
                Ok(changed) => return self.core().changed(&changed, history),
                Err(error) => {
                    tries += 1;
                    let overtaken = matches!(error.kind(), ErrorKind::MarkMoved { .. });
                    if !overtaken || tries == TRIES {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Says before the other system is ended that a source draws from how far that had come: nothing below
    /// `first` is handed out any more. The source draws on, if that is all that happens; and if the other
    /// system has ended when the command breaks off, the definition says so that [`Node::cut_over`] may
    /// follow.
    ///
    /// # Errors
    /// As [`Node::restripe`].
    pub async fn begin_cut_over(&self, name: &str, first: u64) -> Result<SourceInfo> {
        self.change_stripe(name, NewStripe::all_from(Some(first)), Change::BeginCutOver).await
    }

    /// Ends that a source draws from another system, which has ended: from here on it has numbers of its own,
    /// above all that it drew and all that the other system handed out before the cut-over was
    /// [begun](Node::begin_cut_over).
    ///
    /// # Errors
    /// As [`Node::restripe`].
    pub async fn cut_over(&self, name: &str) -> Result<SourceInfo> {
        self.change_stripe(name, NewStripe::all_from(None), Change::CutOver).await
    }

    /// The definition by which numbers go from `ahead` above the stored mark on.
    fn worked_out(
        &self,
        stored: &Definition,
        wanted: NewStripe,
        ahead: u64,
        change: Change,
    ) -> Result<Restripe> {
        check_version(&stored.name, stored.version, wanted.if_version)
            .map_err(|kind| Error::new("restripe", kind))?;
        let (spec, plan) = read_segment(stored)?;
        check_change(&stored.name, plan.origin.as_ref(), change)?;
        let mark = mark_for(stored, plan.stripe, wanted.first, ahead, change);
        let lowest = lowest_from(&stored.name, plan.stripe, mark, wanted.first, change)?;
        let stripe = Stripe::new(wanted.offset, wanted.increment, lowest, mark)
            .map_err(|error| invalid(error.to_string()))?;
        let origin = spec.origin.clone().filter(|_| change == Change::BeginCutOver);
        let spec = stripe.to_spec(SourceSpec { until: None, origin, ..spec });
        let new = self.core().new_definition("restripe", &stored.name, &spec)?;
        Ok(Restripe { new, if_version: stored.version, mark: Mark::new(mark) })
    }
}

fn invalid(what: String) -> Error {
    Error::invalid("restripe", what)
}

/// What a source with a stripe of its own is defined as.
fn read_segment(stored: &Definition) -> Result<(SourceSpec, SegmentPlan)> {
    let spec = read_spec(stored)?;
    let Ok(Plan::Segment(plan)) = spec.check() else {
        let what = format!("source {} is no segment source, which have stripes", stored.name);
        return Err(invalid(what));
    };
    if !plan.stores.is_empty() {
        return Err(invalid(format!(
            "the numbers of source {} come from the stores {}, which have the stripes: name each \
             (source restripe --stripe J=STORE)",
            stored.name,
            plan.stores.join(", ")
        )));
    }
    Ok((spec, plan))
}

/// A source that draws its numbers is cut over before it has another stripe; a cut-over begins of no other.
fn check_change(name: &str, origin: Option<&OriginPlan>, change: Change) -> Result<()> {
    match (change, origin) {
        (Change::Stripe, Some(origin)) => Err(invalid(format!(
            "source {name} draws its numbers from {origin}: cut it over first (import --cut-over)"
        ))),
        (Change::BeginCutOver, None) => {
            Err(invalid(format!("source {name} draws its numbers from nowhere")))
        }
        _ => Ok(()),
    }
}

/// Where the new stripe's mark lies: `ahead` above everything that was handed out.
fn mark_for(
    stored: &Definition,
    stripe: Stripe,
    first: Option<u64>,
    ahead: u64,
    change: Change,
) -> u64 {
    let lowest = match change {
        // While it draws, each number is the ID. Not 1, from where on all sources are that say nothing.
        Change::BeginCutOver => Ord::max(first.unwrap_or(0), 2),
        Change::Stripe | Change::CutOver => 0,
    };
    let reached = stored.segment.mark.get().max(stripe.number_min()).max(lowest);
    match (change, first) {
        // No further ahead than the number that is named: above it is not what was asked for.
        (Change::Stripe, Some(first)) => {
            reached.saturating_add(ahead).min(stripe.number_from(first)).max(reached)
        }
        _ => reached.saturating_add(ahead),
    }
}

/// Where the new stripe begins, which is not below what the old one hands out up to this mark.
fn lowest_from(
    name: &str,
    stripe: Stripe,
    mark: u64,
    first: Option<u64>,
    change: Change,
) -> Result<u64> {
    let next = stripe.next(mark).ok_or_else(|| {
        let what = format!("source {name}");
        let kind = ErrorKind::Exhausted { what, limit: crate::segment::NUMBER_MAX };
        Error::new("restripe", kind)
    })?;
    // Whatever the source was told (`until`): somebody else may have lifted that, and a store that was
    // restored not know it.
    let free = stripe.free_from(mark);
    let lowest = match change {
        Change::Stripe => first.unwrap_or(next),
        Change::BeginCutOver | Change::CutOver => next,
    };
    if lowest < free {
        return Err(invalid(format!(
            "first = {lowest} is not possible: numbers below {free} of source {name} were handed out; take {free} \
             or more"
        )));
    }
    Ok(lowest)
}
