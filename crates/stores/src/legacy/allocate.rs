//! Allocation from the table of an upstream, as the upstream's own servers do it, and its cutover.
//!
//! An allocation is the upstream's own step: it locks the row and raises the mark, and the numbers
//! between belong to that step. So while both systems serve, no number is allocated twice. A
//! cutover is one step too: under the lock no process can allocate, and the commit leaves a row
//! from which no process can.

use async_trait::async_trait;
use snowmint_coord::segment::NumberInterval;
use snowmint_coord::verbs::Access;
use snowmint_coord::{BoxFuture, Error, ErrorKind, Result, Upstream, opaque_debug};

use super::LegacySystem;
use super::numbers::{END, HIGHEST_MAX, RENAMED, SequenceState, TableShape};
use super::tables::{LegacyStep, Tables};
use crate::sql::Value;

/// Prefixes of upstream names, as in `leaf+mysql://…`.
const LEGACY_SYSTEMS: [(&str, LegacySystem); 3] = [
    ("leaf", LegacySystem::Leaf),
    ("tinyid", LegacySystem::Tinyid),
    ("cosid", LegacySystem::Cosid),
];

/// A table from which both its own servers and Snowmint allocate.
#[derive(Debug)]
pub struct UpstreamTable {
    tables: Tables,
    legacy_system: LegacySystem,
}

/// A locked row of the table: no process can allocate from it while this value exists. Dropping it
/// changes nothing.
pub struct Frozen<'t> {
    step: LegacyStep<'t>,
    shape: &'static TableShape,
    key: String,
    /// Highest number that may have been handed out; none if the key was cut over before.
    highest: Option<u64>,
}

opaque_debug!(Frozen<'_>: key);

impl UpstreamTable {
    /// Returns the table at a URL, without connecting.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn open(legacy_system: LegacySystem, url: &str) -> Result<Self> {
        Ok(Self { tables: Tables::open(url)?, legacy_system })
    }

    /// Returns the table that `SYSTEM+URL` names, such as
    /// `leaf+mysql://USER:PASSWORD@HOST/DATABASE`.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn named(text: &str) -> Result<Self> {
        let (system, url) = text.split_once('+').unwrap_or_default();
        let Some((_, legacy_system)) = LEGACY_SYSTEMS.into_iter().find(|(name, _)| *name == system)
        else {
            // The text is not shown: a password may have a plus sign.
            return Err(Error::invalid(
                "upstream is not SYSTEM+URL; write leaf, tinyid or cosid, then +URL, as \
                 leaf+mysql://USER:PASSWORD@HOST/DATABASE",
            ));
        };
        Self::open(legacy_system, url)
    }

    /// Returns whether this is the table of a system in the database at a URL, whatever the user
    /// and password.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn is_at(&self, legacy_system: LegacySystem, url: &str) -> Result<bool> {
        Ok(self.legacy_system == legacy_system
            && self.tables.location() == Tables::open(url)?.location())
    }

    /// Locks the row of a key, so that no process allocates from it.
    ///
    /// # Errors
    /// `NotFound` without such a row; `Invalid` for a row that makes no sense; the database's
    /// error.
    pub fn freeze<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Frozen<'a>>> {
        Box::pin(async move {
            let shape = self.legacy_system.shape();
            let mut step = self.tables.begin(Access::Write).await?;
            let highest = match row(&mut step, shape, key).await? {
                SequenceState::At(numbers) => Some(numbers.highest),
                SequenceState::Senseless(reason) => return Err(unusable(key, &reason)),
                SequenceState::Moved => None,
            };
            Ok(Frozen { step, shape, key: key.to_owned(), highest })
        })
    }
}

impl<'t> Frozen<'t> {
    /// Returns the highest number that may have been handed out there; none if the key was cut over
    /// before.
    #[must_use]
    pub const fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Leaves a row from which no process can allocate any more.
    ///
    /// # Errors
    /// The database's error. The outcome is then unknown: freeze the row again.
    pub fn end(mut self) -> BoxFuture<'t, Result<()>> {
        Box::pin(async move {
            if self.highest.is_none() {
                return self.step.roll_back().await;
            }
            let TableShape { table, key, mark, ends_by_name, .. } = self.shape;
            let (column, value) = if *ends_by_name {
                (key, Value::text(format!("{RENAMED}{}", self.key)))
            } else {
                (mark, Value::Integer(END))
            };
            let statement = format!("UPDATE {table} SET {column} = ? WHERE {key} = ?");
            self.step.change(statement, vec![value, Value::text(self.key)]).await?;
            self.step.commit().await
        })
    }
}

#[async_trait]
impl Upstream for UpstreamTable {
    async fn allocate(&self, key: &str, length: u64) -> Result<NumberInterval> {
        self.allocate_range(key, length).await.map_err(|error| match error.kind() {
            ErrorKind::Conflict | ErrorKind::Exhausted | ErrorKind::Unavailable => error,
            // Callers of a source can neither know nor change what is wrong with its upstream.
            _ => {
                let for_callers = Error::unavailable(error.message().into_owned());
                let for_callers = match error.detail() {
                    Some(detail) => for_callers.with_detail(detail),
                    None => for_callers,
                };
                for_callers.with_retry(error.retry()).with_source(error)
            }
        })
    }
}

impl UpstreamTable {
    async fn allocate_range(&self, key: &str, length: u64) -> Result<NumberInterval> {
        let shape = self.legacy_system.shape();
        let mut step = self.tables.begin(Access::Write).await?;
        let numbers = match row(&mut step, shape, key).await? {
            SequenceState::At(numbers) if numbers.increment == 1 => numbers,
            SequenceState::At(_) => {
                return Err(Error::invalid(format!(
                    "key {key:?} of the legacy database has a stripe, which cannot be shared; cut \
                     it over first"
                )));
            }
            SequenceState::Senseless(reason) => return Err(unusable(key, &reason)),
            SequenceState::Moved => {
                return Err(Error::conflict(format!(
                    "key {key:?} of the legacy database was cut over; read the catalog again"
                )));
            }
        };
        let first = numbers.highest.saturating_add(1);
        let end = first.saturating_add(length);
        if end > HIGHEST_MAX {
            let label = &self.tables.label;
            return Err(label.locate(Error::exhausted(format!(
                "key {key:?} of legacy database {label} has no numbers left, maximum \
                 {HIGHEST_MAX}; define another source"
            ))));
        }
        let after = if shape.mark_is_used { end.saturating_sub(1) } else { end };
        let TableShape { table, key: column, mark, version, .. } = shape;
        let counts = version.map_or_else(String::new, |name| format!(", {name} = {name} + 1"));
        let statement = format!("UPDATE {table} SET {mark} = ?{counts} WHERE {column} = ?");
        let after_signed = i64::try_from(after).unwrap_or(END);
        step.change(statement, vec![Value::Integer(after_signed), Value::text(key)]).await?;
        step.commit().await?;
        Ok(NumberInterval { first, end })
    }
}

/// Reads and locks the row of a key.
async fn row(step: &mut LegacyStep<'_>, shape: &TableShape, key: &str) -> Result<SequenceState> {
    let columns = shape.columns();
    let renamed = shape.ends_by_name.then(|| format!("{RENAMED}{key}"));
    for name in std::iter::once(key).chain(renamed.as_deref()) {
        if let Some(row) = step.select(shape.table, &columns, Some(name)).await?.pop() {
            return Ok(shape.read(row).state);
        }
    }
    Err(Error::not_found(format!(
        "table {} of the legacy database has no key {key:?}; correct the source's upstream",
        shape.table
    )))
}

fn unusable(key: &str, reason: &str) -> Error {
    Error::invalid(format!(
        "key {key:?} of the legacy database is unusable: {reason}; correct its row"
    ))
}
