//! As whom a caller's members are known to the store.
//!
//! Lists show the names of all members. So that nobody speaks for another who has read them, a name counts together
//! with that of the token by which it is said: the store knows the member by a hash of both. Callers by one token can
//! speak for each other; for those by another, and for servers, whatever they say names nobody. The name that the store
//! knows also says that it is a program's, and of which token: programs have no say about the time, and each token has a
//! share of the worker numbers.
//!
//! Nothing is kept for it, and every server with a token of this name comes to the same.

use sha2::{Digest as _, Sha256};
use snowmint_coord::Incarnation;
use snowmint_core::{Clock as _, SystemClock, UnixMillis};

use super::read::{Read, incarnation};
use crate::service::Service;

/// So that no hash of ours for something else is one of these.
const MEMBER: &[u8] = b"snowmint member of a token\0";
const TOKEN: &[u8] = b"snowmint token of members\0";

/// The name of the token that a caller shows; none where none is asked for.
#[derive(Debug)]
pub(super) struct Speaker(Option<String>);

impl Speaker {
    pub(super) fn of(service: &Service) -> Self {
        Self(service.caller().name().map(ToOwned::to_owned))
    }

    /// Whether its members can be servers. Those have the token of servers, which is nobody's in particular.
    pub(super) const fn may_serve(&self) -> bool {
        self.0.is_none()
    }

    /// The time that counts for what the caller asks, where the store has no clock: that of this server. Whoever could
    /// choose it could choose who is live.
    pub(super) fn time(&self, said: u64) -> UnixMillis {
        if self.0.is_some() { SystemClock.unix_ms() } else { UnixMillis::new(said) }
    }

    /// The member that the caller names as its own.
    pub(super) fn own(&self, text: &str) -> Read<Incarnation> {
        incarnation(text).map(|named| self.known_as(named))
    }

    /// The same, if it names one.
    pub(super) fn own_if(&self, text: Option<&str>) -> Read<Option<Incarnation>> {
        text.map(|text| self.own(text)).transpose()
    }

    /// What the names of its members have in common; none where no token is asked for.
    pub(super) fn token(&self) -> Option<u32> {
        let hash = Sha256::new().chain_update(TOKEN).chain_update(self.0.as_ref()?).finalize();
        let number = |number: u32, byte| (number << 8) | u32::from(byte);
        Some(hash.into_iter().take(4).fold(0, number))
    }

    /// The token's name.
    pub(super) fn name(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    fn known_as(&self, named: Incarnation) -> Incarnation {
        let (Some(name), Some(token)) = (&self.0, self.token()) else { return named };
        let hash = Sha256::new()
            .chain_update(MEMBER)
            .chain_update(name)
            // Of one length, so the end of the token's name is where it is.
            .chain_update(named.get().to_be_bytes())
            .finalize();
        let number = |number: u64, byte| (number << 8) | u64::from(byte);
        Incarnation::of_program(token, hash.into_iter().take(8).fold(0, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_tokens_members_differ_and_say_whose_they_are() {
        let speaker = |name: &str| Speaker(Some(name.to_owned()));
        let known = |speaker: &Speaker, number: u128| {
            speaker.own(&Incarnation::new(number).to_string()).unwrap()
        };
        let (orders, bills) = (speaker("orders"), speaker("bills"));
        assert_eq!(known(&orders, 1), known(&speaker("orders"), 1));
        let all = [known(&orders, 1), known(&orders, 2), known(&bills, 1), known(&bills, 2)];
        let different: std::collections::HashSet<_> = all.into_iter().collect();
        assert_eq!(different.len(), all.len());
        assert_ne!(orders.token(), bills.token());
        for (known, token) in all.into_iter().zip([&orders, &orders, &bills, &bills]) {
            assert_eq!(known.token(), token.token());
            // Nor does a name that was seen in a list name its member.
            assert_ne!(token.own(&known.to_string()).unwrap(), known);
        }
        // Without tokens each goes by its own name.
        assert_eq!(known(&Speaker(None), 7), Incarnation::new(7));
    }
}
