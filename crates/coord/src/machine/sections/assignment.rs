//! Assignment of sections to servers, as far as this member knows.

use std::collections::{BTreeMap, BTreeSet};

use snowmint_core::{ElapsedMillis, UnixMillis};

use super::{Actor, SectionsMachine};
use crate::ids::Incarnation;
use crate::machine::section_assignment::{SectionAssignment, Server};
use crate::model::member::{MemberInfo, Serves};

impl SectionsMachine {
    /// Returns the section owners, to which callers are sent.
    pub(crate) fn assignment(&mut self, now: ElapsedMillis, actor: &Actor) -> SectionAssignment {
        let assignment = self.assignment_now(now, actor);
        // A member that is known to be gone owns nothing any more.
        let held = self.blocked.iter().filter(|(_, (holder, _))| {
            self.members.iter().any(|info| info.member.incarnation == *holder)
        });
        let held = held.map(|(section, (holder, at))| (*section, (self.server(*holder), *at)));
        assignment.holding(held.collect(), self.leaving.clone(), self.is_listed)
    }

    /// Returns the assignment over one server for each address: this member, or the member that
    /// joined last. An older member at an address is the server's previous life, which has stopped
    /// minting.
    pub(super) fn assignment_now(
        &mut self,
        now: ElapsedMillis,
        actor: &Actor,
    ) -> SectionAssignment {
        let mut servers: BTreeMap<&str, (UnixMillis, Incarnation, Serves)> = BTreeMap::new();
        for info in &self.members {
            let (member, address) = (info.member.incarnation, info.member.address.as_str());
            if self.serves_as_peer(info, now, actor) {
                let this = (info.joined_at, member, info.status.serves);
                servers
                    .entry(address)
                    .and_modify(|known| *known = (*known).max(this))
                    .or_insert(this);
            }
        }
        if !actor.address.is_empty() {
            servers.insert(&actor.address, (UnixMillis::MAX, actor.member, actor.serves));
        }
        let servers = servers.into_iter();
        let server = |(address, (_, member, serves)): (&str, _)| {
            (Server { member, address: address.into() }, serves)
        };
        let servers: Vec<_> = servers.map(server).collect();
        // The servers change seldom, and computing the assignment takes a thousand comparisons.
        if !self.assignment.is_of(actor.member, &servers) {
            self.assignment = SectionAssignment::serving(Some(actor.member), servers);
        }
        self.assignment.clone()
    }

    /// Returns whether another member serves, at an address of its own.
    fn serves_as_peer(&self, info: &MemberInfo, now: ElapsedMillis, actor: &Actor) -> bool {
        let (member, address) = (info.member.incarnation, info.member.address.as_str());
        let is_other = !address.is_empty() && address != actor.address;
        let is_over = Some(member) == actor.before || self.watch.is_stalled(member, now);
        is_other && !is_over
    }

    /// Evaluates the peers' reports of unreachable peers. Returns whether more than half of the
    /// peers cannot reach this member, and which other peers were reported.
    pub(crate) fn reached(
        &self,
        now: ElapsedMillis,
        actor: &Actor,
    ) -> (bool, BTreeSet<Incarnation>) {
        let (mut others, mut without_us, mut unreachable) = (0_usize, 0_usize, BTreeSet::new());
        for info in &self.members {
            if self.serves_as_peer(info, now, actor) {
                others += 1;
                without_us += usize::from(info.status.unreachable.contains(&actor.member));
                unreachable.extend(&info.status.unreachable);
            }
        }
        unreachable.remove(&actor.member);
        (2 * without_us > others, unreachable)
    }

    /// Returns the peers that serve.
    pub(crate) fn others(&self) -> impl Iterator<Item = &Server> {
        let own = self.assignment.own();
        self.assignment.servers().iter().filter(move |server| Some(server.member) != own)
    }

    fn server(&self, member: Incarnation) -> Server {
        let known = self.members.iter().find(|info| info.member.incarnation == member);
        let address = known.map(|info| info.member.address.clone()).unwrap_or_default();
        Server { member, address }
    }
}
