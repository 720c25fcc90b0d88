//! How the tables of a server come to be, or to be newer.

use snowmint_coord::verbs::Failure;
use snowmint_coord::{ErrorKind, random};

use super::{Done, Session, Upsert, Value, Values, damaged};

/// What each version of the tables adds to the one before. Never change an entry that was released;
/// append, and only what an older server that goes on meanwhile need not know.
pub(crate) type Steps = &'static [&'static [&'static str]];

/// The number of a query that answers one.
pub(crate) async fn number<S: Session>(session: &mut S, query: &str) -> Done<u64> {
    let mut rows = session.fetch(query.to_owned(), Vec::new()).await.map_err(Failure::Backend)?;
    Values::of(rows.pop().ok_or_else(|| damaged("no answer"))?).number()
}

/// The text of a query that answers one.
pub(crate) async fn text<S: Session>(session: &mut S, query: &str) -> Done<String> {
    let mut rows = session.fetch(query.to_owned(), Vec::new()).await.map_err(Failure::Backend)?;
    Values::of(rows.pop().ok_or_else(|| damaged("no answer"))?).text()
}

/// The version of the tables; 0 when there are none. `tables` counts those named
/// `snowmint_schema`.
pub(crate) async fn version<S: Session>(session: &mut S, tables: &str) -> Done<u64> {
    if number(session, tables).await? == 0 {
        return Ok(0);
    }
    let query = "SELECT COALESCE(MAX(version), 0) FROM snowmint_schema";
    number(session, query).await
}

/// The version of tables that all steps have made.
pub(crate) fn newest(steps: Steps) -> u64 {
    // A handful of steps, counted by a literal of each store.
    u64::try_from(steps.len()).unwrap_or(u64::MAX)
}

/// The steps that tables of version `found` lack.
pub(crate) fn missing(label: &str, found: u64, steps: Steps) -> Result<Steps, ErrorKind> {
    let known = usize::try_from(found).ok().and_then(|done| steps.get(done..));
    known.ok_or_else(|| too_new(label, found, newest(steps)))
}

/// What is said of tables that are not of the newest version, when none may be made or changed.
pub(crate) fn not_brought(label: &str, found: u64, steps: Steps) -> ErrorKind {
    let newest = newest(steps);
    let what = match found {
        0 => return crate::not_made(label),
        found if found > newest => return too_new(label, found, newest),
        found => format!(
            "{label} has tables of version {found}; the next start brings them to version {newest}"
        ),
    };
    ErrorKind::Unsupported { what }
}

fn too_new(label: &str, found: u64, newest: u64) -> ErrorKind {
    let what = format!(
        "{label} has tables of version {found}, made by a newer Snowmint; this one knows versions up \
         to {newest}"
    );
    ErrorKind::Unsupported { what }
}

/// Takes the steps that are missing. Nobody else does so meanwhile.
pub(crate) async fn bring_to_newest<S: Session>(
    session: &mut S,
    label: &str,
    steps: Steps,
    found: u64,
) -> Done<()> {
    let missing = missing(label, found, steps).map_err(Failure::Refused)?;
    let statements: Vec<String> =
        missing.iter().flat_map(|step| step.iter().map(|&statement| statement.into())).collect();
    for statement in statements {
        session.run(statement, Vec::new()).await.map_err(Failure::Backend)?;
    }
    let keep = match S::UPSERT {
        Upsert::OnConflict => "ON CONFLICT (only_one) DO NOTHING",
        Upsert::OnDuplicateKey => "ON DUPLICATE KEY UPDATE only_one = 1",
    };
    let id = random::incarnation().map_err(|error| Failure::Refused(error.kind().clone()))?;
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
