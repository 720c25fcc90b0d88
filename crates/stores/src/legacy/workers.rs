//! Worker numbers that other systems keep in tables.

use std::collections::BTreeSet;

use snowmint_coord::Result;

use super::numbers::number;
use super::tables::LegacyStep;

/// A system that assigns worker numbers from a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyWorkerSystem {
    /// Baidu's uid-generator: `WORKER_NODE`, a row for each start of a process.
    UidGenerator,
    /// CosId: `cosid_machine`.
    Cosid,
}

/// A worker number of another system. No table records until when it was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyWorker {
    /// The number, or the reason why the row makes no sense.
    pub number: Result<u64, String>,
    /// Present or past holder, as far as known.
    pub holder: String,
    /// Scope in which numbers are unique, if they are not unique everywhere: CosId's namespace.
    pub space: Option<String>,
}

impl LegacyWorkerSystem {
    pub(super) async fn read(self, step: &mut LegacyStep<'_>) -> Result<Vec<LegacyWorker>> {
        match self {
            Self::UidGenerator => uid_generator(step).await,
            Self::Cosid => {
                let columns = ["machine_id", "namespace", "instance_id"];
                let rows = step.select("cosid_machine", &columns, None).await?;
                let of_space = |row: Vec<Option<String>>| {
                    let space = row.get(1).cloned().flatten();
                    LegacyWorker { space, ..worker("machine_id", row) }
                };
                Ok(rows.into_iter().map(of_space).collect())
            }
        }
    }
}

/// Returns all numbers that the table counted, even without a row: rows are deleted, and with them
/// the holder of their numbers.
async fn uid_generator(step: &mut LegacyStep<'_>) -> Result<Vec<LegacyWorker>> {
    let rows = step.select("WORKER_NODE", &["ID", "HOST_NAME", "PORT"], None).await?;
    let mut workers: Vec<LegacyWorker> = rows.into_iter().map(|row| worker("ID", row)).collect();
    // Read after the rows, so that processes that join meanwhile are counted.
    let next = step.next_number("WORKER_NODE").await?;
    workers.extend(deleted(&workers, next, NUMBERS_MAX, "a deleted row"));
    Ok(workers)
}

/// Returns the numbers without a row below the highest known or next number, in a table that counts
/// up. An out-of-range number is rejected elsewhere, so the count stops at `numbers_max`.
pub(super) fn deleted(
    known: &[LegacyWorker],
    next: u64,
    numbers_max: u64,
    holder: &str,
) -> Vec<LegacyWorker> {
    let known: BTreeSet<u64> =
        known.iter().filter_map(|worker| worker.number.as_ref().ok().copied()).collect();
    let below = known.last().copied().unwrap_or(0).max(next).min(numbers_max);
    let deleted = (0..below).filter(|number| !known.contains(number));
    deleted
        .map(|number| LegacyWorker { number: Ok(number), holder: holder.to_owned(), space: None })
        .collect()
}

/// Count of worker numbers of the widest layout in use: 22 bits.
const NUMBERS_MAX: u64 = 1 << 22;

/// Returns the number from the first column, and its holder from the other columns.
fn worker(column: &str, row: Vec<Option<String>>) -> LegacyWorker {
    let mut row = row.into_iter();
    let number = number(column, row.next().flatten());
    let holder: Vec<String> = row.flatten().collect();
    LegacyWorker { number, holder: holder.join(" "), space: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_row_gives_number_and_holder() {
        let row = |texts: &[&str]| texts.iter().map(|text| Some((*text).to_owned())).collect();
        let found = worker("ID", row(&["7", "10.0.0.1", "8080"]));
        let holder = "10.0.0.1 8080".into();
        assert_eq!(found, LegacyWorker { number: Ok(7), holder, space: None });
        assert!(worker("ID", row(&["-7"])).number.is_err());
        assert!(worker("ID", vec![None]).number.is_err());
    }
}
