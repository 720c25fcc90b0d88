//! Worker numbers that other systems keep in tables.

use std::collections::BTreeSet;

use snowmint_coord::Result;

use super::numbers::number;
use super::tables::Step;

/// A system that gives out worker numbers from a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crew {
    /// Baidu's uid-generator: `WORKER_NODE`, a row for each start of a process.
    UidGenerator,
    /// CosId: `cosid_machine`.
    Cosid,
}

/// A worker number of another system. No table says up to when it was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// The number, or why what stands there makes no sense.
    pub number: Result<u64, String>,
    /// Who has it, or had it, as far as that is known.
    pub holder: String,
    /// Among whom no number is given out twice, where that is not everybody: CosId's namespace.
    pub space: Option<String>,
}

impl Crew {
    pub(super) async fn read(self, step: &mut Step<'_>) -> Result<Vec<Worker>> {
        match self {
            Self::UidGenerator => uid_generator(step).await,
            Self::Cosid => {
                let columns = ["machine_id", "namespace", "instance_id"];
                let rows = step.select("cosid_machine", &columns, None).await?;
                let of_space = |row: Vec<Option<String>>| {
                    let space = row.get(1).cloned().flatten();
                    Worker { space, ..worker("machine_id", row) }
                };
                Ok(rows.into_iter().map(of_space).collect())
            }
        }
    }
}

/// All numbers that the table counted, whether they still have a row or not: rows are deleted, and with
/// them goes who minted by their numbers.
async fn uid_generator(step: &mut Step<'_>) -> Result<Vec<Worker>> {
    let rows = step.select("WORKER_NODE", &["ID", "HOST_NAME", "PORT"], None).await?;
    let mut workers: Vec<Worker> = rows.into_iter().map(|row| worker("ID", row)).collect();
    // After the rows: who comes meanwhile is counted.
    let next = step.next_number("WORKER_NODE").await?;
    workers.extend(deleted(&workers, next, NUMBERS_MAX, "a row that is not there any more"));
    Ok(workers)
}

/// The numbers that nothing is left of, where they were counted up: below the highest, and below the one that would be
/// counted next. One that is out of all bounds is refused anyhow, and not counted up to.
pub(super) fn deleted(known: &[Worker], next: u64, numbers_max: u64, holder: &str) -> Vec<Worker> {
    let known: BTreeSet<u64> =
        known.iter().filter_map(|worker| worker.number.as_ref().ok().copied()).collect();
    let below = known.last().copied().unwrap_or(0).max(next).min(numbers_max);
    let deleted = (0..below).filter(|number| !known.contains(number));
    deleted
        .map(|number| Worker { number: Ok(number), holder: holder.to_owned(), space: None })
        .collect()
}

/// As many worker numbers as the widest layout that is in use has: 22 bits.
const NUMBERS_MAX: u64 = 1 << 22;

/// The number in the first column, and its holder in the others.
fn worker(column: &str, row: Vec<Option<String>>) -> Worker {
    let mut row = row.into_iter();
    let number = number(column, row.next().flatten());
    let holder: Vec<String> = row.flatten().collect();
    Worker { number, holder: holder.join(" "), space: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_number_and_its_holder() {
        let row = |texts: &[&str]| texts.iter().map(|text| Some((*text).to_owned())).collect();
        let found = worker("ID", row(&["7", "10.0.0.1", "8080"]));
        let holder = "10.0.0.1 8080".into();
        assert_eq!(found, Worker { number: Ok(7), holder, space: None });
        assert!(worker("ID", row(&["-7"])).number.is_err());
        assert!(worker("ID", vec![None]).number.is_err());
    }
}
