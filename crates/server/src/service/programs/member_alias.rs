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
use snowmint_coord::{
    Acquire, ClaimRequest, Exclude, Extend, FastForward, GiveBack, Incarnation, Mark, Member,
    NewDefinition, Presence, Release, Relinquish, Reserve, Restripe, SourceState, StoreIdentity,
};
use snowmint_core::{Clock as _, SystemClock, UnixMillis};

use crate::service::Service;

/// Distinguishes these hashes from our hashes for other purposes.
const MEMBER: &[u8] = b"snowmint member of a token\0";
const TOKEN: &[u8] = b"snowmint token of members\0";

/// Name of the caller's token; `None` where tokens are not required.
#[derive(Debug)]
pub(crate) struct MemberAlias(Option<String>);

impl MemberAlias {
    pub(crate) fn of(service: &Service) -> Self {
        Self(service.caller().name().map(ToOwned::to_owned))
    }

    /// Returns whether the caller's members can be servers. Servers share one token, which
    /// identifies no single server.
    pub(crate) const fn can_be_server(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the common part of the aliases of the token's members; `None` where tokens are not
    /// required.
    pub(crate) fn token(&self) -> Option<u32> {
        let hash = Sha256::new().chain_update(TOKEN).chain_update(self.0.as_ref()?).finalize();
        let number = |number: u32, byte| (number << 8) | u32::from(byte);
        Some(hash.into_iter().take(4).fold(0, number))
    }

    /// Returns the token's name.
    pub(crate) fn name(&self) -> &str {
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

/// A call as the store takes it: its own members by their aliases, and the time that counts. Every
/// call has a row here, so that none reaches the store with a name that its caller chose.
pub(crate) trait Aliased {
    /// Replaces what the caller chose.
    fn alias(&mut self, member_alias: &MemberAlias);
}

/// The member that the caller names as its own.
impl Aliased for Incarnation {
    fn alias(&mut self, member_alias: &MemberAlias) {
        *self = member_alias.alias(*self);
    }
}

/// The time that counts for the request where the store has no clock is this server's. A caller
/// that chose the time could choose which members are live.
impl Aliased for UnixMillis {
    fn alias(&mut self, member_alias: &MemberAlias) {
        if !member_alias.can_be_server() {
            *self = SystemClock.unix_ms();
        }
    }
}

impl Aliased for Member {
    fn alias(&mut self, member_alias: &MemberAlias) {
        self.incarnation.alias(member_alias);
        // Servers send secrets among themselves to the addresses of members, and share sections
        // with them.
        if !member_alias.can_be_server() {
            self.address.clear();
        }
    }
}

/// Implements [`Aliased`] by the parts that a caller chooses. All others stand after `kept`, so that
/// a new part does not compile until it has its place.
macro_rules! aliased {
    ($($call:ident: [$($part:ident)*] kept [$($kept:ident)*])*) => {$(
        impl Aliased for $call {
            fn alias(&mut self, member_alias: &MemberAlias) {
                let Self { $($part,)* $($kept: _),* } = self;
                $($part.alias(member_alias);)*
            }
        }
    )*};
}

aliased! {
    Presence: [sample] kept [renewals ttl_ms]
    ClaimRequest: [member supersedes] kept [pool owner count preference mark_at_most request]
    Extend: [holder] kept [pool slot term from to request ahead_max_ms]
    Release: [holder] kept [pool slot term mark from]
    // Stalled members are those of other callers, named as in lists.
    Acquire: [member supersedes] kept [pool owner slots stalled length request]
    Relinquish: [member] kept [pool slots]
}

/// Implements [`Aliased`] for values without a member or a time that counts.
macro_rules! kept {
    ($($call:ty $({ $($part:ident)* })?;)*) => {$(
        impl Aliased for $call {
            fn alias(&mut self, _: &MemberAlias) {
                $(let Self { $($part: _),* } = self;)?
            }
        }
    )*};
}

kept! {
    Exclude { pool slots until label };
    StoreIdentity { id writes };
    // The time in its ticks has limits of its own.
    Reserve { source length definition_version within };
    GiveBack { source first last version };
    NewDefinition { name spec identity enabled };
    Restripe { new if_version mark };
    FastForward {
        marks_at_least segments writes_at_least recoveries_at_least catalog_at_least planned_on
        forget_journals new_identity same_server values_only
    };
    ();
    String;
    Mark;
    Option<u64>;
    SourceState;
}

impl Aliased for Option<Incarnation> {
    fn alias(&mut self, member_alias: &MemberAlias) {
        self.iter_mut().for_each(|named| named.alias(member_alias));
    }
}

impl Aliased for Vec<Extend> {
    fn alias(&mut self, member_alias: &MemberAlias) {
        self.iter_mut().for_each(|item| item.alias(member_alias));
    }
}

impl<A: Aliased, B: Aliased> Aliased for (A, B) {
    fn alias(&mut self, member_alias: &MemberAlias) {
        self.0.alias(member_alias);
        self.1.alias(member_alias);
    }
}

impl<A: Aliased, B: Aliased, C: Aliased> Aliased for (A, B, C) {
    fn alias(&mut self, member_alias: &MemberAlias) {
        self.0.alias(member_alias);
        self.1.alias(member_alias);
        self.2.alias(member_alias);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmint_coord::{Pool, Preference, Reuse, StalledMember, Term};

    #[test]
    fn member_names_of_a_token_are_distinct_and_show_it() {
        let member_alias = |name: &str| MemberAlias(Some(name.to_owned()));
        let known =
            |member_alias: &MemberAlias, number: u128| member_alias.alias(Incarnation::new(number));
        let (orders, bills) = (member_alias("orders"), member_alias("bills"));
        assert_eq!(known(&orders, 1), known(&member_alias("orders"), 1));
        let all = [known(&orders, 1), known(&orders, 2), known(&bills, 1), known(&bills, 2)];
        let different: std::collections::HashSet<_> = all.into_iter().collect();
        assert_eq!(different.len(), all.len());
        assert_ne!(orders.token(), bills.token());
        for (known, token) in all.into_iter().zip([&orders, &orders, &bills, &bills]) {
            assert_eq!(known.token(), token.token());
            // A name from a list does not identify its member either.
            assert_ne!(token.alias(known), known);
        }
        // Without tokens each name stands for itself.
        assert_eq!(known(&MemberAlias(None), 7), Incarnation::new(7));
    }

    fn pool() -> Pool {
        Pool { name: "workers-10".into(), slots: 1024, group: 1, reuse: Reuse::Recycle }
    }

    /// Returns a call as the store takes it from callers without and with a token.
    fn both<C: Aliased + Clone>(call: &C) -> [C; 2] {
        [MemberAlias(None), MemberAlias(Some("orders".into()))].map(|member_alias| {
            let mut call = call.clone();
            call.alias(&member_alias);
            call
        })
    }

    #[test]
    fn every_call_names_its_members_by_their_aliases() {
        let [own, other] = [1, 2].map(Incarnation::new);
        let [_, (alias, now)] = both(&(own, UnixMillis::new(5)));
        assert_ne!((alias, now), (own, UnixMillis::new(5)));
        assert!(now > UnixMillis::new(5), "this server's time");
        let owner = String::from("owner");
        let member = Member {
            incarnation: own,
            owner: owner.clone(),
            host: "host".into(),
            process: 7,
            address: "http://ids:7700".into(),
        };
        let presence = Presence { sample: UnixMillis::new(5), renewals: 3, ttl_ms: 10_000 };
        let [theirs, ours] = both(&(member.clone(), presence, UnixMillis::new(5)));
        assert_eq!(theirs, (member.clone(), presence, UnixMillis::new(5)));
        assert_eq!(ours.0, Member { incarnation: alias, address: String::new(), ..member });
        assert!(ours.1.sample >= now && ours.2 >= now);
        assert_eq!((ours.1.renewals, ours.1.ttl_ms), (3, 10_000));

        let claim = ClaimRequest {
            pool: pool(),
            member: own,
            owner: owner.clone(),
            count: 1,
            preference: Preference::Any,
            supersedes: Some(own),
            mark_at_most: Mark::MAX,
            request: 9,
        };
        let ours = ClaimRequest { member: alias, supersedes: Some(alias), ..claim.clone() };
        assert_eq!(both(&claim), [claim, ours]);
        let extend = Extend {
            pool: "workers-10".into(),
            slot: 1,
            term: Term::new(1),
            holder: Some(own),
            from: Mark::ZERO,
            to: Mark::MAX,
            request: 9,
            ahead_max_ms: None,
        };
        let nobodys = Extend { holder: None, ..extend.clone() };
        let ours = Extend { holder: Some(alias), ..extend.clone() };
        let [_, items] = both(&vec![extend, nobodys.clone()]);
        assert_eq!(items, [ours, nobodys]);
        let release = Release {
            pool: "workers-10".into(),
            slot: 1,
            term: Term::new(1),
            holder: Some(own),
            mark: Mark::ZERO,
            from: None,
        };
        let ours = Release { holder: Some(alias), ..release.clone() };
        assert_eq!(both(&release), [release, ours]);
        let acquire = Acquire {
            pool: pool(),
            member: own,
            owner,
            slots: vec![1],
            stalled: vec![StalledMember { member: other, renewals: 3 }],
            supersedes: Some(own),
            length: 1,
            request: 9,
        };
        let ours = Acquire { member: alias, supersedes: Some(alias), ..acquire.clone() };
        assert_eq!(both(&acquire), [acquire, ours]);
        let relinquish = Relinquish { pool: "sections".into(), member: own, slots: Vec::new() };
        let ours = Relinquish { member: alias, ..relinquish.clone() };
        assert_eq!(both(&relinquish), [relinquish, ours]);
    }
}
