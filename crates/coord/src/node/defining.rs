//! What is said about sources: defined, changed, listed and deleted, for everybody in the namespace.

use super::definitions::read_spec;
use super::{Listed, Node, SourceInfo};
use crate::catalog::SourceState;
use crate::error::{Error, ErrorKind, Result};
use crate::spec::{Minted, Plan, SnowflakePlan, SourceSpec};

impl Node {
    /// Defines a source for everybody in the namespace, or finds that it is defined in the same way.
    ///
    /// # Errors
    /// `Invalid` for keys that make no source; `Conflict` when it is defined otherwise.
    pub async fn define(&self, name: &str, spec: &SourceSpec) -> Result<SourceInfo> {
        let around = &self.core().around;
        let (new, enabled) = self.core().new_definition("define", name, spec)?;
        self.core().check_new_namespace_unique(name, spec).await?;
        let mut defined = around.call("define", around.store.define(&new)).await?;
        if !enabled && defined.state == SourceState::Enabled {
            let disable = around.store.set_state(name, SourceState::Disabled);
            defined = around.call("set state", disable).await?;
        }
        self.core().changed(&defined)
    }

    /// Changes keys of a source that are not part of its identity. With `if_version`, only if nobody
    /// has changed it since.
    ///
    /// # Errors
    /// As [`Node::define`]; `NotFound` when there is no such source.
    pub async fn alter(
        &self,
        name: &str,
        spec: &SourceSpec,
        if_version: Option<u64>,
    ) -> Result<SourceInfo> {
        let around = &self.core().around;
        let (new, enabled) = self.core().new_definition("alter", name, spec)?;
        self.core().check_new_namespace_unique(name, spec).await?;
        self.check_workers(name, spec).await?;
        let mut defined = around.call("alter", around.store.alter(&new, if_version)).await?;
        let state = if enabled { SourceState::Enabled } else { SourceState::Disabled };
        if spec.enabled.is_some() && defined.state != state {
            defined = around.call("set state", around.store.set_state(name, state)).await?;
        }
        self.core().changed(&defined)
    }

    /// A worker number that one store has is given to no other: what is minted under it may lie ahead of the
    /// other's clock.
    async fn check_workers(&self, name: &str, spec: &SourceSpec) -> Result<()> {
        let stores = |spec: &SourceSpec| match spec.check() {
            Ok(Plan::Snowflake(SnowflakePlan { minted: Minted::Stores(stores), .. })) => stores,
            _ => Vec::new(),
        };
        let wanted = stores(spec);
        if wanted.is_empty() {
            return Ok(());
        }
        let around = &self.core().around;
        let stored = around.call("get source", around.store.get(name)).await?;
        for (store, worker) in stores(&read_spec(&stored)?) {
            let heir = wanted.iter().find(|(other, number)| *number == worker && *other != store);
            let Some((heir, _)) = heir else { continue };
            let kind = ErrorKind::Conflict {
                what: format!(
                    "worker number {worker} of source {name} is that of another store; give {heir} one that no \
                     store has had"
                ),
                stored: format!("{store}={worker}"),
                wanted: format!("{heir}={worker}"),
            };
            return Err(Error::new("alter", kind));
        }
        Ok(())
    }

    /// Switches a source off for everybody, or on again.
    ///
    /// # Errors
    /// `NotFound` when there is no such source.
    pub async fn set_enabled(&self, name: &str, enabled: bool) -> Result<SourceInfo> {
        let state = if enabled { SourceState::Enabled } else { SourceState::Disabled };
        let around = &self.core().around;
        let defined = around.call("set state", around.store.set_state(name, state)).await?;
        self.core().changed(&defined)
    }

    /// Deletes a source for everybody. Its name keeps its identity and its numbers: defined again, it
    /// goes on above them.
    ///
    /// # Errors
    /// `NotFound` when there never was such a source.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let around = &self.core().around;
        let deleted = around.store.set_state(name, SourceState::Deleted);
        let deleted = around.call("delete", deleted).await?;
        self.core().changed(&deleted).map(drop)
    }

    /// The definition of one source.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn definition(&self, name: &str) -> Result<SourceInfo> {
        let around = &self.core().around;
        self.core().described(&around.call("get source", around.store.get(name)).await?)
    }

    /// All sources that are not deleted, by name.
    ///
    /// # Errors
    /// As the store says.
    pub async fn sources(&self) -> Result<Listed> {
        let around = &self.core().around;
        let catalog = around.call("list sources", around.store.list()).await?;
        Ok(self.core().listed(&catalog))
    }
}
