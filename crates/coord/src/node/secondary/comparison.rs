//! Comparison of the stores of a source.

use super::super::source_info::SourceInfo;
use crate::error::{Error, ErrorKind};
use crate::spec::{MinterPlan, Plan, SnowflakePlan, SourceSpec};

/// Store's definition of the source, if the store was reached.
pub(super) enum Has {
    /// The store is unreachable, or returned another error.
    Unknown,
    Nothing,
    Source(Box<SourceInfo>),
}

/// Definition that each store should have.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    /// A stripe of its own, and this definition otherwise.
    Stripes(Box<SourceSpec>),
    /// These definitions, in order: the stores mint, each under a worker number of its own.
    Workers(Vec<SourceSpec>),
}

impl Wanted {
    pub(super) fn of(spec: &SourceSpec, plan: &Plan) -> Self {
        let spec = SourceSpec { stores: None, enabled: None, ..spec.clone() };
        match plan {
            Plan::Snowflake(SnowflakePlan {
                minter_plan: minter_plan @ MinterPlan::Stores(_),
                ..
            }) => {
                let each = |(_, worker)| SourceSpec { worker: Some(worker), ..spec.clone() };
                Self::Workers(minter_plan.minters().map(each).collect())
            }
            _ => Self::Stripes(Box::new(spec)),
        }
    }

    /// Returns the definition that the store at `index` should have in place of its present one.
    pub(super) fn instead_of(&self, index: usize, now: &SourceSpec) -> SourceSpec {
        match self {
            Self::Stripes(wanted) => SourceSpec {
                offset: now.offset,
                increment: now.increment,
                first: now.first,
                first_at: now.first_at,
                until: now.until,
                ..SourceSpec::clone(wanted)
            },
            Self::Workers(wanted) => wanted.get(index).unwrap_or(now).clone(),
        }
    }
}

/// Result of comparing the stores.
#[derive(Debug)]
pub(super) struct StoreComparison {
    /// Reason why each store does not serve, if it does not.
    pub(super) errors: Vec<Option<Error>>,
    /// Stores without the source, and the definitions that they get.
    pub(super) define: Vec<(usize, SourceSpec)>,
}

impl StoreComparison {
    /// Returns whether two stores disagree.
    pub(super) fn has_conflict(&self) -> bool {
        let is_conflict = |error: &Option<Error>| {
            error.as_ref().is_some_and(|error| matches!(error.kind(), ErrorKind::Conflict))
        };
        self.errors.iter().any(is_conflict)
    }
}

/// Returns the keys of a source that can never change, as text.
pub(super) fn identity_of(spec: &SourceSpec) -> String {
    spec.identity().unwrap_or_else(|error| error.to_string())
}

pub(super) fn otherwise(source: &str, store: &str, stored: &str, wanted: &str) -> Error {
    Error::conflict(format!(
        "source {source:?} has {stored} in store {store:?}, expected {wanted}; correct the \
         definition, or use another name"
    ))
}
