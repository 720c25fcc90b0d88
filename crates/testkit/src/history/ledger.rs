//! Promises of the store to each process life, and the IDs minted from them.

use std::collections::BTreeMap;
use std::fmt;

use super::{Check, Checked, Violation};

/// Owner of a window: a machine, in one of its lives. With a journal, one life continues another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessLife {
    /// The machine.
    pub machine: usize,
    /// The life; always the same where a journal connects them.
    pub life: u32,
}

impl fmt::Display for ProcessLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "machine {} (life {})", self.machine, self.life)
    }
}

/// Slot of a pool, or the numbers of a source, from which IDs are minted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Pool and slot.
    Slot(String, u64),
    /// Source.
    Numbers(String),
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slot(pool, slot) => write!(f, "slot {slot} of pool {pool}"),
            Self::Numbers(source) => write!(f, "the numbers of {source}"),
        }
    }
}

/// All promises of a run. Bounds are Unix milliseconds for slots, and numbers for segments; the
/// upper bound is excluded.
#[derive(Debug, Default)]
pub struct Ledger {
    resources: BTreeMap<Resource, Promises>,
}

#[derive(Debug, Default)]
struct Promises {
    /// Disjoint, unless two process lives are promised the same.
    windows: Vec<(u64, u64, ProcessLife)>,
    /// Requested windows, with the process life and the life of its machine: the store may have
    /// granted them.
    requested: Vec<(u64, u64, ProcessLife, u32)>,
    /// End of everything minted.
    minted_end: u64,
    /// Highest mark so far.
    mark_max: u64,
    /// Newest life of each machine that minted, and the end of all IDs that earlier lives minted.
    lives: BTreeMap<usize, (u32, u64)>,
    /// End of the IDs that each machine minted.
    minted_by: BTreeMap<usize, u64>,
}

impl Promises {
    fn overlap(
        &self,
        (from, to, process_life): (u64, u64, ProcessLife),
    ) -> Option<(u64, u64, ProcessLife)> {
        let other = |(begin, end, whose): &(u64, u64, ProcessLife)| {
            *whose != process_life && from.max(*begin) < to.min(*end)
        };
        self.windows.iter().copied().find(other)
    }
}

fn promised_twice(
    resource: &Resource,
    (from, to, process_life): (u64, u64, ProcessLife),
    (begin, end, whose): (u64, u64, ProcessLife),
) -> Violation {
    Check::Promise.broken(format!(
        "{resource}: {from} to {to} was promised to {process_life}, and {begin} to {end} to {whose}"
    ))
}

impl Ledger {
    fn promises(&mut self, resource: &Resource) -> &mut Promises {
        self.resources.entry(resource.clone()).or_default()
    }

    /// Records that the store acknowledged `[from, to)` to `process_life`.
    ///
    /// # Errors
    /// Another process life has some of it. This proves nothing where promises are not recorded in
    /// the order in which they were made: call [`disjoint`](Self::disjoint) at the end.
    pub fn granted(
        &mut self,
        resource: &Resource,
        from: u64,
        to: u64,
        process_life: ProcessLife,
    ) -> Checked {
        if from >= to {
            return Ok(());
        }
        let promises = self.promises(resource);
        let other = promises.overlap((from, to, process_life));
        promises.mark_max = promises.mark_max.max(to);
        let touches = |(begin, end, whose): &&mut (u64, u64, ProcessLife)| {
            *whose == process_life && *begin <= to && *end >= from
        };
        match promises.windows.iter_mut().find(touches) {
            Some((begin, end, _)) => (*begin, *end) = ((*begin).min(from), (*end).max(to)),
            None => promises.windows.push((from, to, process_life)),
        }
        other.map_or(Ok(()), |other| Err(promised_twice(resource, (from, to, process_life), other)))
    }

    /// Records that `process_life` is about to request `[from, to)` from the store, in its
    /// machine's life `life`. If it is killed before it has recorded the result, a later life of it
    /// may continue there.
    pub fn requested(
        &mut self,
        resource: &Resource,
        from: u64,
        to: u64,
        process_life: ProcessLife,
        life: u32,
    ) {
        self.promises(resource).requested.push((from, to, process_life, life));
    }

    /// Records the current mark: no process life owns anything above it.
    ///
    /// # Errors
    /// The mark lies below something minted.
    pub fn mark_is(&mut self, resource: &Resource, mark: u64) -> Checked {
        let promises = self.promises(resource);
        for window in &mut promises.windows {
            window.1 = window.1.min(mark);
        }
        promises.windows.retain(|(begin, end, _)| begin < end);
        promises.mark_max = promises.mark_max.max(mark);
        let minted_end = promises.minted_end;
        if minted_end > mark {
            return Err(Check::Mark.broken(format!(
                "the mark of {resource} fell to {mark}, below what was minted up to {minted_end}"
            )));
        }
        Ok(())
    }

    /// Records that `process_life` mints nothing at or above `mark` from now on, unless it is
    /// promised to it again.
    pub fn given_up(&mut self, resource: &Resource, mark: u64, process_life: ProcessLife) {
        let promises = self.promises(resource);
        for (_, end, whose) in &mut promises.windows {
            if *whose == process_life {
                *end = mark.min(*end);
            }
        }
        promises.windows.retain(|(begin, end, _)| begin < end);
    }

    /// Records that `process_life` minted `[from, to)`, in its machine's life `life`.
    ///
    /// # Errors
    /// It lies outside every window of the process life, or below what the machine minted from the
    /// slot in an earlier life.
    pub fn minted(
        &mut self,
        resource: &Resource,
        from: u64,
        to: u64,
        process_life: ProcessLife,
        life: u32,
    ) -> Checked {
        let promises = self.promises(resource);
        let earlier = promises.minted_by.get(&process_life.machine).copied().unwrap_or(0);
        let (newest, floor) = promises.lives.entry(process_life.machine).or_insert((life, 0));
        if *newest < life && matches!(resource, Resource::Slot(..)) {
            (*newest, *floor) = (life, earlier);
        }
        let floor = *floor;
        promises.minted_end = promises.minted_end.max(to);
        promises.minted_by.insert(process_life.machine, earlier.max(to));
        let inside = promises
            .windows
            .iter()
            .any(|(begin, end, whose)| *whose == process_life && *begin <= from && to <= *end);
        let inherited = promises.requested.iter().any(|(begin, end, whose, before)| {
            *whose == process_life && *before < life && *begin <= from && to <= *end
        });
        if !inside && !inherited {
            return Err(Check::Window.broken(format!(
                "{process_life} minted {from} to {to} from {resource}, outside every window that it had"
            )));
        }
        if from < floor {
            return Err(Check::Window.broken(format!(
                "{process_life} minted {from} from {resource} in its life {life}, and up to {floor} before"
            )));
        }
        Ok(())
    }

    /// Returns whether nothing at or above `mark` was minted, and no machine except `but` was
    /// promised, or requested, any of it.
    #[must_use]
    pub fn is_unused_from(&self, resource: &Resource, mark: u64, but: usize) -> bool {
        let Some(promises) = self.resources.get(resource) else { return true };
        let is_others =
            |(_, end, whose): &(u64, u64, ProcessLife)| whose.machine != but && *end > mark;
        let was_requested =
            |(_, end, whose, _): &(u64, u64, ProcessLife, u32)| whose.machine != but && *end > mark;
        promises.minted_end <= mark
            && !promises.windows.iter().any(is_others)
            && !promises.requested.iter().any(was_requested)
    }

    /// Returns the first number that `process_life` has directly below `mark` and has not minted.
    #[must_use]
    pub fn unused(&self, resource: &Resource, mark: u64, process_life: ProcessLife) -> Option<u64> {
        let promises = self.resources.get(resource)?;
        let minted = promises.minted_by.get(&process_life.machine).copied().unwrap_or(0);
        let has =
            |(_, end, whose): &&(u64, u64, ProcessLife)| *whose == process_life && *end == mark;
        let (begin, ..) = promises.windows.iter().find(has)?;
        Some((*begin).max(minted)).filter(|first| *first < mark)
    }

    /// Checks that no promise overlaps that of another process life.
    ///
    /// # Errors
    /// Two process lives were promised the same.
    pub fn disjoint(&self) -> Checked {
        for (resource, promises) in &self.resources {
            for window in &promises.windows {
                if let Some(other) = promises.overlap(*window) {
                    return Err(promised_twice(resource, *window, other));
                }
            }
        }
        Ok(())
    }

    /// Returns the first of `[from, to)` that no process life was promised.
    pub fn gap(&self, resource: &Resource, from: u64, to: u64) -> Option<u64> {
        let mut windows =
            self.resources.get(resource).map_or_else(Vec::new, |promises| promises.windows.clone());
        windows.sort_unstable();
        let reached =
            windows.iter().fold(
                from,
                |reached, (begin, end, _)| {
                    if *begin <= reached { reached.max(*end) } else { reached }
                },
            );
        (reached < to).then_some(reached)
    }

    /// Returns all windows: the resource, the end of the window, and its process life.
    pub fn promised(&self) -> impl Iterator<Item = (&Resource, u64, ProcessLife)> {
        self.resources.iter().flat_map(|(resource, promises)| {
            promises.windows.iter().map(move |(_, end, whose)| (resource, *end, *whose))
        })
    }

    /// Returns every resource, with the end of the IDs minted from it and its highest mark ever.
    pub fn ends(&self) -> impl Iterator<Item = (&Resource, u64, u64)> {
        self.resources
            .iter()
            .map(|(resource, promises)| (resource, promises.minted_end, promises.mark_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ProcessLife = ProcessLife { machine: 0, life: 0 };
    const B: ProcessLife = ProcessLife { machine: 1, life: 0 };

    fn resource() -> Resource {
        Resource::Slot("workers".into(), 3)
    }

    #[test]
    fn id_outside_a_window_is_found() {
        let mut ledger = Ledger::default();
        assert!(ledger.minted(&resource(), 10, 11, A, 1).is_err(), "before any window");
        ledger.granted(&resource(), 10, 20, A).unwrap();
        ledger.granted(&resource(), 20, 30, A).unwrap();
        ledger.minted(&resource(), 10, 30, A, 1).unwrap();
        assert!(ledger.minted(&resource(), 29, 31, A, 1).is_err(), "across the end");
        assert!(ledger.minted(&resource(), 12, 13, B, 1).is_err(), "another's window");
        assert!(ledger.minted(&resource(), 12, 13, A, 2).is_err(), "below an earlier life");
        ledger.given_up(&resource(), 15, A);
        assert!(ledger.minted(&resource(), 15, 16, A, 1).is_err(), "given up");
    }

    /// Covers a kill before the result of the request was recorded.
    #[test]
    fn later_life_may_use_requests_of_an_earlier_one() {
        let mut ledger = Ledger::default();
        ledger.granted(&resource(), 10, 20, A).unwrap();
        ledger.requested(&resource(), 20, 30, A, 1);
        assert!(ledger.minted(&resource(), 20, 21, B, 2).is_err(), "another");
        assert!(ledger.minted(&resource(), 30, 31, A, 2).is_err(), "above");
        let mut ledger = Ledger::default();
        ledger.requested(&resource(), 20, 30, A, 1);
        assert!(ledger.minted(&resource(), 20, 21, A, 1).is_err(), "it does not know itself");
        ledger.minted(&resource(), 22, 23, A, 2).unwrap();
    }

    #[test]
    fn double_promise_is_found() {
        let mut ledger = Ledger::default();
        ledger.granted(&resource(), 10, 20, A).unwrap();
        assert!(ledger.granted(&resource(), 19, 30, B).is_err());
        assert!(ledger.disjoint().is_err());
        ledger.given_up(&resource(), 19, A);
        ledger.disjoint().unwrap();
    }

    #[test]
    fn unpromised_id_is_found() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.gap(&resource(), 10, 10), None);
        assert_eq!(ledger.gap(&resource(), 10, 11), Some(10));
        ledger.granted(&resource(), 20, 30, B).unwrap();
        assert_eq!(ledger.gap(&resource(), 10, 30), Some(10));
        ledger.granted(&resource(), 10, 20, A).unwrap();
        assert_eq!(ledger.gap(&resource(), 10, 30), None);
        assert_eq!(ledger.gap(&resource(), 10, 31), Some(30));
        ledger.granted(&resource(), 31, 40, A).unwrap();
        assert_eq!(ledger.gap(&resource(), 10, 40), Some(30));
    }

    #[test]
    fn mark_below_minted_ids_is_found() {
        let mut ledger = Ledger::default();
        ledger.granted(&resource(), 10, 20, A).unwrap();
        ledger.minted(&resource(), 10, 18, A, 1).unwrap();
        ledger.mark_is(&resource(), 18).unwrap();
        assert_eq!(ledger.ends().collect::<Vec<_>>(), [(&resource(), 18, 20)]);
        assert!(ledger.mark_is(&resource(), 17).is_err());
    }
}
