//! Version of a disguise for definitions that do not name one.

use super::source_info::read_spec;
use super::state::NodeState;
use crate::error::{Error, Result, Verb};
use crate::model::catalog::{Catalog, Definition, SourceState};
use crate::spec::{DisguiseMode, DisguisePlan, DisguiseVersion, Plan, SourceSpec, Unique};

impl NodeState {
    /// Returns the keys for checking, with a version of the disguise filled in where it is open.
    pub(super) async fn with_disguise_version(
        &self,
        name: &str,
        spec: &SourceSpec,
    ) -> Result<SourceSpec> {
        if !is_open(spec) {
            return Ok(spec.clone());
        }
        // Includes deleted sources: their IDs keep their disguise.
        let catalog = self.ctx.store_call(Verb::List, self.reads.list()).await?;
        let version = version_in(&catalog, name, spec)?;
        let mut spec = spec.clone();
        if let Some(disguise) = &mut spec.disguise {
            disguise.version = Some(version.number());
        }
        Ok(spec)
    }
}

/// Returns whether the version is open. Keys with a check value come from an existing definition,
/// perhaps in another store, and are complete: without a version they mean the first one.
fn is_open(spec: &SourceSpec) -> bool {
    spec.disguise.as_ref().is_some_and(|disguise| {
        disguise.mode.unwrap_or_default() != DisguiseMode::None
            && disguise.version.is_none()
            && disguise.check.is_none()
    })
}

/// Returns the version for a source. A source keeps its version, also after it was deleted. Sources
/// with IDs that are unique together share one permutation: a new one gets the version of the
/// existing ones.
fn version_in(catalog: &Catalog, name: &str, spec: &SourceSpec) -> Result<DisguiseVersion> {
    let own = catalog.definitions.iter().find(|stored| stored.name == name);
    if own.is_some_and(Definition::is_lost) {
        // Another version would make old IDs again.
        return Err(Error::invalid(format!(
            "source {name:?} was defined before and its definition is lost; set disguise.version = \
             1 if 0.1.0 defined it first, else 2"
        )));
    }
    let own = own.and_then(disguise_of).map(|(disguise, _)| disguise.version);
    let group = || (spec.unique == Some(Unique::Namespace)).then(|| version_of_all(catalog));
    Ok(own.or_else(|| group().flatten()).unwrap_or(DisguiseVersion::NEWEST))
}

/// Returns the version of the sources that are unique in the namespace: of an existing one, else of
/// a deleted one.
fn version_of_all(catalog: &Catalog) -> Option<DisguiseVersion> {
    let all = catalog.definitions.iter().filter_map(|stored| {
        let (disguise, unique) = disguise_of(stored)?;
        let deleted = stored.state == SourceState::Deleted;
        (unique == Unique::Namespace).then_some((deleted, disguise.version))
    });
    all.min_by_key(|(deleted, _)| *deleted).map(|(_, version)| version)
}

/// Returns the disguise of a definition, and the scope in which its IDs are unique.
fn disguise_of(stored: &Definition) -> Option<(DisguisePlan, Unique)> {
    match read_spec(stored).ok()?.check().ok()? {
        Plan::Snowflake(plan) => Some((plan.disguise?, plan.unique)),
        Plan::Segment(plan) => Some((plan.disguise?, Unique::Source)),
        _ => None,
    }
}
