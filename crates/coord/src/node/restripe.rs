//! Changing the stripe of a running segment source.

use super::source_info::{SourceInfo, read_spec};
use super::state::Node;
use crate::error::{Error, ErrorKind, Result, Verb};
use crate::ids::Mark;
use crate::model::catalog::{Definition, Restripe, check_version};
use crate::model::name::check_name;
use crate::model::segment::NUMBER_MAX;
use crate::model::stripe::Stripe;
use crate::spec::upstream::UpstreamPlan;
use crate::spec::{Plan, SegmentPlan, SourceSpec};

/// Attempts to choose a mark while other writers move it. The distance doubles each time.
const TRIES: u32 = 20;

/// Wanted stripe of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewStripe {
    /// Place of the stripe, 1 to `increment`.
    pub offset: u64,
    /// Number of stripes.
    pub increment: u64,
    /// First number of the new stripe, above everything handed out; none: where the old stripe is
    /// now.
    pub first: Option<u64>,
    /// Version that the source must still have.
    pub if_version: Option<u64>,
}

impl NewStripe {
    /// Returns the stripe of all numbers.
    const fn all_from(first: Option<u64>) -> Self {
        Self { offset: 1, increment: 1, first, if_version: None }
    }
}

/// Reason for a change of stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StripeChange {
    /// An operator wants another stripe.
    Stripe,
    /// The source's upstream is about to end below the stripe's `first`.
    BeginCutOver,
    /// The upstream has ended.
    CutOver,
}

impl Node {
    /// Gives a segment source another stripe, for the whole namespace. Numbers of the old stripe
    /// lie below all of the new one's; prefetched numbers are lost. Other stores are not
    /// considered: to change several, first set in each where its old stripe ends (`until`).
    ///
    /// # Errors
    /// `Invalid` for a malformed stripe, a `first` at or below what was handed out, or a source of
    /// another kind; `NotFound`; `Conflict` when the source was changed meanwhile.
    pub async fn restripe(&self, name: &str, wanted: NewStripe) -> Result<SourceInfo> {
        self.change_stripe(name, wanted, StripeChange::Stripe).await
    }

    async fn change_stripe(
        &self,
        name: &str,
        wanted: NewStripe,
        change: StripeChange,
    ) -> Result<SourceInfo> {
        check_name("source", name)?;
        let ctx = &self.core().ctx;
        let mut tries = 0;
        loop {
            let history = self.core().history();
            let stored = ctx.store_call(Verb::Get, self.core().reads.get(name)).await?;
            let restripe = self.worked_out(&stored, wanted, (1 << tries) - 1, change)?;
            match ctx.store_call(Verb::Restripe, ctx.store.restripe(&restripe)).await {
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

    /// Records how far a source's upstream had come, before the other system is ended: nothing
    /// below `first` is handed out any more. If nothing else happens, the source continues to
    /// allocate from the upstream. If the command breaks off after the other system has ended, the
    /// definition shows that [`Node::cut_over`] may follow.
    ///
    /// # Errors
    /// Those of [`Node::restripe`].
    pub async fn begin_cut_over(&self, name: &str, first: u64) -> Result<SourceInfo> {
        self.change_stripe(name, NewStripe::all_from(Some(first)), StripeChange::BeginCutOver).await
    }

    /// Ends a source's allocation from its upstream, which has ended. From here on the source has
    /// numbers of its own. They lie above all that it allocated, and all that the other system
    /// handed out before the cut-over was [begun](Node::begin_cut_over).
    ///
    /// # Errors
    /// Those of [`Node::restripe`].
    pub async fn cut_over(&self, name: &str) -> Result<SourceInfo> {
        self.change_stripe(name, NewStripe::all_from(None), StripeChange::CutOver).await
    }

    /// Returns the definition by which numbers continue from `ahead` above the stored mark.
    fn worked_out(
        &self,
        stored: &Definition,
        wanted: NewStripe,
        ahead: u64,
        change: StripeChange,
    ) -> Result<Restripe> {
        check_version(&stored.name, stored.version, wanted.if_version)?;
        let (spec, plan) = read_segment(stored)?;
        check_change(&stored.name, plan.upstream.as_ref(), change)?;
        let mark = mark_for(stored, plan.stripe, wanted.first, ahead, change);
        let lowest = lowest_from(&stored.name, plan.stripe, mark, wanted.first, change)?;
        let stripe = Stripe::new(wanted.offset, wanted.increment, lowest, mark)
            .map_err(|error| Error::invalid(error.to_string()))?;
        let upstream = spec.upstream.clone().filter(|_| change == StripeChange::BeginCutOver);
        let spec = stripe.to_spec(SourceSpec { until: None, upstream, ..spec });
        let new = self.core().new_definition(&stored.name, &spec)?;
        Ok(Restripe { new, if_version: stored.version, mark: Mark::new(mark) })
    }
}

/// Returns the definition of a segment source with a stripe of its own.
fn read_segment(stored: &Definition) -> Result<(SourceSpec, SegmentPlan)> {
    let spec = read_spec(stored)?;
    let Ok(Plan::Segment(plan)) = spec.check() else {
        return Err(Error::invalid(format!(
            "source {:?} has kind {}; stripes need kind segment",
            stored.name,
            spec.kind()
        )));
    };
    if !plan.stores.is_empty() {
        return Err(Error::invalid(format!(
            "source {:?} has a stripe per store ({}); restripe each (source restripe --stripe \
             J=STORE)",
            stored.name,
            plan.stores.join(", ")
        )));
    }
    Ok((spec, plan))
}

/// Checks that a source with an upstream is cut over before its stripe changes, and that only such
/// a source begins a cut-over.
fn check_change(name: &str, upstream: Option<&UpstreamPlan>, change: StripeChange) -> Result<()> {
    match (change, upstream) {
        (StripeChange::Stripe, Some(upstream)) => Err(Error::invalid(format!(
            "source {name:?} allocates from upstream {upstream}; cut it over first (import \
             --cut-over)"
        ))),
        (StripeChange::BeginCutOver, None) => {
            Err(Error::invalid(format!("source {name:?} has no upstream; a cut-over needs one")))
        }
        _ => Ok(()),
    }
}

/// Returns the new stripe's mark: `ahead` above everything that was handed out.
fn mark_for(
    stored: &Definition,
    stripe: Stripe,
    first: Option<u64>,
    ahead: u64,
    change: StripeChange,
) -> u64 {
    let lowest = match change {
        // While it allocates from the upstream, each number is the ID. The minimum is 2: all
        // sources without `first` begin at 1.
        StripeChange::BeginCutOver => Ord::max(first.unwrap_or(0), 2),
        StripeChange::Stripe | StripeChange::CutOver => 0,
    };
    let reached = stored.segment.mark.get().max(stripe.number_min()).max(lowest);
    match (change, first) {
        // At most up to the number that was named: a stripe above it is not the requested one.
        (StripeChange::Stripe, Some(first)) => {
            reached.saturating_add(ahead).min(stripe.number_from(first)).max(reached)
        }
        _ => reached.saturating_add(ahead),
    }
}

/// Returns the begin of the new stripe, which is not below the old one's numbers up to this mark.
fn lowest_from(
    name: &str,
    stripe: Stripe,
    mark: u64,
    first: Option<u64>,
    change: StripeChange,
) -> Result<u64> {
    let next = stripe.next(mark).ok_or_else(|| {
        Error::exhausted(format!(
            "source {name:?} has no numbers left, maximum {NUMBER_MAX}; define another source"
        ))
    })?;
    // Ignores `until`: another operator may have lifted it, and a store that was restored may not
    // know this.
    let free = stripe.free_from(mark);
    let lowest = match change {
        StripeChange::Stripe => first.unwrap_or(next),
        StripeChange::BeginCutOver | StripeChange::CutOver => next,
    };
    if lowest < free {
        return Err(Error::invalid(format!(
            "first = {lowest} is below {free}, the end of issued numbers of source {name:?}; use \
             {free} or more"
        )));
    }
    Ok(lowest)
}
