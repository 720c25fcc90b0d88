//! Which version of a disguise a definition gets that does not say one.

use super::Core;
use super::definitions::read_spec;
use crate::catalog::{Catalog, Definition, SourceState};
use crate::error::{Error, Result};
use crate::spec::{DisguiseMode, DisguisePlan, DisguiseVersion, Plan, SourceSpec, Unique};

impl Core {
    /// The keys as they are to be checked: with a version of the disguise, if it is left open.
    pub(super) async fn with_disguise_version(
        &self,
        op: &'static str,
        name: &str,
        spec: &SourceSpec,
    ) -> Result<SourceSpec> {
        if !is_open(spec) {
            return Ok(spec.clone());
        }
        // With those that were deleted, whose IDs stay what they are.
        let catalog = self.around.call(op, self.reads.list()).await?;
        let version = version_in(&catalog, op, name, spec)?;
        let mut spec = spec.clone();
        if let Some(disguise) = &mut spec.disguise {
            disguise.version = Some(version.number());
        }
        Ok(spec)
    }
}

/// Whether the version is left open. Keys with a check value are those of a definition that is there, perhaps in
/// another store, and say all: without a version, the first.
fn is_open(spec: &SourceSpec) -> bool {
    spec.disguise.as_ref().is_some_and(|disguise| {
        disguise.mode.unwrap_or_default() != DisguiseMode::None
            && disguise.version.is_none()
            && disguise.check.is_none()
    })
}

/// A source keeps what it had, also after it was deleted. Where IDs must differ over several sources, all have one
/// permutation: a new one gets that of those that are there.
fn version_in(
    catalog: &Catalog,
    op: &'static str,
    name: &str,
    spec: &SourceSpec,
) -> Result<DisguiseVersion> {
    let own = catalog.definitions.iter().find(|stored| stored.name == name);
    if own.is_some_and(Definition::is_lost) {
        // Another version would make old IDs again.
        let what = format!(
            "source {name} was defined before, and the store has lost how: say disguise.version = 1 if 0.1.0 defined \
             it first, else 2"
        );
        return Err(Error::invalid(op, what));
    }
    let own = own.and_then(disguise_of).map(|(disguise, _)| disguise.version);
    let group = || (spec.unique == Some(Unique::Namespace)).then(|| version_of_all(catalog));
    Ok(own.or_else(|| group().flatten()).unwrap_or(DisguiseVersion::NEWEST))
}

/// That of the sources that are unique in the namespace: of one that is there, else of one that was deleted.
fn version_of_all(catalog: &Catalog) -> Option<DisguiseVersion> {
    let all = catalog.definitions.iter().filter_map(|stored| {
        let (disguise, unique) = disguise_of(stored)?;
        let deleted = stored.state == SourceState::Deleted;
        (unique == Unique::Namespace).then_some((deleted, disguise.version))
    });
    all.min_by_key(|(deleted, _)| *deleted).map(|(_, version)| version)
}

/// The disguise of a definition, and within what its IDs never come twice.
fn disguise_of(stored: &Definition) -> Option<(DisguisePlan, Unique)> {
    match read_spec(stored).ok()?.check().ok()? {
        Plan::Snowflake(plan) => Some((plan.disguise?, plan.unique)),
        Plan::Segment(plan) => Some((plan.disguise?, Unique::Source)),
        _ => None,
    }
}
