//! Rows of sources.

use snowmint_coord::segment::SegmentRow;
use snowmint_coord::{Definition, SourceState};

use super::result::{SqlResult, damaged};
use super::session::Session;
use super::value::{Value, Values};
use super::{Table, Tx};

const SOURCES: Table = Table {
    name: "snowmint_source",
    keys: &["name"],
    columns: &["spec", "identity", "version", "state", "mark", "floor", "segment_version"],
    counted: true,
};

const SELECT: &str = "SELECT name, spec, identity, version, state, mark, floor, segment_version
    FROM snowmint_source WHERE namespace = ?";

impl<S: Session> Tx<S> {
    pub(super) async fn read_definition(&mut self, name: &str) -> SqlResult<Option<Definition>> {
        let query = format!("{SELECT} AND name = ?");
        let row = self.fetch_one(query, vec![self.named(), Value::text(name)]).await?;
        row.map(definition).transpose()
    }

    pub(super) async fn read_definitions(&mut self) -> SqlResult<Vec<Definition>> {
        let rows = self.fetch(SELECT, vec![self.named()]).await?;
        rows.into_iter().map(definition).collect()
    }

    pub(super) async fn write_definition(&mut self, definition: &Definition) -> SqlResult<()> {
        let state = match definition.state {
            SourceState::Enabled => "enabled",
            SourceState::Disabled => "disabled",
            SourceState::Deleted => "deleted",
        };
        let SegmentRow { mark, floor, version } = definition.segment;
        let values = vec![
            Value::text(&definition.name),
            Value::text(&definition.spec),
            Value::text(&definition.identity),
            Value::exact("version", definition.version)?,
            Value::text(state),
            Value::exact("mark", mark.get())?,
            Value::exact("floor", floor.get())?,
            Value::exact("segment version", version)?,
        ];
        self.upsert(&SOURCES, vec![values]).await
    }
}

fn definition(mut row: Values) -> SqlResult<Definition> {
    let (name, spec, identity) = (row.text()?, row.text()?, row.text()?);
    let version = row.number()?;
    let state = match row.text()?.as_str() {
        "enabled" => SourceState::Enabled,
        "disabled" => SourceState::Disabled,
        "deleted" => SourceState::Deleted,
        other => return Err(damaged(format!("source state is {other:?}, unknown"))),
    };
    let segment = SegmentRow { mark: row.mark()?, floor: row.mark()?, version: row.number()? };
    Ok(Definition { name, spec, identity, version, state, segment })
}
