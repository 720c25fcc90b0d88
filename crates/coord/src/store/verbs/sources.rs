//! The verbs on sources: the catalog, and the numbers of segment sources.

use async_trait::async_trait;

use super::BackendStore;
use super::rows::{Backend, FirstRow, NamespaceRow, Rows, RowsResult, VerbResult};
use super::run_verb::{RunVerb, steps};
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

async fn give_back<R: Rows>(rows: &mut R, back: &GiveBack) -> VerbResult<R, u64> {
    let stored = existing(rows, &back.source).await?;
    let segment = decide_give_back(&stored.segment, back)?;
    rows.put_definition(&Definition { segment, ..stored }).await?;
    Ok((segment.version, true))
}

async fn define<R: Rows>(rows: &mut R, new: &NewDefinition) -> VerbResult<R, Definition> {
    let stored = rows.definition(&new.name).await?;
    let step = decide_define(stored.as_ref(), new)?;
    take(rows, &new.name, stored, step).await
}

async fn alter<R: Rows>(
    rows: &mut R,
    new: &NewDefinition,
    if_version: Option<u64>,
) -> VerbResult<R, Definition> {
    let stored = rows.definition(&new.name).await?;
    let step = decide_alter(stored.as_ref(), new, if_version)?;
    take(rows, &new.name, stored, step).await
}

async fn set_state<R: Rows>(
    rows: &mut R,
    name: &str,
    state: SourceState,
) -> VerbResult<R, Definition> {
    let stored = rows.definition(name).await?;
    let step = decide_state(stored.as_ref(), name, state)?;
    take(rows, name, stored, step).await
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

async fn restripe<R: Rows>(rows: &mut R, restripe: &Restripe) -> VerbResult<R, Definition> {
    let stored = rows.definition(&restripe.new.name).await?;
    let definition = decide_restripe(stored.as_ref(), restripe)?;
    Ok((write(rows, definition).await?, true))
}

async fn get<R: Rows>(rows: &mut R, name: &str) -> VerbResult<R, Definition> {
    Ok((existing(rows, name).await?, false))
}

/// Returns the definition, unless it was never made or is deleted.
async fn existing<R: Rows>(rows: &mut R, name: &str) -> RowsResult<R, Definition> {
    let stored = rows.definition(name).await?;
    Ok(catalog::existing(stored.as_ref(), name)?.clone())
}

async fn list<R: Rows>(rows: &mut R) -> VerbResult<R, Catalog> {
    let mut definitions = rows.definitions().await?;
    definitions.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((Catalog { version: rows.namespace().await?.catalog_version, definitions }, false))
}

steps! {
    GiveBack: fn give_back(back: &'a GiveBack) -> u64;
    Define: fn define(new: &'a NewDefinition) -> Definition;
    Alter: fn alter(new: &'a NewDefinition, if_version: Option<u64>) -> Definition;
    Restripe: fn restripe(restripe: &'a Restripe) -> Definition;
    SetState: fn set_state(name: &'a str, state: SourceState) -> Definition;
    Get: fn get(name: &'a str) -> Definition;
    List: fn list() -> Catalog;
}

impl<B: Backend> BackendStore<B> {
    pub(super) async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        if let Some(segment) = self.try_fast_reserve(reserve).await? {
            return Ok(segment);
        }
        let (segment, writes) = self.run(ReserveVerb { reserve }).await?;
        Ok(Segment { writes, ..segment })
    }
}
