//! Names by which servers know the members that joined through this store.
//!
//! Servers that require tokens show members under aliases to all other clients, also in lists. This
//! store translates them, so that a member finds itself under its own incarnation, as in any other
//! store.

use std::sync::Mutex;

use snowmint_coord::{Incarnation, lock};

/// Maximum number of members kept: a process rejoins now and then, as another member.
const MEMBERS_MAX: usize = 16;

/// Newest members of this process: the alias and the own incarnation of each.
#[derive(Debug, Default)]
pub(super) struct IncarnationAliases(Mutex<Vec<(Incarnation, Incarnation)>>);

impl IncarnationAliases {
    /// Records the alias that a server gave to a member when it joined; `None` where it has no
    /// alias.
    pub(super) fn joined(&self, own: Incarnation, known_as: Option<Incarnation>) {
        let mut pairs = lock(&self.0);
        pairs.retain(|(_, other)| *other != own);
        let Some(known) = known_as else { return };
        if pairs.len() >= MEMBERS_MAX {
            pairs.remove(0);
        }
        pairs.push((known, own));
    }

    /// Returns the member's own incarnation, or `known` for a member of another process.
    pub(super) fn own(&self, known: Incarnation) -> Incarnation {
        let pairs = lock(&self.0);
        pairs.iter().find(|(it, _)| *it == known).map_or(known, |(_, own)| *own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_members_know_themselves() {
        let aliases = IncarnationAliases::default();
        let (one, other) = (Incarnation::new, |number: u128| Incarnation::new(1_000 + number));
        for number in 0..100 {
            aliases.joined(one(number), Some(other(number)));
        }
        assert_eq!(aliases.own(other(99)), one(99));
        assert_eq!(aliases.own(other(90)), one(90));
        assert_eq!(aliases.own(other(1)), other(1), "long gone");
        assert_eq!(lock(&aliases.0).len(), MEMBERS_MAX);
        // An alias under another token, then none.
        aliases.joined(one(99), Some(other(500)));
        assert_eq!((aliases.own(other(99)), aliases.own(other(500))), (other(99), one(99)));
        aliases.joined(one(99), None);
        assert_eq!(aliases.own(other(500)), other(500));
    }
}
