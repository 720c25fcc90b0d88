//! What the catalog says of sources, and how the running ones follow it.

use std::sync::{Arc, PoisonError};

use super::{Core, pool_of};
use crate::catalog::{Catalog, Definition, NewDefinition, SourceState};
use crate::error::{Error, ErrorKind, Result};
use crate::forecast::check_life;
use crate::origin::origin_of;
use crate::pool::check_group;
use crate::segment::GiveBack;
use crate::sources::{Back, Defined, Form, Make, SourceInner, check_value, compare_check};
use crate::spec::{Plan, SegmentPlan, SourceSpec, Unique};

/// A source as the catalog has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// Its name.
    pub name: String,
    /// Its keys, every default written out.
    pub spec: SourceSpec,
    /// Whether it may be used.
    pub state: SourceState,
    /// The catalog's version when it last changed.
    pub version: u64,
    /// The lowest number of a segment source that nobody was given; none when they are spent.
    pub next: Option<u64>,
}

/// What the catalog has.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The sources, by name.
    pub sources: Vec<SourceInfo>,
    /// Those that this version cannot read, such as what a newer one has defined, and why.
    pub unreadable: Vec<(String, Error)>,
}

impl Listed {
    pub(super) fn of(catalog: &Catalog) -> Self {
        let mut listed = Self { sources: Vec::new(), unreadable: Vec::new() };
        for definition in &catalog.definitions {
            if definition.state == SourceState::Deleted {
                continue;
            }
            match info(definition) {
                Ok(info) => listed.sources.push(info),
                Err(error) => listed.unreadable.push((definition.name.clone(), error)),
            }
        }
        listed
    }
}

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
        Ok(Plan::Segment(plan)) if plan.serial.is_none() => {
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
    ) -> Result<(NewDefinition, bool)> {
        let invalid =
            |error: crate::spec::SpecError| Error::invalid(op, format!("source {name}: {error}"));
        let plan = spec.check().map_err(invalid)?;
        self.check_origin(name, &plan)?;
        check_life(name, &plan, self.around.clock.unix_ms())
            .map_err(|kind| Error::new(op, kind))?;
        if let Plan::Snowflake(plan) = &plan {
            let pool = pool_of(plan, self.settings.reuse);
            check_group(&pool, self.around.store.group_max())
                .map_err(|kind| Error::new(op, kind))?;
        }
        let mut canonical = spec.canonical().map_err(invalid)?;
        if let Some(disguise) = &mut canonical.disguise
            && disguise.check.is_none()
        {
            disguise.check = check_value(name, &plan, &self.settings.keyrings)?;
        }
        let enabled = canonical.is_enabled();
        // Whether it is enabled is a state of its own in the catalog.
        canonical.enabled = None;
        let identity = canonical.identity().map_err(invalid)?;
        let spec = serde_json::Value::from(canonical.to_json()).to_string();
        Ok((NewDefinition { name: name.into(), spec, identity }, enabled))
    }

    /// Whoever cannot draw from where a source draws must not mint from it.
    fn check_origin(&self, name: &str, plan: &Plan) -> Result<()> {
        match plan {
            Plan::Segment(SegmentPlan { origin: Some(origin), .. }) => {
                origin_of(&self.settings.origins, name, origin).map(drop)
            }
            _ => Ok(()),
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
        compare_check(&definition.name, spec.disguise.as_ref(), &plan, keys)?;
        let form = Form::new(&definition.name, &plan, keys)?;
        Ok(Defined { spec, plan, form, state: definition.state, version: definition.version })
    }

    /// Makes the running source of a definition, or brings the one that runs up to date.
    pub(super) fn take_up(&self, definition: Definition) -> Result<Arc<SourceInner>> {
        let defined = self.defined(&definition)?;
        let name = definition.name;
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sources.get(&name) {
            if known.defined.load().version < defined.version {
                known.redefine(defined);
            }
            return Ok(Arc::clone(known));
        }
        // One that runs is not stopped; it is warned about for years before.
        check_life(&name, &defined.plan, self.around.clock.unix_ms())
            .map_err(|kind| Error::new("open source", kind))?;
        let seen_end = self.segments_seen.get(&name).map_or(0, |mark| mark.get());
        let source = SourceInner::new(&name, defined, seen_end, Arc::clone(&self.around))?;
        let source = Arc::new(source);
        sources.insert(name, Arc::clone(&source));
        Ok(source)
    }

    /// A definition was changed by us: the running source, if any, follows at once.
    pub(super) fn changed(&self, definition: Definition) -> Result<SourceInfo> {
        let info = info(&definition)?;
        self.lookup.changed();
        if self.known(&definition.name).is_some() {
            self.take_up(definition)?;
            self.around.catalog_stale();
        }
        Ok(info)
    }

    /// Reads the catalog, and brings all running sources up to date.
    pub(super) async fn read_catalog(&self) -> Result<Catalog> {
        let catalog = self.around.call("read catalog", self.around.store.list()).await?;
        for definition in &catalog.definitions {
            if self.known(&definition.name).is_some()
                && let Err(error) = self.take_up(definition.clone())
            {
                tracing::error!(source = %definition.name, %error, "an altered source cannot be used here");
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
            Plan::Snowflake(plan) if plan.unique == Unique::Namespace => {
                self.check_agrees(&source.name, plan).await
            }
            _ => Ok(()),
        }
    }

    /// Sources that share one generator must agree on what it makes. Whoever disagrees is refused, on
    /// both sides: which of two was first is not known for certain.
    pub(super) async fn check_agrees(
        &self,
        name: &str,
        plan: &crate::spec::SnowflakePlan,
    ) -> Result<()> {
        let catalog = self.around.call("read catalog", self.around.store.list()).await?;
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

    /// Ends queues and chains; answers what the store may have back.
    pub(super) fn close_stocks(&self) -> Vec<GiveBack> {
        let close = |source: Arc<SourceInner>| match &source.back {
            Back::Segment(segment) => segment.now().close(),
            Back::Snowflake(back) => {
                back.queue.close();
                None
            }
            _ => None,
        };
        self.known_sources().into_iter().filter_map(close).collect()
    }

    /// The store has taken the end of a chain back.
    pub(super) fn gave_back(&self, back: &GiveBack) {
        if let Some(source) = self.known(&back.source)
            && let Back::Segment(segment) = &source.back
        {
            segment.now().gave_back(back.last.saturating_sub(back.first).saturating_add(1));
        }
    }
}
