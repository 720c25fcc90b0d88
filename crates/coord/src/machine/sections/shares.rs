//! Who should have what, as far as this member knows.

use std::collections::BTreeMap;

use snowmint_core::{ElapsedMillis, UnixMillis};

use super::{Actor, SectionsMachine};
use crate::member::Incarnation;
use crate::sources::{Server, Shares};

impl SectionsMachine {
    /// Who has what, for callers to be sent to; none while sections are still being let go, so that
    /// nobody is sent to where they are not yet.
    pub(crate) fn shares(&mut self, now: ElapsedMillis, actor: &Actor) -> Option<Shares> {
        self.leaving.is_empty().then(|| {
            let shares = self.shares_now(now, actor);
            // Whom we know to be gone has nothing any more.
            let held = self.blocked.iter().filter(|(_, (holder, _))| {
                self.members.iter().any(|info| info.member.incarnation == *holder)
            });
            let held = held.map(|(section, (holder, at))| (*section, (self.server(*holder), *at)));
            shares.holding(held.collect())
        })
    }

    /// One server at each address: ourselves, or who joined last. The other is its life before, which
    /// answers no more.
    pub(super) fn shares_now(&mut self, now: ElapsedMillis, actor: &Actor) -> Shares {
        let mut servers: BTreeMap<&str, (UnixMillis, Incarnation)> = BTreeMap::new();
        for info in &self.members {
            let (member, address) = (info.member.incarnation, info.member.address.as_str());
            let is_other = !address.is_empty() && address != actor.address;
            let is_over = Some(member) == actor.before || self.watch.is_silent(member, now);
            if is_other && !is_over {
                let this = (info.joined_at, member);
                servers
                    .entry(address)
                    .and_modify(|known| *known = (*known).max(this))
                    .or_insert(this);
            }
        }
        if !actor.address.is_empty() {
            servers.insert(&actor.address, (UnixMillis::MAX, actor.member));
        }
        let servers = servers.into_iter();
        let server = |(address, (_, member)): (&str, _)| Server { member, address: address.into() };
        let servers: Vec<_> = servers.map(server).collect();
        // Who serves changes seldom, and it takes a thousand comparisons.
        if !self.shares.is_of(actor.member, &servers) {
            self.shares = Shares::new(Some(actor.member), servers);
        }
        self.shares.clone()
    }

    fn server(&self, member: Incarnation) -> Server {
        let known = self.members.iter().find(|info| info.member.incarnation == member);
        let address = known.map(|info| info.member.address.clone()).unwrap_or_default();
        Server { member, address }
    }
}
