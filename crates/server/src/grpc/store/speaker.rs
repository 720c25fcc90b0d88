//! As whom a caller's members are known to the store.
//!
//! Lists show the names of all members. So that nobody speaks for another who has read them, a name counts together
//! with that of the token by which it is said: the store knows the member by a hash of both. Callers by one token can
//! speak for each other; for those by another, and for servers, whatever they say names nobody.
//!
//! Nothing is kept for it, and every server with a token of this name comes to the same.

use sha2::{Digest as _, Sha256};
use snowmint_coord::Incarnation;

use super::read::{Read, incarnation};
use crate::service::Service;

/// So that no hash of ours for something else is one of these.
const PURPOSE: &[u8] = b"snowmint member of a token\0";

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

    /// The member that the caller names as its own.
    pub(super) fn own(&self, text: &str) -> Read<Incarnation> {
        incarnation(text).map(|named| self.known_as(named))
    }

    /// The same, if it names one.
    pub(super) fn own_if(&self, text: Option<&str>) -> Read<Option<Incarnation>> {
        text.map(|text| self.own(text)).transpose()
    }

    fn known_as(&self, named: Incarnation) -> Incarnation {
        let Some(token) = &self.0 else { return named };
        let hash = Sha256::new()
            .chain_update(PURPOSE)
            .chain_update(token)
            // Of one length, so the end of the token's name is where it is.
            .chain_update(named.get().to_be_bytes());
        let half = hash.finalize().into_iter().take(16);
        Incarnation::new(half.fold(0, |number, byte| (number << 8) | u128::from(byte)))
    }
}
