//! Operations on sources: define, alter, list and delete them, for the whole namespace.

use super::source_info::{Listed, SourceInfo, read_spec};
use super::state::Node;
use crate::error::{Error, Result, Verb};
use crate::model::catalog::SourceState;
use crate::spec::{MinterPlan, Plan, SnowflakePlan, SourceSpec};

/// Result of a check of a definition's list of stores: the version of the stored definition that it
/// was compared with, if the list changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoresChecked {
    version: Option<u64>,
}

impl Node {
    /// Defines a source for the whole namespace, or finds that it is already defined in the same
    /// way.
    ///
    /// # Errors
    /// `Invalid` for keys that make no source; `Conflict` when it is defined differently.
    pub async fn define(&self, name: &str, spec: &SourceSpec) -> Result<SourceInfo> {
        let checked = self.check_stores(name, spec).await?;
        self.define_checked(name, spec, checked).await
    }

    /// Does the same with a list of stores that was checked, and calls no other store.
    ///
    /// # Errors
    /// Those of [`Node::define`].
    pub async fn define_checked(
        &self,
        name: &str,
        spec: &SourceSpec,
        _checked: StoresChecked,
    ) -> Result<SourceInfo> {
        let ctx = &self.core().ctx;
        let spec = &self.core().with_disguise_version(name, spec).await?;
        let new = self.core().new_definition(name, spec)?;
        self.core().check_new_namespace_unique(name, spec).await?;
        let history = self.core().history();
        let defined = ctx.store_call(Verb::Define, ctx.store.define(&new)).await?;
        self.core().changed(&defined, history)
    }

    /// Changes keys of a source that are not part of its identity. With `if_version`, it does so
    /// only if the source is still at this version.
    ///
    /// # Errors
    /// Those of [`Node::define`]; `NotFound` when the source does not exist.
    pub async fn alter(
        &self,
        name: &str,
        spec: &SourceSpec,
        if_version: Option<u64>,
    ) -> Result<SourceInfo> {
        let checked = self.check_stores(name, spec).await?;
        self.alter_checked(name, spec, if_version, checked).await
    }

    /// Does the same with a list of stores that was checked, and calls no other store.
    ///
    /// # Errors
    /// Those of [`Node::alter`].
    pub async fn alter_checked(
        &self,
        name: &str,
        spec: &SourceSpec,
        if_version: Option<u64>,
        checked: StoresChecked,
    ) -> Result<SourceInfo> {
        let ctx = &self.core().ctx;
        let spec = &self.core().with_disguise_version(name, spec).await?;
        let new = self.core().new_definition(name, spec)?;
        self.core().check_new_namespace_unique(name, spec).await?;
        let history = self.core().history();
        let alter = ctx.store.alter(&new, if_version.or(checked.version));
        let defined = ctx.store_call(Verb::Alter, alter).await?;
        self.core().changed(&defined, history)
    }

    /// Checks a definition that another process writes without this node, as one of this node's
    /// own, with a list of stores that was checked. It must agree with the sources that share its
    /// generator, if any. Returns the version that was checked, if the write must be conditional on
    /// it.
    ///
    /// # Errors
    /// `Conflict`; any error of the store.
    pub async fn check_written(
        &self,
        name: &str,
        spec: &SourceSpec,
        checked: StoresChecked,
    ) -> Result<Option<u64>> {
        self.core().check_new_namespace_unique(name, spec).await?;
        Ok(checked.version)
    }

    /// Rejects a changed list of stores by which one store's numbers could become another's. Calls
    /// the stores of the new list, if a store leaves the list. Keys that make no source pass: the
    /// definition is rejected for them.
    ///
    /// # Errors
    /// `Unsupported` when a store of the new list is unknown here, and a store leaves; `Conflict`;
    /// any error of the stores.
    pub async fn check_stores(&self, name: &str, spec: &SourceSpec) -> Result<StoresChecked> {
        let none = StoresChecked::default();
        if spec.stores.is_none() || spec.check().is_err() {
            return Ok(none);
        }
        let ctx = &self.core().ctx;
        // Includes deleted sources, which keep their numbers.
        let catalog = ctx.store_call(Verb::List, self.core().reads.list()).await?;
        let Some(stored) = catalog.definitions.iter().find(|stored| stored.name == name) else {
            return Ok(none);
        };
        let now = read_spec(stored)?;
        check_workers(name, (&now, spec))?;
        self.core().secondary_stores.check_leaving(name, (&now, spec)).await?;
        Ok(StoresChecked { version: (now.stores != spec.stores).then_some(stored.version) })
    }

    /// Deletes a source for the whole namespace. Its name keeps its identity and its numbers: when
    /// it is defined again, it continues above them.
    ///
    /// # Errors
    /// `NotFound` when the source never existed.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let (ctx, history) = (&self.core().ctx, self.core().history());
        let deleted = ctx.store.set_state(name, SourceState::Deleted);
        let deleted = ctx.store_call(Verb::SetState, deleted).await?;
        self.core().changed(&deleted, history).map(drop)
    }

    /// Returns the definition of one source.
    ///
    /// # Errors
    /// `NotFound`; any error of the store.
    pub async fn definition(&self, name: &str) -> Result<SourceInfo> {
        let ctx = &self.core().ctx;
        self.core().described(&ctx.store_call(Verb::Get, self.core().reads.get(name)).await?)
    }

    /// Returns all sources that are not deleted, by name.
    ///
    /// # Errors
    /// Any error of the store.
    pub async fn sources(&self) -> Result<Listed> {
        let ctx = &self.core().ctx;
        let catalog = ctx.store_call(Verb::List, self.core().reads.list()).await?;
        Ok(self.core().listed(&catalog))
    }
}

/// Checks that a worker number of one store is not given to another: IDs minted under it may lie
/// ahead of the other store's clock. When a store is removed, its number must therefore stay with
/// it.
fn check_workers(name: &str, (stored, wanted): (&SourceSpec, &SourceSpec)) -> Result<()> {
    let stores = |spec: &SourceSpec| match spec.check() {
        Ok(Plan::Snowflake(SnowflakePlan { minter_plan: MinterPlan::Stores(stores), .. })) => {
            stores
        }
        _ => Vec::new(),
    };
    let wanted = stores(wanted);
    if wanted.is_empty() {
        return Ok(());
    }
    for (store, worker) in stores(stored) {
        let heir = wanted.iter().find(|(_, number)| *number == worker);
        let owner = match store.as_str() {
            "" => "a removed store".to_owned(),
            store => format!("store {store:?}"),
        };
        let message = match heir {
            Some((heir, _)) if heir.is_empty() || *heir == store => continue,
            Some((heir, _)) => format!(
                "worker number {worker} of source {name:?} belongs to {owner}, requested for \
                 {heir:?}; give {heir:?} a number that no store has had"
            ),
            None => format!(
                "worker number {worker} of source {name:?} belongs to {owner}, which the request \
                 drops; write ={worker} in its place"
            ),
        };
        return Err(Error::conflict(message));
    }
    Ok(())
}
