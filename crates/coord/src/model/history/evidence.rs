//! Evidence of a store rollback.

use std::collections::{BTreeMap, HashMap};

use snowmint_core::Rfc3339;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::Mark;
use crate::model::catalog::Definition;
use crate::model::history::{Known, StoreIdentity};
use crate::model::stripe::Stripe;

/// Way in which [`Evidence`] proves that a store may lack acknowledged writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The step that puts the store in doubt compares the evidence with the store.
    Comparison,
    /// The store contradicted an earlier reply, and has changed since: it handed out numbers again,
    /// or had an older lease. So there may be nothing left to compare.
    Reply,
    /// An operator accepts the server that has the store now, in the place of the one that wrote
    /// the rows. That server may lack acknowledged writes. The same step puts the store in doubt,
    /// and earlier reports count no more. Nothing is changed if the server is the one that wrote
    /// the rows. Fails with `StoreMismatch` when the handle has seen a store with another identity,
    /// and with `Conflict` when another namespace of the store is in doubt already.
    OtherServer,
}

/// Knowledge of a process about a store, which can prove a store rollback, or an operator's word
/// that another server has taken over. Nothing is changed if the store's identity differs from
/// [`id`](Self::id).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Identity of the store, in its history, when it was last read.
    pub id: String,
    /// Progress of the store at that time.
    pub seen: StoreIdentity,
    /// Next number of each source, as far as the process saw numbers issued.
    pub ends: BTreeMap<String, u64>,
    /// Way in which it proves that.
    pub proof: Proof,
}

impl Evidence {
    /// Returns an operator's word that another server has taken over the store with this identity,
    /// in its history, and that the former server takes no more writes.
    #[must_use]
    pub fn of_operator(id: String) -> Self {
        let seen = StoreIdentity { id: id.clone(), writes: 0 };
        Self { id, seen, ends: BTreeMap::new(), proof: Proof::OtherServer }
    }
}

/// Maximum number of sources that the error names after the first.
const NAMED_MAX: usize = 16;

/// Rejects a store with sources that begin below issued numbers: the store was rolled back, however
/// far it has counted since. The error names all these sources, up to a limit: numbers in between
/// may be issued twice.
pub(crate) fn check_ends(
    who: &str,
    ends: &BTreeMap<String, u64>,
    stored: &[Definition],
) -> Result<()> {
    let mut below = sources_below(ends, stored).into_iter();
    let Some((name, seen, found)) = below.next() else { return Ok(()) };
    let mut others = String::new();
    for (name, seen, found) in below.by_ref().take(NAMED_MAX) {
        others.push_str(&format!("{name:?} (seen {seen}, found {found}), "));
    }
    let left_out = below.count();
    if left_out > 0 {
        others.push_str(&format!("{left_out} more, "));
    }
    let mut evidence = format!("next number of source {name:?} seen by {who}");
    if !others.is_empty() {
        evidence.push_str(&format!(" (and {})", others.trim_end_matches(", ")));
    }
    Err(Error::store_rolled_back(evidence, seen, found))
}

/// Returns the sources that begin below these ends, each with its end and its next number.
fn sources_below<'a>(
    ends: &'a BTreeMap<String, u64>,
    stored: &[Definition],
) -> Vec<(&'a str, u64, u64)> {
    if ends.is_empty() {
        return Vec::new();
    }
    let next = stored.iter().map(|source| (source.name.as_str(), source.segment.mark.get()));
    let next: HashMap<&str, u64> = next.collect();
    let below = ends.iter().filter_map(|(name, seen)| {
        let found = next.get(name.as_str()).copied().unwrap_or(0);
        (found < *seen).then_some((name.as_str(), *seen, found))
    });
    below.collect()
}

/// Process that compares a recovered store with its knowledge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecalledBy<'a> {
    /// Name of the process or its journal.
    pub(crate) who: &'a str,
    /// Name of the secondary store; `None` for the primary store.
    pub(crate) secondary: Option<&'a str>,
    /// Whether it reaches the store through servers, where alone the command can run.
    pub(crate) is_program: bool,
    /// Whether the mark is far ahead, so that the command would end minting for long.
    pub(crate) far_ahead: bool,
    /// Whether its knowledge is in a journal, and not in its memory alone.
    pub(crate) has_journal: bool,
}

fn move_journal(folder: &str) -> String {
    format!("stop the process of this journal instead, and move the file `journal` out of {folder}")
}

/// Rejects a store that was recovered without the knowledge of a process, and lies below it: ends of
/// sources, or `mark`, the lowest mark of a worker number. The error names all of this, up to a
/// limit of sources, and the command that raises the store in one step.
pub(crate) fn check_recovered(
    by: &RecalledBy<'_>,
    known: &Known,
    stored: &[Definition],
    mark: Mark,
) -> Result<()> {
    let who = by.who;
    let ends = ends_by_stripe(known, stored);
    let below = sources_below(&ends, stored);
    let (mut lacks, mut command) = (Vec::new(), "snowmint worker recover".to_owned());
    // Only a running server recovers a secondary store.
    if let Some(name) = by.secondary {
        command.push_str(&format!(" --secondary {name} --server URL"));
    }
    let mut undefined = Vec::new();
    for (name, seen, found) in below.iter().take(NAMED_MAX) {
        lacks.push(format!("next number of source {name:?} was {seen}, is {found}"));
        if stored.iter().all(|source| source.name != *name) {
            undefined.push(*name);
        }
        command.push_str(&format!(" --segment {name}={seen}"));
    }
    if let more @ 1.. = below.len().saturating_sub(NAMED_MAX) {
        lacks.push(format!("{more} more sources, named once these are raised"));
    }
    let seen = Mark::new(known.mark);
    let mut otherwise = String::new();
    if mark < seen {
        let was = Rfc3339(seen.unix_millis());
        let is = match mark {
            Mark::ZERO => "not set".to_owned(),
            mark => Rfc3339(mark.unix_millis()).to_string(),
        };
        lacks.push(format!("worker mark was {was}, is {is}"));
        if by.far_ahead {
            let last = if mark == Mark::ZERO { "the present" } else { &is };
            let numbers = if below.is_empty() { "" } else { "run the command without --mark, " };
            let instead = match by.secondary {
                _ if !by.has_journal => "restart this process instead".to_owned(),
                None => move_journal("its data directory"),
                Some(name) => {
                    move_journal(&format!("the folder stores/{name} of its data directory"))
                }
            };
            otherwise = format!(
                " --far-ahead, after which no server mints by worker numbers before {was}. If no ID \
                 of this process later than {last} is in use (as after `worker reclaim`), {numbers}\
                 {instead}"
            );
        }
        command.push_str(&format!(" --mark {was}"));
    }
    if lacks.is_empty() {
        return Ok(());
    }
    let lacks = lacks.join(", ");
    let first = match undefined.as_slice() {
        [] => String::new(),
        names => {
            format!("define as they were the sources that are lost ({}), and ", names.join(", "))
        }
    };
    let place = if by.is_program { " at the store's servers" } else { "" };
    let message = format!(
        "store rolled back: {lacks}, as seen by {who}, without which the store was recovered; IDs \
         in between may have come twice; to stop that and continue, {first}run{place} \
         {command}{otherwise}"
    );
    let (seen, found) = match below.first() {
        Some((_, seen, found)) => (*seen, *found),
        None => (known.mark, mark.get()),
    };
    let evidence = format!("state seen by {who} ({lacks})");
    Err(Error::of(ErrorKind::StoreRolledBack { evidence, seen, found }, message))
}

/// Returns the ends of sources, each raised to where the stored definition makes no ID that the
/// process has seen.
fn ends_by_stripe(known: &Known, stored: &[Definition]) -> BTreeMap<String, u64> {
    let ids_of = |name: &String| known.ids.get(name).copied().unwrap_or(0);
    let stripe_of = |name: &String| {
        let stored = stored.iter().find(|source| source.name == *name);
        stored.and_then(|source| Stripe::of_text(&source.spec)).unwrap_or(Stripe::ALL)
    };
    let ends = known.ends.iter();
    ends.map(|(name, end)| (name.clone(), stripe_of(name).next_after(*end, ids_of(name)))).collect()
}
