//! Definition of a source: one set of keys, the same in a configuration file, on the command line,
//! over the network and in the library.
//!
//! [`SourceSpec`] holds the keys as written; none of them is required. [`SourceSpec::check`] turns
//! them into a [`Plan`], in which everything is decided and possible. An impossible value is an
//! error that names its key. The catalog keeps [`SourceSpec::canonical`] with every default written
//! out: a later version with other defaults does not change an existing source.

mod bounds;
mod duration;
mod error;
mod key;
pub mod keys;
mod kind;
mod plan;
mod source_spec;
pub(crate) mod stored;
pub(crate) mod stores;
#[cfg(test)]
mod tests;
pub mod upstream;
mod words;
mod written;

pub use duration::{Span, SpanError};
pub use error::SpecError;
pub use key::{Key, Takes};
pub use kind::*;
pub use plan::*;
pub use source_spec::*;
pub use words::words;

impl SourceSpec {
    /// Decides everything that was left open.
    ///
    /// # Errors
    /// [`SpecError`], which names the impossible key.
    pub fn check(&self) -> Result<Plan, SpecError> {
        Plan::check(self)
    }

    /// Returns the plan of a snowflake source; `None` for other kinds, and for impossible keys.
    pub(crate) fn snowflake(&self) -> Option<SnowflakePlan> {
        match self.check() {
            Ok(Plan::Snowflake(plan)) => Some(plan),
            _ => None,
        }
    }

    /// Returns the same source with every default for its kind written out. Checking it gives the
    /// same [`Plan`].
    ///
    /// # Errors
    /// Those of [`SourceSpec::check`].
    pub fn canonical(&self) -> Result<Self, SpecError> {
        let mut canonical = self.check()?.to_spec();
        canonical.enabled = Some(self.is_enabled());
        if let (Some(to), Some(from)) = (&mut canonical.disguise, &self.disguise) {
            to.check.clone_from(&from.check);
        }
        Ok(canonical)
    }

    /// Returns the part that never changes while the source exists, as a stored text. Two
    /// processes that differ in it would make IDs that collide.
    ///
    /// # Errors
    /// Those of [`SourceSpec::check`].
    pub fn identity(&self) -> Result<String, SpecError> {
        let mut canonical = self.canonical()?;
        // The set of stores may change; that there are several may not.
        canonical.stores = canonical.stores.map(|_| "several".into());
        let mut keys = canonical.to_json();
        keys::retain_identity(&mut keys);
        Ok(stored::text_of(keys))
    }
}
