//! Rows of sources.

use snowmint_coord::segment::SegmentRow;
use snowmint_coord::{Definition, SourceState};

use super::Table;
use super::result::{SqlResult, damaged};
use super::value::{Value, Values};

pub(super) const TABLE: Table = Table {
    name: "snowmint_source",
    keys: &["name"],
    columns: &["spec", "identity", "version", "state", "mark", "floor", "segment_version"],
    counted: true,
};

pub(super) const SELECT: &str =
    "SELECT name, spec, identity, version, state, mark, floor, segment_version
    FROM snowmint_source WHERE namespace = ?";

pub(super) fn values(definition: &Definition) -> SqlResult<Vec<Value>> {
    let state = match definition.state {
        SourceState::Enabled => "enabled",
        SourceState::Disabled => "disabled",
        SourceState::Deleted => "deleted",
    };
    let SegmentRow { mark, floor, version } = definition.segment;
    Ok(vec![
        Value::text(&definition.name),
        Value::text(&definition.spec),
        Value::text(&definition.identity),
        Value::exact("version", definition.version)?,
        Value::text(state),
        Value::exact("mark", mark.get())?,
        Value::exact("floor", floor.get())?,
        Value::exact("segment version", version)?,
    ])
}

pub(super) fn row(mut row: Values) -> SqlResult<Definition> {
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
