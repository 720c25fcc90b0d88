//! Keys of a stripe in a definition.

use crate::model::stripe::{Stripe, StripeError, StripeKeys};
use crate::spec::error::SpecError;
use crate::spec::source_spec::SourceSpec;

/// Returns the stripe of a definition.
///
/// # Errors
/// [`SpecError::Value`] for the impossible key.
pub(super) fn check(spec: &SourceSpec) -> Result<Stripe, SpecError> {
    let &SourceSpec { offset, increment, first, first_at, until, .. } = spec;
    Ok(Stripe::check(&StripeKeys { offset, increment, first, first_at, until })?)
}

impl From<StripeError> for SpecError {
    fn from(error: StripeError) -> Self {
        let StripeError { key, value, reason } = error;
        Self::Value { key, value, reason }
    }
}

impl Stripe {
    /// Adds the stripe's keys to a specification, without defaults.
    pub(crate) fn to_spec(self, spec: SourceSpec) -> SourceSpec {
        SourceSpec {
            offset: Some(self.offset()),
            increment: Some(self.increment()),
            first: (self.first() != self.offset()).then_some(self.first()),
            first_at: self.was_another().then_some(self.number_min()),
            until: self.until(),
            ..spec
        }
    }
}
