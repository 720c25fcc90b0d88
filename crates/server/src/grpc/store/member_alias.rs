//! Aliases under which the store knows a caller's members.
//!
//! Lists show the names of all members. A reader of a list must not act for another member, so a
//! name counts only together with the name of the caller's token: the store knows the member by a
//! hash of both. Callers with one token can act for each other. From callers with another token,
//! and from servers, the same name identifies no member. The alias also marks the member as a
//! program of this token: programs have no influence on the time, and each token has a share of the
//! worker numbers.
//!
//! The server stores nothing for this, and every server with a token of this name computes the same
//! alias.

use sha2::{Digest as _, Sha256};
use snowmint_coord::Incarnation;
use snowmint_core::{Clock as _, SystemClock, UnixMillis};

use super::incarnation::{ReadResult, incarnation};
use crate::service::Service;

/// Distinguishes these hashes from our hashes for other purposes.
const MEMBER: &[u8] = b"snowmint member of a token\0";
const TOKEN: &[u8] = b"snowmint token of members\0";

/// Name of the caller's token; `None` where tokens are not required.
#[derive(Debug)]
pub(super) struct MemberAlias(Option<String>);

impl MemberAlias {
    pub(super) fn of(service: &Service) -> Self {
        Self(service.caller().name().map(ToOwned::to_owned))
    }

    /// Returns whether the caller's members can be servers. Servers share one token, which
    /// identifies no single server.
    pub(super) const fn can_be_server(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the time that counts for the request where the store has no clock: this server's
    /// time. A caller that chose the time could choose which members are live.
    pub(super) fn time(&self, requested: u64) -> UnixMillis {
        if self.0.is_some() { SystemClock.unix_ms() } else { UnixMillis::new(requested) }
    }

    /// Returns the alias of the member that the caller names as its own.
    pub(super) fn alias_of(&self, text: &str) -> ReadResult<Incarnation> {
        incarnation(text).map(|named| self.alias(named))
    }

    /// Returns the alias, if the caller names a member.
    pub(super) fn alias_if_named(&self, text: Option<&str>) -> ReadResult<Option<Incarnation>> {
        text.map(|text| self.alias_of(text)).transpose()
    }

    /// Returns the common part of the aliases of the token's members; `None` where tokens are not
    /// required.
    pub(super) fn token(&self) -> Option<u32> {
        let hash = Sha256::new().chain_update(TOKEN).chain_update(self.0.as_ref()?).finalize();
        let number = |number: u32, byte| (number << 8) | u32::from(byte);
        Some(hash.into_iter().take(4).fold(0, number))
    }

    /// Returns the token's name.
    pub(super) fn name(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    fn alias(&self, named: Incarnation) -> Incarnation {
        let (Some(name), Some(token)) = (&self.0, self.token()) else { return named };
        let hash = Sha256::new()
            .chain_update(MEMBER)
            .chain_update(name)
            // Fixed length, so the end of the token's name is unambiguous.
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
    fn member_names_of_a_token_are_distinct_and_show_it() {
        let member_alias = |name: &str| MemberAlias(Some(name.to_owned()));
        let known = |member_alias: &MemberAlias, number: u128| {
            member_alias.alias_of(&Incarnation::new(number).to_string()).unwrap()
        };
        let (orders, bills) = (member_alias("orders"), member_alias("bills"));
        assert_eq!(known(&orders, 1), known(&member_alias("orders"), 1));
        let all = [known(&orders, 1), known(&orders, 2), known(&bills, 1), known(&bills, 2)];
        let different: std::collections::HashSet<_> = all.into_iter().collect();
        assert_eq!(different.len(), all.len());
        assert_ne!(orders.token(), bills.token());
        for (known, token) in all.into_iter().zip([&orders, &orders, &bills, &bills]) {
            assert_eq!(known.token(), token.token());
            // A name from a list does not identify its member either.
            assert_ne!(token.alias_of(&known.to_string()).unwrap(), known);
        }
        // Without tokens each name stands for itself.
        assert_eq!(known(&MemberAlias(None), 7), Incarnation::new(7));
    }
}
