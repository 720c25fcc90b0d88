//! The verbs on sources: the catalog, and the numbers of segment sources.

use async_trait::async_trait;

use super::BackendStore;
use super::rows::{Backend, FirstRow, NamespaceRow, Rows, RowsResult, VerbResult};
use super::run_verb::RunVerb;
use crate::error::{Error, Result, Verb};
use crate::model::catalog::{
    self, Catalog, CatalogStep, Definition, NewDefinition, Restripe, SourceState, decide_alter,
    decide_define, decide_restripe, decide_state,
};
use crate::model::segment::{GiveBack, Reserve, Segment, SegmentRow, decide_give_back};

struct ReserveVerb<'a> {
    reserve: &'a Reserve,
}

#[async_trait]
impl RunVerb for ReserveVerb<'_> {
    /// The segment, with its `writes` not yet set.
    type Output = Segment;
    const VERB: Verb = Verb::Reserve;
    const HAS_PRIORITY: bool = false;

    fn first_row(&self) -> Option<FirstRow<'_>> {
        Some(FirstRow::Definition(&self.reserve.source))
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Segment> {
        let Reserve { source, definition_version, .. } = self.reserve;
        let stored = rows.definition(source).await?;
        let stored = catalog::usable(stored.as_ref(), source, *definition_version)?;
        let catalog_version = rows.namespace().await?.catalog_version;
        let (after, segment) =
            self.reserve.decide(&stored.segment, rows.clock(), catalog_version)?;
        rows.put_definition(&Definition { segment: after, ..stored.clone() }).await?;
        Ok((segment, true))
    }
}

struct GiveBackVerb<'a> {
    back: &'a GiveBack,
}

#[async_trait]
impl RunVerb for GiveBackVerb<'_> {
    type Output = u64;
    const VERB: Verb = Verb::GiveBack;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, u64> {
        let stored = existing(rows, &self.back.source).await?;
        let segment = decide_give_back(&stored.segment, self.back)?;
        rows.put_definition(&Definition { segment, ..stored }).await?;
        Ok((segment.version, true))
    }
}

struct DefineVerb<'a> {
    new: &'a NewDefinition,
}

#[async_trait]
impl RunVerb for DefineVerb<'_> {
    type Output = Definition;
    const VERB: Verb = Verb::Define;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Definition> {
        let stored = rows.definition(&self.new.name).await?;
        let step = decide_define(stored.as_ref(), self.new)?;
        take(rows, &self.new.name, stored, step).await
    }
}

struct AlterVerb<'a> {
    new: &'a NewDefinition,
    if_version: Option<u64>,
}

#[async_trait]
impl RunVerb for AlterVerb<'_> {
    type Output = Definition;
    const VERB: Verb = Verb::Alter;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Definition> {
        let stored = rows.definition(&self.new.name).await?;
        let step = decide_alter(stored.as_ref(), self.new, self.if_version)?;
        take(rows, &self.new.name, stored, step).await
    }
}

struct SetStateVerb<'a> {
    name: &'a str,
    state: SourceState,
}

#[async_trait]
impl RunVerb for SetStateVerb<'_> {
    type Output = Definition;
    const VERB: Verb = Verb::SetState;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Definition> {
        let stored = rows.definition(self.name).await?;
        let step = decide_state(stored.as_ref(), self.name, self.state)?;
        take(rows, self.name, stored, step).await
    }
}

/// Takes a step of the catalog from the stored definition of this name.
async fn take<R: Rows>(
    rows: &mut R,
    name: &str,
    stored: Option<Definition>,
    step: CatalogStep,
) -> VerbResult<R, Definition> {
    match (step, stored) {
        (CatalogStep::Same, Some(stored)) => Ok((stored, false)),
        (CatalogStep::Same, None) => {
            let message = format!(
                "internal error: source {name:?} does not exist, so it has no definition to keep; \
                 please report it"
            );
            Err(Error::internal(message).into())
        }
        (CatalogStep::Write { spec, identity, state }, stored) => {
            let segment = stored.map_or(SegmentRow::NEW, |stored| stored.segment);
            let name = name.to_owned();
            let definition = Definition { name, spec, identity, version: 0, state, segment };
            Ok((write(rows, definition).await?, true))
        }
    }
}

/// Writes a definition with a new version.
async fn write<R: Rows>(rows: &mut R, definition: Definition) -> RowsResult<R, Definition> {
    let namespace = rows.namespace().await?;
    let version = namespace.catalog_version.saturating_add(1);
    rows.put_namespace(NamespaceRow { catalog_version: version, ..namespace }).await?;
    let definition = Definition { version, ..definition };
    rows.put_definition(&definition).await?;
    Ok(definition)
}

struct RestripeVerb<'a> {
    restripe: &'a Restripe,
}

#[async_trait]
impl RunVerb for RestripeVerb<'_> {
    type Output = Definition;
    const VERB: Verb = Verb::Restripe;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Definition> {
        let stored = rows.definition(&self.restripe.new.name).await?;
        let definition = decide_restripe(stored.as_ref(), self.restripe)?;
        Ok((write(rows, definition).await?, true))
    }
}

struct GetVerb<'a> {
    name: &'a str,
}

#[async_trait]
impl RunVerb for GetVerb<'_> {
    type Output = Definition;
    const VERB: Verb = Verb::Get;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Definition> {
        Ok((existing(rows, self.name).await?, false))
    }
}

/// Returns the definition, unless it was never made or is deleted.
async fn existing<R: Rows>(rows: &mut R, name: &str) -> RowsResult<R, Definition> {
    let stored = rows.definition(name).await?;
    Ok(catalog::existing(stored.as_ref(), name)?.clone())
}

struct ListVerb;

#[async_trait]
impl RunVerb for ListVerb {
    type Output = Catalog;
    const VERB: Verb = Verb::List;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Catalog> {
        let mut definitions = rows.definitions().await?;
        definitions.sort_by(|one, other| one.name.cmp(&other.name));
        Ok((Catalog { version: rows.namespace().await?.catalog_version, definitions }, false))
    }
}

impl<B: Backend> BackendStore<B> {
    pub(super) async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        if let Some(segment) = self.try_fast_reserve(reserve).await? {
            return Ok(segment);
        }
        let (segment, writes) = self.run(ReserveVerb { reserve }).await?;
        Ok(Segment { writes, ..segment })
    }

    pub(super) async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        self.output_of(GiveBackVerb { back }).await
    }

    pub(super) async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        self.output_of(DefineVerb { new }).await
    }

    pub(super) async fn alter(
        &self,
        new: &NewDefinition,
        if_version: Option<u64>,
    ) -> Result<Definition> {
        self.output_of(AlterVerb { new, if_version }).await
    }

    pub(super) async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        self.output_of(RestripeVerb { restripe }).await
    }

    pub(super) async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.output_of(SetStateVerb { name, state }).await
    }

    pub(super) async fn get(&self, name: &str) -> Result<Definition> {
        self.output_of(GetVerb { name }).await
    }

    pub(super) async fn list(&self) -> Result<Catalog> {
        self.output_of(ListVerb).await
    }
}
