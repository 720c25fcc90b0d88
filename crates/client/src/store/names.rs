//! By which names servers know the members that joined through this store.
//!
//! Where servers ask for tokens, everybody else knows a member by another name than its own, and lists name it so.
//! Here it finds itself in them by its own name, as in any other store.

use std::sync::{Mutex, MutexGuard, PoisonError};

use snowmint_coord::Incarnation;

/// How many there can be: a process joins anew now and then, as another member.
const MEMBERS_MAX: usize = 16;

/// The newest members of this process, as they are known and as they call themselves.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<Vec<(Incarnation, Incarnation)>>);

impl Names {
    /// What a server says to a member that joins; nothing where it knows it by its own name.
    pub(super) fn joined(&self, own: Incarnation, known_as: Option<Incarnation>) {
        let mut pairs = self.pairs();
        pairs.retain(|(_, other)| *other != own);
        let Some(known) = known_as else { return };
        if pairs.len() >= MEMBERS_MAX {
            pairs.remove(0);
        }
        pairs.push((known, own));
    }

    /// The member's own name, if it is one of this process.
    pub(super) fn own(&self, known: Incarnation) -> Incarnation {
        let pairs = self.pairs();
        pairs.iter().find(|(it, _)| *it == known).map_or(known, |(_, own)| *own)
    }

    fn pairs(&self) -> MutexGuard<'_, Vec<(Incarnation, Incarnation)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_members_know_themselves() {
        let names = Names::default();
        let (one, other) = (Incarnation::new, |number: u128| Incarnation::new(1_000 + number));
        for number in 0..100 {
            names.joined(one(number), Some(other(number)));
        }
        assert_eq!(names.own(other(99)), one(99));
        assert_eq!(names.own(other(90)), one(90));
        assert_eq!(names.own(other(1)), other(1), "long gone");
        assert_eq!(names.pairs().len(), MEMBERS_MAX);
        // By another token, and by none.
        names.joined(one(99), Some(other(500)));
        assert_eq!((names.own(other(99)), names.own(other(500))), (other(99), one(99)));
        names.joined(one(99), None);
        assert_eq!(names.own(other(500)), other(500));
    }
}
