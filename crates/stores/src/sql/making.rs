//! Creation and upgrade of the tables of a server.

use snowmint_coord::verbs::Failure;
use snowmint_coord::{Error, Result, random};

use super::result::{SqlResult, damaged};
use super::session::{Session, Upsert};
use super::value::{Value, Values};

/// Statements that each version of the tables adds to the one before. Never change a released
/// entry; append, and only changes that an older server still running can ignore.
pub(crate) type Steps = &'static [&'static [&'static str]];

/// Names of all tables, as a list in a query.
pub(crate) const TABLE_NAMES: &str = "'snowmint_schema', 'snowmint_store', 'snowmint_namespace',
    'snowmint_member', 'snowmint_pool', 'snowmint_slot', 'snowmint_source', 'snowmint_note'";

/// Returns the number that a query yields.
pub(crate) async fn number<S: Session>(session: &mut S, query: &str) -> SqlResult<u64> {
    one(session, query).await?.number()
}

/// Returns the text that a query yields.
pub(crate) async fn text<S: Session>(session: &mut S, query: &str) -> SqlResult<String> {
    one(session, query).await?.text()
}

/// Returns the row that a query yields.
async fn one<S: Session>(session: &mut S, query: &str) -> SqlResult<Values> {
    let mut rows = session.fetch(query.to_owned(), Vec::new()).await.map_err(Failure::Backend)?;
    let row = rows.pop().ok_or_else(|| damaged("schema query returned 0 rows, expected 1"))?;
    Ok(Values::of(row))
}

/// Returns the version of the tables; 0 when there are none. The query `tables` counts those named
/// `snowmint_schema`.
pub(crate) async fn version<S: Session>(session: &mut S, tables: &str) -> SqlResult<u64> {
    if number(session, tables).await? == 0 {
        return Ok(0);
    }
    let query = "SELECT COALESCE(MAX(version), 0) FROM snowmint_schema";
    number(session, query).await
}

/// Returns the version of tables after all steps.
pub(crate) fn newest(steps: Steps) -> u64 {
    // A handful of steps, from a literal of each store.
    u64::try_from(steps.len()).unwrap_or(u64::MAX)
}

/// Returns the steps that tables of version `found` lack.
pub(crate) fn missing(label: &str, found: u64, steps: Steps) -> Result<Steps> {
    let known = usize::try_from(found).ok().and_then(|done| steps.get(done..));
    known.ok_or_else(|| too_new(label, found, newest(steps)))
}

/// Returns the error for tables that are not of the newest version, when none may be made or
/// changed.
pub(crate) fn not_brought(label: &str, found: u64, steps: Steps) -> Error {
    let newest = newest(steps);
    match found {
        0 => crate::opening::not_made(label),
        found if found > newest => too_new(label, found, newest),
        found => Error::unsupported(format!(
            "{label} has tables of version {found}, current {newest}; start a server once to \
             upgrade them"
        )),
    }
}

fn too_new(label: &str, found: u64, newest: u64) -> Error {
    Error::unsupported(format!(
        "{label} has tables of version {found}, maximum {newest}; update this program"
    ))
}

/// Returns the error for a database whose tables are gone.
pub(crate) fn tables_lost(label: &str) -> Error {
    Error::store_mismatch(format!(
        "{label} has lost its tables; restore it, or move the new store forward (snowmint worker \
         fast-forward)"
    ))
}

/// Returns the error for a database without the store's row, as during the load of a dump, which
/// fills one table after the other.
pub(crate) fn row_lost() -> Error {
    Error::store_mismatch(
        "the store's row is missing from the database; restore it, or move the new store forward \
         (snowmint worker fast-forward)",
    )
}

/// Returns the error for tables that lack a column while the store is in use: a dump of an older
/// version was restored.
pub(crate) fn tables_outdated(label: &str) -> Error {
    Error::unsupported(format!(
        "{label} has tables of an older version, as from a restored dump; start a server to \
         upgrade them"
    ))
}

/// Runs the missing steps. The caller excludes other processes meanwhile.
pub(crate) async fn bring_to_newest<S: Session>(
    session: &mut S,
    label: &str,
    steps: Steps,
    found: u64,
) -> SqlResult<()> {
    let missing = missing(label, found, steps)?;
    let statements: Vec<String> =
        missing.iter().flat_map(|step| step.iter().map(|&statement| statement.into())).collect();
    for statement in statements {
        session.run(statement, Vec::new()).await.map_err(Failure::Backend)?;
    }
    let keep = match S::UPSERT {
        Upsert::OnConflict => "ON CONFLICT (only_one) DO NOTHING",
        Upsert::OnDuplicateKey => "ON DUPLICATE KEY UPDATE only_one = 1",
    };
    let id = random::incarnation()?;
    let store = format!(
        "INSERT INTO snowmint_store (only_one, id, writes, row_changes) VALUES (1, ?, 0, 0) {keep}"
    );
    session.run(store, vec![Value::text(id.to_string())]).await.map_err(Failure::Backend)?;
    let schema = format!("INSERT INTO snowmint_schema (only_one, version) VALUES (1, 0) {keep}");
    session.run(schema, Vec::new()).await.map_err(Failure::Backend)?;
    let update = "UPDATE snowmint_schema SET version = ?".to_owned();
    session
        .run(update, vec![Value::exact("version", newest(steps))?])
        .await
        .map_err(Failure::Backend)?;
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Checks that the list names each table that the steps make.
    pub(crate) fn lists_all_tables(steps: Steps) {
        let mut made = 0;
        for statement in steps.iter().copied().flatten() {
            if statement.starts_with("CREATE TABLE") {
                let mut words = statement.split_whitespace();
                let name = words.find(|word| word.starts_with("snowmint_")).unwrap();
                assert!(TABLE_NAMES.contains(&format!("'{name}'")), "{name}");
                made += 1;
            }
        }
        assert_eq!(made, TABLE_NAMES.split(',').count());
    }
}
