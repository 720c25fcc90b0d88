//! Catalog definitions of sources, and how running sources follow them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError};

use super::source_info::{ReadCatalog, SourceInfo, info, read_spec};
use super::state::NodeState;
use crate::error::{Error, Result, Verb, chain};
use crate::model::catalog::{Catalog, Definition, NewDefinition, SourceState};
use crate::model::history::check_ends;
use crate::model::pool::{check_group, pool_of};
use crate::node::forecast::check_life;
use crate::sources::{
    Defined, GeneratorConfig, IdCodec, SourceInner, Unused, check_value, compare_check,
};
use crate::spec::{MinterPlan, Plan, SegmentPlan, SnowflakePlan, SourceSpec, SpecError, Unique};
use crate::store::upstream::upstream_of;

impl NodeState {
    pub(super) fn known(&self, name: &str) -> Option<Arc<SourceInner>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(super) fn known_sources(&self) -> Vec<Arc<SourceInner>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Returns the canonical form that the catalog keeps, and whether the source is to be enabled.
    pub(super) fn new_definition(&self, name: &str, spec: &SourceSpec) -> Result<NewDefinition> {
        let invalid = |error: SpecError| Error::invalid(format!("source {name:?}: {error}"));
        let plan = spec.check().map_err(invalid)?;
        self.check_upstream(name, &plan)?;
        check_life(name, &plan, self.ctx.clock.unix_ms())?;
        if let Plan::Snowflake(plan) = &plan
            && plan.minter_plan == MinterPlan::Process
        {
            let pool = pool_of(&plan.layout, self.settings.reuse);
            check_group(&pool, self.ctx.store.group_max())?;
        }
        let mut canonical = spec.canonical().map_err(invalid)?;
        if let Some(disguise) = &mut canonical.disguise
            && disguise.check.is_none()
        {
            let of = (self.ctx.store.namespace(), name);
            disguise.check = check_value(of, &plan, &self.settings.keyrings)?;
        }
        canonical.enabled = spec.enabled;
        NewDefinition::of(name, &canonical).map_err(invalid)
    }

    /// Checks that this process reaches the source's upstream, or all the stores that serve it.
    /// Otherwise it must not mint from it.
    fn check_upstream(&self, name: &str, plan: &Plan) -> Result<()> {
        match plan {
            Plan::Segment(SegmentPlan { upstream: Some(upstream), .. }) => {
                upstream_of(&self.settings.upstreams, name, &upstream.name).map(drop)
            }
            plan => self.secondary_stores.check_known(name, plan),
        }
    }

    pub(super) fn defined(&self, definition: &Definition) -> Result<Defined> {
        let spec = read_spec(definition)?;
        let plan = spec.check().map_err(|error| {
            Error::unsupported(format!(
                "source {:?} in the catalog has an invalid definition: {error}; update this \
                 program or alter the source",
                definition.name
            ))
        })?;
        self.check_upstream(&definition.name, &plan)?;
        let keys = &self.settings.keyrings;
        let of = (self.ctx.store.namespace(), definition.name.as_str());
        compare_check(of, spec.disguise.as_ref(), &plan, keys)?;
        let id_codec = IdCodec::new(of, &plan, keys)?;
        let (state, version) = (definition.state, definition.version);
        Ok(Defined { spec, plan, id_codec, state, version, text: OnceLock::new() })
    }

    /// Returns the number of the store's present history. Read it before reading a definition: see
    /// [`apply_definition`](Self::apply_definition).
    pub(super) fn history(&self) -> u64 {
        self.histories.load(Ordering::SeqCst)
    }

    /// Opens a source by the store's definition, which is read once more if the store was recovered
    /// meanwhile: a process that begins on a recovered store learns of that while it opens sources.
    pub(super) async fn open(&self, name: &str) -> Result<Arc<SourceInner>> {
        let history = self.history();
        let definition = self.find(name).await?;
        match self.apply_definition(&definition, history) {
            Err(_) if self.history() != history => {}
            opened => return opened,
        }
        let history = self.history();
        let definition = self.find(name).await?;
        self.apply_definition(&definition, history)
    }

    /// Creates the running source of a definition, or updates the one that runs. `history` is the
    /// one in which the definition was read: version numbers from a lost history mean nothing in
    /// the next.
    pub(super) fn apply_definition(
        &self,
        definition: &Definition,
        history: u64,
    ) -> Result<Arc<SourceInner>> {
        let defined = self.defined(definition)?;
        let name = definition.name.clone();
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if self.history() != history {
            return Err(Error::unavailable(format!(
                "source {name:?} cannot open: the store was recovered meanwhile; retry"
            )));
        }
        if let Some(known) = sources.get(&name) {
            let version = known.defined.load().version;
            if version >= defined.version {
                return Ok(Arc::clone(known));
            }
            // A different source takes the name of one that was lost.
            if version > 0 || known.has_same_identity(&defined) {
                known.redefine(defined);
                self.supply(known);
                return Ok(Arc::clone(known));
            }
        }
        // A running source is not stopped; warnings are logged for years before.
        check_life(&name, &defined.plan, self.ctx.clock.unix_ms())?;
        let initial = self.initial_state(definition);
        let source = SourceInner::new(&name, defined, &initial, Arc::clone(&self.ctx))?;
        let source = Arc::new(source);
        self.supply(&source);
        sources.insert(name, Arc::clone(&source));
        Ok(source)
    }

    /// Adopts the definitions of a recovered store, whatever their version numbers. A source that
    /// runs by a lost definition would hand out IDs that other processes hand out by the recovered
    /// one. A source that the store no longer has, or has with another identity, is switched off.
    pub(super) fn adopt_catalog(&self, catalog: &Catalog) {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        self.histories.fetch_add(1, Ordering::SeqCst);
        for (name, known) in sources.iter() {
            let stored = catalog.definitions.iter().find(|stored| stored.name == *name);
            let defined = stored.and_then(|stored| self.defined(stored).ok());
            match defined.filter(|defined| known.has_same_identity(defined)) {
                Some(defined) => known.redefine(defined),
                None => {
                    tracing::error!(source = %name, "source disabled: the recovered store lacks it");
                    known.mark_deleted();
                }
            }
            known.agreed(0);
            self.supply(known);
        }
    }

    /// Starts the supervisor of a source that several stores serve.
    fn supply(&self, source: &SourceInner) {
        let defined = source.defined.load();
        if let Some(multi_store) = source.backing.as_multi_store() {
            self.secondary_stores.supply(&self.ctx, multi_store, (&defined.spec, &defined.plan));
        }
    }

    /// Returns the listed form of the definition, with the status of its stores.
    pub(super) fn described(&self, definition: &Definition) -> Result<SourceInfo> {
        let known = self.known(&definition.name);
        let multi_store = known.as_ref().and_then(|source| source.backing.as_multi_store());
        let store_status = multi_store.map(|multi_store| multi_store.store_status());
        Ok(SourceInfo { store_status: store_status.unwrap_or_default(), ..info(definition)? })
    }

    /// Updates the running source, if any, after this node changed its definition.
    pub(super) fn changed(&self, definition: &Definition, history: u64) -> Result<SourceInfo> {
        let info = info(definition)?;
        self.lookup.changed();
        if self.known(&definition.name).is_some() {
            self.apply_definition(definition, history)?;
            self.ctx.catalog_stale();
        }
        Ok(info)
    }

    /// Reads the catalog, and updates all running sources. Compares the sources with the numbers
    /// that this node, named `who`, has seen issued. A row that was set back by hand leaves no
    /// other sign, and no other check finds it before its numbers are requested.
    pub(super) async fn read_catalog(&self, who: &str) -> Result<ReadCatalog> {
        // Collected before the read, which need not have numbers that are reserved meanwhile.
        // Servers compare for the clients that call them.
        let is_compared = self.ctx.store.owner_client().is_none();
        let ends = if is_compared { self.ends_seen() } else { BTreeMap::new() };
        let history = self.history();
        let catalog = self.ctx.store_call(Verb::List, self.ctx.store.list()).await?;
        for definition in &catalog.definitions {
            let is_newer =
                |known: Arc<SourceInner>| known.defined.load().version < definition.version;
            if self.known(&definition.name).is_some_and(is_newer)
                && let Err(error) = self.apply_definition(definition, history)
            {
                tracing::error!(source = %definition.name, error = %chain(&error), "failed to apply a changed definition");
            }
        }
        let below = check_ends(who, &ends, &catalog.definitions).err();
        Ok(ReadCatalog { catalog, below })
    }

    pub(super) async fn check_new_namespace_unique(
        &self,
        name: &str,
        spec: &SourceSpec,
    ) -> Result<()> {
        match spec.snowflake() {
            Some(plan) if plan.unique == Unique::Namespace => self.check_agrees(name, &plan).await,
            _ => Ok(()),
        }
    }

    pub(super) async fn check_namespace_unique(&self, source: &SourceInner) -> Result<()> {
        let defined = source.defined.load_full();
        match &defined.plan {
            // The store is read once for each version of a definition: a source that is defined
            // later and disagrees is rejected at its definition.
            Plan::Snowflake(plan)
                if plan.unique == Unique::Namespace && !source.agrees(defined.version) =>
            {
                match self.check_agrees(&source.name, plan).await {
                    // They agreed when IDs were last minted from them.
                    Err(error) if self.does_without(&error) => Ok(()),
                    agreed => agreed.inspect(|()| source.agreed(defined.version)),
                }
            }
            _ => Ok(()),
        }
    }

    /// Checks that the sources that share one generator agree on it. When two disagree, both are
    /// rejected: it is not certain which one was first.
    pub(super) async fn check_agrees(&self, name: &str, plan: &SnowflakePlan) -> Result<()> {
        let catalog = self.ctx.store_call(Verb::List, self.reads.list()).await?;
        for other in &catalog.definitions {
            if other.name == name || other.state == SourceState::Deleted {
                continue;
            }
            let Some(theirs) = read_spec(other)?.snowflake() else { continue };
            let shares = theirs.unique == Unique::Namespace;
            if shares
                && (GeneratorConfig::of(&theirs) != GeneratorConfig::of(plan)
                    || theirs.disguise != plan.disguise)
            {
                return Err(Error::conflict(format!(
                    "sources {name:?} and {:?} share the namespace's generator, but differ in {}; \
                     give both the same values",
                    other.name,
                    differing_keys(&theirs, plan)
                )));
            }
        }
        Ok(())
    }

    /// Drops all prefetched numbers, because the store may hand them out again.
    pub(super) fn drop_prefetched_numbers(&self) {
        // The lock is held, so that no definition changes meanwhile: the source that continues has
        // the newest one.
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of secondary stores belong to these stores' nodes.
        sources.values().for_each(|source| source.backing.kind().drop_prefetched());
    }

    /// Ends prefill queues and segments; returns the unused numbers.
    pub(super) fn close_prefetched(&self) -> Vec<Unused> {
        let known = self.known_sources();
        known.iter().filter_map(|source| source.backing.kind().close_prefetched()).collect()
    }
}

/// Returns the keys by which two sources need different generators, or have different disguises.
fn differing_keys(one: &SnowflakePlan, other: &SnowflakePlan) -> String {
    let keys = [
        ("layout", one.layout != other.layout),
        ("on_rollback", one.rollback_plan != other.rollback_plan),
        ("burst", one.burst_ms != other.burst_ms),
        ("sequence_start", one.start != other.start),
        ("disguise", one.disguise != other.disguise),
    ];
    let differ = keys.into_iter().filter_map(|(key, differs)| differs.then_some(key));
    differ.collect::<Vec<_>>().join(", ")
}
