//! Segment sources: their numbers, and the size of a fetch.

use snowmint_core::text::Format;

use super::disguise::{DisguisePlan, disguise};
use super::serial::SerialPlan;
use super::stripe_keys;
use super::text::text;
use crate::model::segment::NUMBER_MAX;
use crate::model::stripe::Stripe;
use crate::spec::bounds::{STEP, STEP_LASTS_MS, STEP_WASTE};
use crate::spec::duration::Span;
use crate::spec::error::{SpecError, needs, value, within};
use crate::spec::kind::{Kind, StepRule};
use crate::spec::source_spec::{SourceSpec, StepSpec};
use crate::spec::stores::names;
use crate::spec::upstream::UpstreamPlan;

const SIZE_DEFAULT: u64 = 1_000;
const MIN_DEFAULT: u64 = 100;
const MAX_DEFAULT: u64 = 1_000_000;
const LASTS_MS_DEFAULT: u64 = 10_000;
/// Default waste: after a burst no more numbers are prefetched than were used.
const WASTE_PERCENT_DEFAULT: u8 = 50;

/// A segment source in which everything is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPlan {
    /// Rule for how many numbers are taken at a time.
    pub step: StepPlan,
    /// Stripe of the numbers.
    pub stripe: Stripe,
    /// Upstream of the numbers, while another system hands them out too.
    pub upstream: Option<UpstreamPlan>,
    /// Stores of the numbers, each with its own stripe; empty for the primary store alone.
    pub stores: Vec<String>,
    /// Serial form of the numbers, if they have one.
    pub serial: Option<SerialPlan>,
    /// Disguise, if any.
    pub disguise: Option<DisguisePlan>,
    /// Text format of IDs.
    pub text: Format,
}

/// Rule for how many numbers are taken from the store at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepPlan {
    /// The numbers that are used in a given time.
    Adaptive {
        /// Fewest numbers.
        min: u64,
        /// Most numbers.
        max: u64,
        /// Milliseconds that they should last.
        lasts_ms: u64,
        /// Percentage of all numbers taken that may be lost; `min` are taken in any case.
        waste_max_percent: u8,
    },
    /// Always the same number.
    Fixed {
        /// Numbers taken at a time.
        size: u64,
    },
    /// Twice as many when they were soon used up, half when they lasted.
    Leaf {
        /// Numbers at first, and at least.
        size: u64,
        /// Most numbers.
        max: u64,
    },
}

impl StepPlan {
    /// Returns whether none are prefetched: with a step of 1, each request takes all its numbers
    /// from the store in one step.
    #[must_use]
    pub const fn is_per_request(self) -> bool {
        matches!(self, Self::Fixed { size: 1 })
    }

    /// Returns the most numbers that are taken at a time.
    #[must_use]
    pub const fn most(self) -> u64 {
        match self {
            Self::Adaptive { max, .. } | Self::Leaf { max, .. } => max,
            Self::Fixed { size } => size,
        }
    }

    /// Returns the fewest numbers that are taken at a time, and the key that sets them.
    const fn least(self) -> (&'static str, u64) {
        match self {
            Self::Adaptive { min, .. } => ("step.min", min),
            Self::Fixed { size } | Self::Leaf { size, .. } => ("step.size", size),
        }
    }

    fn check(spec: &StepSpec) -> Result<Self, SpecError> {
        let rule = spec.rule.unwrap_or_default();
        reject_other_rules_keys(spec, rule)?;
        let counted = |key, count, least| within(key, count, &(least..=*STEP.end()), "");
        let size = counted("step.size", spec.size.unwrap_or(SIZE_DEFAULT), 1)?;
        match rule {
            StepRule::Fixed => Ok(Self::Fixed { size }),
            StepRule::Leaf => {
                let max = spec.max.unwrap_or(Ord::max(MAX_DEFAULT, size));
                Ok(Self::Leaf { size, max: counted("step.max", max, size)? })
            }
            StepRule::Adaptive => {
                let min = counted("step.min", spec.min.unwrap_or(MIN_DEFAULT), 1)?;
                let max = spec.max.unwrap_or(Ord::max(MAX_DEFAULT, min));
                let max = counted("step.max", max, min)?;
                let lasts_ms = spec.lasts.map_or(LASTS_MS_DEFAULT, Span::ms);
                if !STEP_LASTS_MS.contains(&lasts_ms) {
                    return Err(value("step.lasts", Span::from_ms(lasts_ms), "take 100ms to 1d"));
                }
                let waste_max_percent = spec.waste_max.unwrap_or(WASTE_PERCENT_DEFAULT);
                within("step.waste_max", waste_max_percent, &STEP_WASTE, " percent")?;
                Ok(Self::Adaptive { min, max, lasts_ms, waste_max_percent })
            }
        }
    }

    /// Writes the original keys of `adaptive` always, and later keys only if they are not defaults.
    fn to_spec(self) -> StepSpec {
        match self {
            Self::Adaptive { min, max, lasts_ms, waste_max_percent: percent } => StepSpec {
                min: Some(min),
                max: Some(max),
                lasts: Some(Span::from_ms(lasts_ms)),
                waste_max: (percent != WASTE_PERCENT_DEFAULT).then_some(percent),
                ..StepSpec::default()
            },
            Self::Fixed { size } => {
                StepSpec { rule: Some(StepRule::Fixed), size: Some(size), ..StepSpec::default() }
            }
            Self::Leaf { size, max } => StepSpec {
                rule: Some(StepRule::Leaf),
                size: Some(size),
                max: Some(max),
                ..StepSpec::default()
            },
        }
    }
}

fn reject_other_rules_keys(spec: &StepSpec, rule: StepRule) -> Result<(), SpecError> {
    let adaptive = rule == StepRule::Adaptive;
    let fixed = rule == StepRule::Fixed;
    needs("step.size", spec.size.is_some() && adaptive, "step.rule = fixed or leaf")?;
    needs("step.min", spec.min.is_some() && !adaptive, "step.rule = adaptive")?;
    needs("step.max", spec.max.is_some() && fixed, "step.rule = adaptive or leaf")?;
    needs("step.lasts", spec.lasts.is_some() && !adaptive, "step.rule = adaptive")?;
    needs("step.waste_max", spec.waste_max.is_some() && !adaptive, "step.rule = adaptive")
}

/// Rejects keys of plain numbers: a serial is a text format of its own.
fn reject_keys_of_plain_numbers(spec: &SourceSpec) -> Result<(), SpecError> {
    let reject = |key, is_given| needs(key, is_given, "plain numbers, not serials");
    reject("upstream", spec.upstream.is_some())?;
    reject("disguise", spec.disguise.is_some())?;
    reject("text", spec.text.is_some())
}

/// Parses the upstream. Its numbers are used unchanged, so they have no stripe. A cut-over that was
/// begun changes only where the source's own numbers will start.
fn upstream(text: Option<&str>, stripe: Stripe) -> Result<Option<UpstreamPlan>, SpecError> {
    let Some(text) = text else { return Ok(None) };
    needs("upstream", !stripe.is_plain(), "no offset, increment, first or until")?;
    text.parse().map(Some).map_err(|reason: String| value("upstream", text, reason))
}

/// Parses the stores. Each has its stripe in its own catalog, and together they have the numbers of
/// a single store.
fn stores(spec: &SourceSpec) -> Result<Vec<String>, SpecError> {
    let Some(text) = spec.stores.as_deref() else { return Ok(Vec::new()) };
    let other = [
        spec.offset.is_some_and(|offset| offset != 1),
        spec.increment.is_some_and(|increment| increment != 1),
        spec.first.is_some(),
        spec.first_at.is_some(),
        spec.until.is_some(),
        spec.upstream.is_some(),
    ];
    needs("stores", other.contains(&true), "no offset, increment, first, until or upstream")?;
    names(text).map_err(|reason| value("stores", text, reason))
}

impl SegmentPlan {
    pub(super) fn check(spec: &SourceSpec) -> Result<Self, SpecError> {
        let step = StepPlan::check(&spec.step.clone().unwrap_or_default())?;
        let stripe = stripe_keys::check(spec)?;
        if let Some(serial) = &spec.serial {
            reject_keys_of_plain_numbers(spec)?;
            let (serial, stores) = (SerialPlan::check(serial)?, stores(spec)?);
            let several = u64::try_from(stores.len()).unwrap_or(u64::MAX);
            serial.check_stripes(stripe.increment().max(several))?;
            let (serial, text) = (Some(serial), Format::default());
            return Ok(Self { step, stripe, upstream: None, stores, serial, disguise: None, text });
        }
        let (key, least) = step.least();
        let count = stripe.count();
        if count < least {
            let reason = format!("the source has only {count} numbers up to {NUMBER_MAX}");
            return Err(value(key, least, reason));
        }
        let disguise = disguise(spec.disguise.as_ref(), None)?;
        let text = text(spec.text.as_deref())?;
        if text.needs_layout() {
            return Err(value("text", text, "only snowflake sources have a time to show"));
        }
        let upstream = upstream(spec.upstream.as_deref(), stripe)?;
        let stores = stores(spec)?;
        Ok(Self { step, stripe, upstream, stores, serial: None, disguise, text })
    }

    pub(super) fn to_spec(&self) -> SourceSpec {
        let step = Some(self.step.to_spec());
        let stores = (!self.stores.is_empty()).then(|| self.stores.join(","));
        let spec = SourceSpec { step, stores, ..SourceSpec::of(Kind::Segment) };
        match &self.serial {
            // Serials had all numbers before they could have stripes: that default is left out.
            Some(serial) if self.stripe.maps_as(Stripe::ALL) => {
                let (serial, until) = (Some(serial.to_spec()), self.stripe.until());
                SourceSpec { serial, until, ..spec }
            }
            Some(serial) => {
                self.stripe.to_spec(SourceSpec { serial: Some(serial.to_spec()), ..spec })
            }
            None => self.stripe.to_spec(SourceSpec {
                disguise: self.disguise.map(DisguisePlan::to_spec),
                text: Some(self.text.to_string()),
                upstream: self.upstream.as_ref().map(UpstreamPlan::to_string),
                ..spec
            }),
        }
    }
}
