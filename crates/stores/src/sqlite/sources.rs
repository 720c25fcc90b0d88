//! The verbs on sources: the catalog, and the numbers of segment sources.

use snowmint_coord::catalog::{self, CatalogStep};
use snowmint_coord::segment::{SegmentRow, decide_give_back, decide_reserve};
use snowmint_coord::{
    Catalog, Definition, ErrorKind, GiveBack, Mark, Reserve, Segment, SourceState,
};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::failure::Failure;
use super::tx::{Step, Tx, integer, mark, number};

impl Tx {
    pub(super) async fn reserve(&mut self, reserve: &Reserve) -> Step<Segment> {
        let name = &reserve.source;
        let stored = self.definition(name).await?;
        let stored = catalog::usable(stored.as_ref(), name, reserve.definition_version)?;
        let before = stored.segment;
        let after = decide_reserve(name, &before, reserve.length)?;
        self.write_numbers(name, &after).await?;
        let catalog_version = self.catalog_version().await?;
        Ok((after.taken(&before, catalog_version, self.writes_after()), true))
    }

    pub(super) async fn give_back(&mut self, back: &GiveBack) -> Step<u64> {
        let stored = self.existing(&back.source).await?;
        let after = decide_give_back(&stored.segment, back)?;
        self.write_numbers(&back.source, &after).await?;
        Ok((after.version, true))
    }

    pub(super) async fn forward_source(&mut self, name: &str, to: Mark) -> Result<(), Failure> {
        let Some(stored) = self.definition(name).await? else {
            return Err(ErrorKind::NotFound { what: format!("source {name:?}") }.into());
        };
        self.write_numbers(name, &stored.segment.forwarded(to)).await
    }

    /// Does to the stored definition what `decide` says.
    pub(super) async fn change(
        &mut self,
        name: &str,
        decide: impl FnOnce(Option<&Definition>) -> Result<CatalogStep, ErrorKind>,
    ) -> Step<Definition> {
        let stored = self.definition(name).await?;
        let step = decide(stored.as_ref())?;
        match (step, stored) {
            (CatalogStep::Same, Some(stored)) => Ok((stored, false)),
            (CatalogStep::Same, None) => {
                let what = format!("source {name} is the same as nothing");
                Err(ErrorKind::Internal { what }.into())
            }
            (CatalogStep::Write { spec, identity, state }, stored) => {
                let definition = Definition {
                    name: name.to_owned(),
                    spec,
                    identity,
                    version: self.raise_catalog_version().await?,
                    state,
                    segment: stored.map_or(SegmentRow::NEW, |stored| stored.segment),
                };
                self.write_definition(&definition).await?;
                Ok((definition, true))
            }
        }
    }

    /// The definition, unless it was never made or has been deleted.
    pub(super) async fn existing(&mut self, name: &str) -> Result<Definition, Failure> {
        let stored = self.definition(name).await?;
        Ok(catalog::existing(stored.as_ref(), name)?.clone())
    }

    pub(super) async fn list(&mut self) -> Result<Catalog, Failure> {
        let rows = self
            .rows(
                sqlx::query(
                    "SELECT name, spec, identity, version, state, mark, floor, segment_version
             FROM snowmint_source WHERE namespace = ? ORDER BY name",
                )
                .bind(self.namespace()),
            )
            .await?;
        let definitions = rows.iter().map(definition).collect::<Result<_, Failure>>()?;
        Ok(Catalog { version: self.catalog_version().await?, definitions })
    }

    pub(super) async fn catalog_version(&mut self) -> Result<u64, Failure> {
        let row = self
            .row(
                sqlx::query("SELECT catalog_version FROM snowmint_namespace WHERE namespace = ?")
                    .bind(self.namespace()),
            )
            .await?;
        row.map_or(Ok(0), |row| number(&row, 0))
    }

    async fn raise_catalog_version(&mut self) -> Result<u64, Failure> {
        let row = self
            .one(
                sqlx::query(
                    "INSERT INTO snowmint_namespace (namespace, catalog_version, changes) VALUES (?, 1, 1)
             ON CONFLICT DO UPDATE SET catalog_version = catalog_version + 1,
                changes = changes + 1
             RETURNING catalog_version",
                )
                .bind(self.namespace()),
            )
            .await?;
        self.count_changes(1);
        number(&row, 0)
    }

    async fn definition(&mut self, name: &str) -> Result<Option<Definition>, Failure> {
        let row = self
            .row(
                sqlx::query(
                    "SELECT name, spec, identity, version, state, mark, floor, segment_version
             FROM snowmint_source WHERE namespace = ? AND name = ?",
                )
                .bind(self.namespace())
                .bind(name),
            )
            .await?;
        row.as_ref().map(definition).transpose()
    }

    async fn write_definition(&mut self, definition: &Definition) -> Result<(), Failure> {
        let state = match definition.state {
            SourceState::Enabled => "enabled",
            SourceState::Disabled => "disabled",
            SourceState::Deleted => "deleted",
        };
        self.change_rows(sqlx::query(
            "INSERT INTO snowmint_source (namespace, name, spec, identity, version, state, mark,
                floor, segment_version, changes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1)
             ON CONFLICT DO UPDATE SET spec = ?3, version = ?5, state = ?6,
                changes = changes + 1",
        )
        .bind(self.namespace())
        .bind(&definition.name)
        .bind(&definition.spec)
        .bind(&definition.identity)
        .bind(integer("version", definition.version)?)
        .bind(state)
        .bind(integer("mark", definition.segment.mark.get())?)
        .bind(integer("floor", definition.segment.floor.get())?)
        .bind(integer("segment version", definition.segment.version)?)).await?;
        Ok(())
    }

    async fn write_numbers(&mut self, name: &str, row: &SegmentRow) -> Result<(), Failure> {
        self.change_rows(
            sqlx::query(
                "UPDATE snowmint_source SET mark = ?, floor = ?, segment_version = ?,
                changes = changes + 1
             WHERE namespace = ? AND name = ?",
            )
            .bind(integer("mark", row.mark.get())?)
            .bind(integer("floor", row.floor.get())?)
            .bind(integer("segment version", row.version)?)
            .bind(self.namespace())
            .bind(name),
        )
        .await?;
        Ok(())
    }
}

fn definition(row: &SqliteRow) -> Result<Definition, Failure> {
    let state = match row.try_get(4)? {
        "enabled" => SourceState::Enabled,
        "disabled" => SourceState::Disabled,
        "deleted" => SourceState::Deleted,
        other => return Err(Failure::Damaged(format!("{other:?} as the state of a source"))),
    };
    Ok(Definition {
        name: row.try_get(0)?,
        spec: row.try_get(1)?,
        identity: row.try_get(2)?,
        version: number(row, 3)?,
        state,
        segment: SegmentRow { mark: mark(row, 5)?, floor: mark(row, 6)?, version: number(row, 7)? },
    })
}
