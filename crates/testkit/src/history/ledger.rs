//! Promises of the store to each party, and the IDs minted from them.

use std::collections::BTreeMap;
use std::fmt;

use super::{Check, Checked, Violation};

/// Owner of a window: a machine, in one of its lives. With a journal, one life continues another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Party {
    /// The machine.
    pub machine: usize,
    /// The life; always the same where a journal connects them.
    pub life: u32,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "machine {} (life {})", self.machine, self.life)
    }
}

/// A right to mint: a slot of a pool, or the numbers of a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Pool and slot.
    Slot(String, u64),
    /// Source.
    Numbers(String),
}

impl fmt::Display for Right {
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
    rights: BTreeMap<Right, Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Disjoint, unless two parties are promised the same.
    windows: Vec<(u64, u64, Party)>,
    /// Requested windows, with the party and the life of its machine: the store may have granted
    /// them.
    asked: Vec<(u64, u64, Party, u32)>,
    /// End of everything minted.
    minted_end: u64,
    /// Highest mark so far.
    mark_max: u64,
    /// Newest life of each machine that minted, and the end of all IDs that earlier lives minted.
    lives: BTreeMap<usize, (u32, u64)>,
    /// End of the IDs that each machine minted.
    minted_by: BTreeMap<usize, u64>,
}

impl Known {
    fn overlap(&self, (from, to, party): (u64, u64, Party)) -> Option<(u64, u64, Party)> {
        let other = |(begin, end, whose): &(u64, u64, Party)| {
            *whose != party && from.max(*begin) < to.min(*end)
        };
        self.windows.iter().copied().find(other)
    }
}

fn promised_twice(
    right: &Right,
    (from, to, party): (u64, u64, Party),
    (begin, end, whose): (u64, u64, Party),
) -> Violation {
    Check::Promise.broken(format!(
        "{right}: {from} to {to} was promised to {party}, and {begin} to {end} to {whose}"
    ))
}

impl Ledger {
    fn known(&mut self, right: &Right) -> &mut Known {
        self.rights.entry(right.clone()).or_default()
    }

    /// Records that the store acknowledged `[from, to)` to `party`.
    ///
    /// # Errors
    /// Another party has some of it. This proves nothing where promises are not recorded in the
    /// order in which they were made: call [`disjoint`](Self::disjoint) at the end.
    pub fn granted(&mut self, right: &Right, from: u64, to: u64, party: Party) -> Checked {
        if from >= to {
            return Ok(());
        }
        let known = self.known(right);
        let other = known.overlap((from, to, party));
        known.mark_max = known.mark_max.max(to);
        let touches = |(begin, end, whose): &&mut (u64, u64, Party)| {
            *whose == party && *begin <= to && *end >= from
        };
        match known.windows.iter_mut().find(touches) {
            Some((begin, end, _)) => (*begin, *end) = ((*begin).min(from), (*end).max(to)),
            None => known.windows.push((from, to, party)),
        }
        other.map_or(Ok(()), |other| Err(promised_twice(right, (from, to, party), other)))
    }

    /// Records that `party` is about to request `[from, to)` from the store, in its machine's life
    /// `life`. If it is killed before it has recorded the result, a later life of it may continue
    /// there.
    pub fn asked(&mut self, right: &Right, from: u64, to: u64, party: Party, life: u32) {
        self.known(right).asked.push((from, to, party, life));
    }

    /// Records the current mark: no party owns anything above it.
    ///
    /// # Errors
    /// The mark lies below something minted.
    pub fn mark_is(&mut self, right: &Right, mark: u64) -> Checked {
        let known = self.known(right);
        for window in &mut known.windows {
            window.1 = window.1.min(mark);
        }
        known.windows.retain(|(begin, end, _)| begin < end);
        known.mark_max = known.mark_max.max(mark);
        let minted_end = known.minted_end;
        if minted_end > mark {
            return Err(Check::Mark.broken(format!(
                "the mark of {right} fell to {mark}, below what was minted up to {minted_end}"
            )));
        }
        Ok(())
    }

    /// Records that `party` mints nothing at or above `mark` from now on, unless it is promised to
    /// it again.
    pub fn given_up(&mut self, right: &Right, mark: u64, party: Party) {
        let known = self.known(right);
        for (_, end, whose) in &mut known.windows {
            if *whose == party {
                *end = mark.min(*end);
            }
        }
        known.windows.retain(|(begin, end, _)| begin < end);
    }

    /// Records that `party` minted `[from, to)`, in its machine's life `life`.
    ///
    /// # Errors
    /// It lies outside every window of the party, or below what the machine minted from the slot in
    /// an earlier life.
    pub fn minted(
        &mut self,
        right: &Right,
        from: u64,
        to: u64,
        party: Party,
        life: u32,
    ) -> Checked {
        let known = self.known(right);
        let earlier = known.minted_by.get(&party.machine).copied().unwrap_or(0);
        let (newest, floor) = known.lives.entry(party.machine).or_insert((life, 0));
        if *newest < life && matches!(right, Right::Slot(..)) {
            (*newest, *floor) = (life, earlier);
        }
        let floor = *floor;
        known.minted_end = known.minted_end.max(to);
        known.minted_by.insert(party.machine, earlier.max(to));
        let inside = known
            .windows
            .iter()
            .any(|(begin, end, whose)| *whose == party && *begin <= from && to <= *end);
        let inherited = known.asked.iter().any(|(begin, end, whose, before)| {
            *whose == party && *before < life && *begin <= from && to <= *end
        });
        if !inside && !inherited {
            return Err(Check::Window.broken(format!(
                "{party} minted {from} to {to} from {right}, outside every window that it had"
            )));
        }
        if from < floor {
            return Err(Check::Window.broken(format!(
                "{party} minted {from} from {right} in its life {life}, and up to {floor} before"
            )));
        }
        Ok(())
    }

    /// Returns whether nothing at or above `mark` was minted, and no machine except `but` was
    /// promised, or requested, any of it.
    #[must_use]
    pub fn is_nobodys_from(&self, right: &Right, mark: u64, but: usize) -> bool {
        let Some(known) = self.rights.get(right) else { return true };
        let is_others = |(_, end, whose): &(u64, u64, Party)| whose.machine != but && *end > mark;
        let was_asked =
            |(_, end, whose, _): &(u64, u64, Party, u32)| whose.machine != but && *end > mark;
        known.minted_end <= mark
            && !known.windows.iter().any(is_others)
            && !known.asked.iter().any(was_asked)
    }

    /// Returns the first number that `party` has directly below `mark` and has not minted.
    #[must_use]
    pub fn unused(&self, right: &Right, mark: u64, party: Party) -> Option<u64> {
        let known = self.rights.get(right)?;
        let minted = known.minted_by.get(&party.machine).copied().unwrap_or(0);
        let has = |(_, end, whose): &&(u64, u64, Party)| *whose == party && *end == mark;
        let (begin, ..) = known.windows.iter().find(has)?;
        Some((*begin).max(minted)).filter(|first| *first < mark)
    }

    /// Checks that no promise overlaps that of another party.
    ///
    /// # Errors
    /// Two parties were promised the same.
    pub fn disjoint(&self) -> Checked {
        for (right, known) in &self.rights {
            for window in &known.windows {
                if let Some(other) = known.overlap(*window) {
                    return Err(promised_twice(right, *window, other));
                }
            }
        }
        Ok(())
    }

    /// Returns the first of `[from, to)` that no party was promised.
    pub fn gap(&self, right: &Right, from: u64, to: u64) -> Option<u64> {
        let mut windows =
            self.rights.get(right).map_or_else(Vec::new, |known| known.windows.clone());
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

    /// Returns all windows: the right, the end of the window, and its party.
    pub fn promised(&self) -> impl Iterator<Item = (&Right, u64, Party)> {
        self.rights.iter().flat_map(|(right, known)| {
            known.windows.iter().map(move |(_, end, whose)| (right, *end, *whose))
        })
    }

    /// Returns every right, with the end of the IDs minted from it and its highest mark ever.
    pub fn ends(&self) -> impl Iterator<Item = (&Right, u64, u64)> {
        self.rights.iter().map(|(right, known)| (right, known.minted_end, known.mark_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Party = Party { machine: 0, life: 0 };
    const B: Party = Party { machine: 1, life: 0 };

    fn right() -> Right {
        Right::Slot("workers".into(), 3)
    }

    #[test]
    fn id_outside_a_window_is_found() {
        let mut ledger = Ledger::default();
        assert!(ledger.minted(&right(), 10, 11, A, 1).is_err(), "before any window");
        ledger.granted(&right(), 10, 20, A).unwrap();
        ledger.granted(&right(), 20, 30, A).unwrap();
        ledger.minted(&right(), 10, 30, A, 1).unwrap();
        assert!(ledger.minted(&right(), 29, 31, A, 1).is_err(), "across the end");
        assert!(ledger.minted(&right(), 12, 13, B, 1).is_err(), "another's window");
        assert!(ledger.minted(&right(), 12, 13, A, 2).is_err(), "below an earlier life");
        ledger.given_up(&right(), 15, A);
        assert!(ledger.minted(&right(), 15, 16, A, 1).is_err(), "given up");
    }

    /// Covers a kill before the result of the request was recorded.
    #[test]
    fn later_life_may_use_requests_of_an_earlier_one() {
        let mut ledger = Ledger::default();
        ledger.granted(&right(), 10, 20, A).unwrap();
        ledger.asked(&right(), 20, 30, A, 1);
        assert!(ledger.minted(&right(), 20, 21, B, 2).is_err(), "another");
        assert!(ledger.minted(&right(), 30, 31, A, 2).is_err(), "above");
        let mut ledger = Ledger::default();
        ledger.asked(&right(), 20, 30, A, 1);
        assert!(ledger.minted(&right(), 20, 21, A, 1).is_err(), "it does not know itself");
        ledger.minted(&right(), 22, 23, A, 2).unwrap();
    }

    #[test]
    fn double_promise_is_found() {
        let mut ledger = Ledger::default();
        ledger.granted(&right(), 10, 20, A).unwrap();
        assert!(ledger.granted(&right(), 19, 30, B).is_err());
        assert!(ledger.disjoint().is_err());
        ledger.given_up(&right(), 19, A);
        ledger.disjoint().unwrap();
    }

    #[test]
    fn unpromised_id_is_found() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.gap(&right(), 10, 10), None);
        assert_eq!(ledger.gap(&right(), 10, 11), Some(10));
        ledger.granted(&right(), 20, 30, B).unwrap();
        assert_eq!(ledger.gap(&right(), 10, 30), Some(10));
        ledger.granted(&right(), 10, 20, A).unwrap();
        assert_eq!(ledger.gap(&right(), 10, 30), None);
        assert_eq!(ledger.gap(&right(), 10, 31), Some(30));
        ledger.granted(&right(), 31, 40, A).unwrap();
        assert_eq!(ledger.gap(&right(), 10, 40), Some(30));
    }

    #[test]
    fn mark_below_minted_ids_is_found() {
        let mut ledger = Ledger::default();
        ledger.granted(&right(), 10, 20, A).unwrap();
        ledger.minted(&right(), 10, 18, A, 1).unwrap();
        ledger.mark_is(&right(), 18).unwrap();
        assert_eq!(ledger.ends().collect::<Vec<_>>(), [(&right(), 18, 20)]);
        assert!(ledger.mark_is(&right(), 17).is_err());
    }
}
