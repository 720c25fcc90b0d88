//! The verbs on sources: the catalog, and the numbers of segment sources.

use async_trait::async_trait;

use super::rows::{Access, FirstRow, NamespaceRow, Rows, RowsResult, VerbResult};
use super::run_verb::RunVerb;
use crate::error::{Error, Result, Verb};
use crate::model::catalog::{
    self, Catalog, CatalogStep, Definition, NewDefinition, Restripe, SourceState, decide_alter,
    decide_define, decide_restripe, decide_state,
};
use crate::model::segment::{GiveBack, Reserve, Segment, SegmentRow, decide_give_back};

pub(super) struct ReserveVerb<'a> {
    pub(super) reserve: &'a Reserve,
}

#[async_trait]
impl RunVerb for ReserveVerb<'_> {
    /// The segment, with its `writes` not yet set.
    type Output = Segment;
    const HAS_PRIORITY: bool = false;

    fn verb(&self) -> Verb {
        Verb::Reserve
    }

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

pub(super) struct GiveBackVerb<'a> {
    pub(super) back: &'a GiveBack,
}

#[async_trait]
impl RunVerb for GiveBackVerb<'_> {
    type Output = u64;

    fn verb(&self) -> Verb {
        Verb::GiveBack
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, u64> {
        let stored = existing(rows, &self.back.source).await?;
        let segment = decide_give_back(&stored.segment, self.back)?;
        rows.put_definition(&Definition { segment, ..stored }).await?;
        Ok((segment.version, true))
    }
}

/// Change of a definition.
pub(super) enum Changed<'a> {
    Define(&'a NewDefinition),
    Alter(&'a NewDefinition, Option<u64>),
    State(SourceState),
}

pub(super) struct ChangeVerb<'a> {
    pub(super) name: &'a str,
    pub(super) change: Changed<'a>,
}

impl ChangeVerb<'_> {
    fn decide(&self, stored: Option<&Definition>) -> Result<CatalogStep> {
        match self.change {
            Changed::Define(new) => decide_define(stored, new),
            Changed::Alter(new, if_version) => decide_alter(stored, new, if_version),
            Changed::State(state) => decide_state(stored, self.name, state),
        }
    }
}

#[async_trait]
impl RunVerb for ChangeVerb<'_> {
    type Output = Definition;

    fn verb(&self) -> Verb {
        match self.change {
            Changed::Define(_) => Verb::Define,
            Changed::Alter(..) => Verb::Alter,
            Changed::State(_) => Verb::SetState,
        }
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Definition> {
        let stored = rows.definition(self.name).await?;
        match (self.decide(stored.as_ref())?, stored) {
            (CatalogStep::Same, Some(stored)) => Ok((stored, false)),
            (CatalogStep::Same, None) => {
                let message = format!(
                    "internal error: source {:?} does not exist, so it has no definition to keep; \
                     please report it",
                    self.name
                );
                Err(Error::internal(message).into())
            }
            (CatalogStep::Write { spec, identity, state }, stored) => {
                let segment = stored.map_or(SegmentRow::NEW, |stored| stored.segment);
                let name = self.name.to_owned();
                let definition = Definition { name, spec, identity, version: 0, state, segment };
                Ok((write(rows, definition).await?, true))
            }
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

pub(super) struct RestripeVerb<'a> {
    pub(super) restripe: &'a Restripe,
}

#[async_trait]
impl RunVerb for RestripeVerb<'_> {
    type Output = Definition;

    fn verb(&self) -> Verb {
        Verb::Restripe
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Definition> {
        let stored = rows.definition(&self.restripe.new.name).await?;
        let definition = decide_restripe(stored.as_ref(), self.restripe)?;
        Ok((write(rows, definition).await?, true))
    }
}

pub(super) struct GetVerb<'a> {
    pub(super) name: &'a str,
}

#[async_trait]
impl RunVerb for GetVerb<'_> {
    type Output = Definition;
    const ACCESS: Access = Access::Read;

    fn verb(&self) -> Verb {
        Verb::Get
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Definition> {
        Ok((existing(rows, self.name).await?, false))
    }
}

/// Returns the definition, unless it was never made or is deleted.
async fn existing<R: Rows>(rows: &mut R, name: &str) -> RowsResult<R, Definition> {
    let stored = rows.definition(name).await?;
    Ok(catalog::existing(stored.as_ref(), name)?.clone())
}

pub(super) struct ListVerb;

#[async_trait]
impl RunVerb for ListVerb {
    type Output = Catalog;
    const ACCESS: Access = Access::Read;

    fn verb(&self) -> Verb {
        Verb::List
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Catalog> {
        let mut definitions = rows.definitions().await?;
        definitions.sort_by(|one, other| one.name.cmp(&other.name));
        Ok((Catalog { version: rows.namespace().await?.catalog_version, definitions }, false))
    }
}
