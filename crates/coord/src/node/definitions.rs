//! What the catalog says of sources, and how the running ones follow it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError};

use snowmint_core::Rfc3339;

use super::{Core, Reason, SourceInfo};
use crate::catalog::{Catalog, Definition, NewDefinition, SourceState};
use crate::error::{Error, ErrorKind, Result, chain};
use crate::forecast::check_life;
use crate::origin::origin_of;
use crate::pool::{check_group, pool_of};
use crate::sources::{Back, Defined, Form, Make, SourceInner, Unused, check_value, compare_check};
use crate::spec::{Minted, Plan, SegmentPlan, SourceSpec, Unique};

pub(super) fn read_spec(definition: &Definition) -> Result<SourceSpec> {
    SourceSpec::from_json(&definition.spec).map_err(|error| {
        let what =
            format!("source {} in the catalog is not for this version: {error}", definition.name);
        Error::new("read catalog", ErrorKind::Unsupported { what })
    })
}

pub(super) fn info(definition: &Definition) -> Result<SourceInfo> {
    let mut spec = read_spec(definition)?;
    spec.enabled = Some(definition.state == SourceState::Enabled);
    let next = match spec.check() {
        Ok(Plan::Segment(plan)) if plan.stores.is_empty() => {
            plan.stripe.next(definition.segment.mark.get())
        }
        _ => None,
    };
    Ok(SourceInfo {
        name: definition.name.clone(),
        spec,
        state: definition.state,
        version: definition.version,
        next,
        shares: Vec::new(),
    })
}

impl Core {
    pub(super) fn known(&self, name: &str) -> Option<Arc<SourceInner>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(super) fn known_sources(&self) -> Vec<Arc<SourceInner>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The canonical form that the catalog keeps, and whether the source shall be enabled.
    pub(super) fn new_definition(
        &self,
        op: &'static str,
        name: &str,
        spec: &SourceSpec,
    ) -> Result<NewDefinition> {
        let invalid =
            |error: crate::spec::SpecError| Error::invalid(op, format!("source {name}: {error}"));
        let plan = spec.check().map_err(invalid)?;
        self.check_origin(name, &plan)?;
        check_life(name, &plan, self.around.clock.unix_ms())
            .map_err(|kind| Error::new(op, kind))?;
        if let Plan::Snowflake(plan) = &plan
            && plan.minted == Minted::Process
        {
            let pool = pool_of(plan, self.settings.reuse);
            check_group(&pool, self.around.store.group_max())
                .map_err(|kind| Error::new(op, kind))?;
        }
        let mut canonical = spec.canonical().map_err(invalid)?;
        if let Some(disguise) = &mut canonical.disguise
            && disguise.check.is_none()
        {
            let of = (self.around.store.namespace(), name);
            disguise.check = check_value(of, &plan, &self.settings.keyrings)?;
        }
        canonical.enabled = spec.enabled;
        NewDefinition::of(name, &canonical).map_err(invalid)
    }

    /// Whoever does not reach where a source draws, or all the stores that serve it, must not mint from it.
    fn check_origin(&self, name: &str, plan: &Plan) -> Result<()> {
        match plan {
            Plan::Segment(SegmentPlan { origin: Some(origin), .. }) => {
                origin_of(&self.settings.origins, name, origin).map(drop)
            }
            plan => self.beside.check_known(name, plan),
        }
    }

    pub(super) fn defined(&self, definition: &Definition) -> Result<Defined> {
        let spec = read_spec(definition)?;
        let plan = spec.check().map_err(|error| {
            let what = format!("source {} in the catalog: {error}", definition.name);
            Error::new("read catalog", ErrorKind::Unsupported { what })
        })?;
        self.check_origin(&definition.name, &plan)?;
        let keys = &self.settings.keyrings;
        let of = (self.around.store.namespace(), definition.name.as_str());
        compare_check(of, spec.disguise.as_ref(), &plan, keys)?;
        let form = Form::new(of, &plan, keys)?;
        let (state, version) = (definition.state, definition.version);
        Ok(Defined { spec, plan, form, state, version, text: OnceLock::new() })
    }

    /// Which history of the store this is, to be asked before a definition is: see [`take_up`](Self::take_up).
    pub(super) fn history(&self) -> u64 {
        self.histories.load(Ordering::SeqCst)
    }

    /// Makes the running source of a definition, or brings the one that runs up to date. `history`: in which it was asked
    /// for. The numbers of versions of one that was lost with a history say nothing in the next.
    pub(super) fn take_up(
        &self,
        definition: &Definition,
        history: u64,
    ) -> Result<Arc<SourceInner>> {
        let defined = self.defined(definition)?;
        let name = definition.name.clone();
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if self.history() != history {
            let what = format!("source {name}: the store was recovered meanwhile, and its catalog");
            return Err(Error::new("open source", ErrorKind::Unavailable { what }));
        }
        if let Some(known) = sources.get(&name) {
            let version = known.defined.load().version;
            if version >= defined.version {
                return Ok(Arc::clone(known));
            }
            // Another source of the same name takes the place of one that was lost.
            if version > 0 || known.is_as(&defined) {
                known.redefine(defined);
                self.supply(known);
                return Ok(Arc::clone(known));
            }
        }
        // One that runs is not stopped; it is warned about for years before.
        check_life(&name, &defined.plan, self.around.clock.unix_ms())
            .map_err(|kind| Error::new("open source", kind))?;
        let remembered = self.remembered(definition);
        let source = SourceInner::new(&name, defined, &remembered, Arc::clone(&self.around))?;
        let source = Arc::new(source);
        self.supply(&source);
        sources.insert(name, Arc::clone(&source));
        Ok(source)
    }

    /// The store was recovered, and its definitions count as it has them, whatever their numbers: what runs by one that
    /// was lost, would hand out by it what others hand out by theirs. One that the store does not have any more, or has as
    /// another source, is off.
    pub(super) fn take_as_stored(&self, catalog: &Catalog) {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        self.histories.fetch_add(1, Ordering::SeqCst);
        for (name, known) in sources.iter() {
            let stored = catalog.definitions.iter().find(|stored| stored.name == *name);
            let defined = stored.and_then(|stored| self.defined(stored).ok());
            match defined.filter(|defined| known.is_as(defined)) {
                Some(defined) => known.redefine(defined),
                None => {
                    tracing::error!(source = %name, "the recovered store has no such source: it is off here");
                    known.lose();
                }
            }
            known.agreed(0);
            self.supply(known);
        }
    }

    /// Has a source of several stores served by them.
    fn supply(&self, source: &SourceInner) {
        let defined = source.defined.load();
        if let Back::Several(several) = &source.back {
            self.beside.supply(&self.around, several, (&defined.spec, &defined.plan));
        }
    }

    /// The definition as it is listed, with how its stores stand.
    pub(super) fn described(&self, definition: &Definition) -> Result<SourceInfo> {
        let known = self.known(&definition.name);
        let shares = match known.as_ref().map(|source| &source.back) {
            Some(Back::Several(several)) => several.stats(),
            _ => Vec::new(),
        };
        Ok(SourceInfo { shares, ..info(definition)? })
    }

    /// Which sources have no store that can serve, in sentences.
    pub(super) fn without_stores(&self) -> Vec<Reason> {
        let said = |source: Arc<SourceInner>| {
            let Back::Several(several) = &source.back else { return None };
            let stores = several.stats();
            let enabled = source.defined.load().state == SourceState::Enabled;
            if !enabled || stores.iter().any(|store| store.serves) {
                return None;
            }
            let said = stores.into_iter().map(|store| {
                format!(
                    "{}: {}",
                    store.store,
                    store.trouble.unwrap_or_else(|| "not asked yet".into())
                )
            });
            let said = said.collect::<Vec<_>>().join("; ");
            let message = format!("no store of source {} serves ({said})", source.name);
            Some(Reason::new("unavailable", message))
        };
        self.known_sources().into_iter().filter_map(said).collect()
    }

    /// The sources whose layouts have run out, in sentences.
    pub(super) fn without_years(&self) -> Vec<Reason> {
        let now = self.around.clock.unix_ms();
        let said = |source: Arc<SourceInner>| {
            let defined = source.defined.load();
            let Plan::Snowflake(plan) = &defined.plan else { return None };
            let end = plan.layout.end();
            if defined.state != SourceState::Enabled || now < end {
                return None;
            }
            let message = format!(
                "the layout of source {} ended at {}, and has no ID left: define another source, and switch \
                 this one off",
                source.name,
                Rfc3339(end)
            );
            Some(Reason::new("epoch_spent", message))
        };
        self.known_sources().into_iter().filter_map(said).collect()
    }

    /// A definition was changed by us: the running source, if any, follows at once.
    pub(super) fn changed(&self, definition: &Definition, history: u64) -> Result<SourceInfo> {
        let info = info(definition)?;
        self.lookup.changed();
        if self.known(&definition.name).is_some() {
            self.take_up(definition, history)?;
            self.around.catalog_stale();
        }
        Ok(info)
    }

    /// Reads the catalog, and brings all running sources up to date.
    pub(super) async fn read_catalog(&self) -> Result<Catalog> {
        let history = self.history();
        let catalog = self.around.call("read catalog", self.around.store.list()).await?;
        for definition in &catalog.definitions {
            let is_newer =
                |known: Arc<SourceInner>| known.defined.load().version < definition.version;
            if self.known(&definition.name).is_some_and(is_newer)
                && let Err(error) = self.take_up(definition, history)
            {
                tracing::error!(source = %definition.name, error = %chain(&error), "an altered source cannot be used here");
            }
        }
        Ok(catalog)
    }

    pub(super) async fn check_new_namespace_unique(
        &self,
        name: &str,
        spec: &SourceSpec,
    ) -> Result<()> {
        match spec.check() {
            Ok(Plan::Snowflake(plan)) if plan.unique == Unique::Namespace => {
                self.check_agrees(name, &plan).await
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn check_namespace_unique(&self, source: &SourceInner) -> Result<()> {
        let defined = source.defined.load_full();
        match &defined.plan {
            // A source that is defined later is refused if it disagrees: the store is asked once a definition.
            Plan::Snowflake(plan)
                if plan.unique == Unique::Namespace && !source.agrees(defined.version) =>
            {
                match self.check_agrees(&source.name, plan).await {
                    // They agreed when they were minted from.
                    Err(error) if self.does_without(&error) => Ok(()),
                    agreed => agreed.inspect(|()| source.agreed(defined.version)),
                }
            }
            _ => Ok(()),
        }
    }

    /// Sources that share one generator must agree on what it makes. Sources that disagree are refused, on
    /// both sides: which of two was first is not known for certain.
    pub(super) async fn check_agrees(
        &self,
        name: &str,
        plan: &crate::spec::SnowflakePlan,
    ) -> Result<()> {
        let catalog = self.around.call("read catalog", self.reads.list()).await?;
        for other in &catalog.definitions {
            if other.name == name || other.state == SourceState::Deleted {
                continue;
            }
            let Ok(Plan::Snowflake(theirs)) = read_spec(other)?.check() else { continue };
            let shares = theirs.unique == Unique::Namespace;
            if shares && (Make::of(&theirs) != Make::of(plan) || theirs.disguise != plan.disguise) {
                let kind = ErrorKind::Conflict {
                    what: format!(
                        "sources {name} and {} are unique in the namespace, so they share one \
                         generator and must agree on layout, on_rollback, burst, sequence_start and \
                         disguise",
                        other.name
                    ),
                    stored: other.spec.clone(),
                    wanted: format!("{:?}", plan.layout),
                };
                return Err(Error::new("define", kind));
            }
        }
        Ok(())
    }

    /// The store may hand out again what is in stock: it is used by nobody.
    pub(super) fn drop_stocks(&self) {
        // Held, so that no definition is changed meanwhile: the source that goes on has the newest.
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        for source in sources.values() {
            match &source.back {
                Back::Segment(segment) => segment.drop_stock(),
                Back::Snowflake(back) => back.drop_stock(&self.around),
                // Those of other stores are their nodes'; the rest has none.
                _ => {}
            }
        }
    }

    /// Ends queues and chains; answers what nobody has used.
    pub(super) fn close_stocks(&self) -> Vec<Unused> {
        let close = |source: Arc<SourceInner>| match &source.back {
            Back::Segment(segment) => segment.now().close(),
            Back::Snowflake(back) => {
                back.queue.close();
                None
            }
            Back::Several(several) => {
                several.close();
                None
            }
            _ => None,
        };
        self.known_sources().into_iter().filter_map(close).collect()
    }
}
