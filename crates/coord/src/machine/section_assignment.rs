//! Assignment of sections to the serving servers.
//!
//! The assignment is by rendezvous hashing: a section goes to the server whose address has the
//! highest hash with it. Every server computes the same from the same list. A server that joins or
//! leaves moves only its own part, and a restarted server gets its part again. A server that
//! declares that it does not serve something is skipped while another server does. This is only a
//! preference: the store decides who owns a section.

use std::collections::{BTreeSet, HashMap};

use snowmint_core::{ElapsedMillis, MIX_STEP, mixed};

use crate::ids::Incarnation;
use crate::model::member::Serves;
use crate::model::pool::SECTIONS;

/// Adjacent sections that are assigned together: a large number makes few ranges and short
/// responses to cluster clients, a small number makes fair parts.
const GROUP_SECTIONS: u16 = 16;

/// Milliseconds for which the store's report of another owner is believed.
pub(crate) const FRESH_MS: u64 = 5;

/// A server of counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The member.
    pub member: Incarnation,
    /// Address at which it is reached.
    pub address: String,
}

/// Assignment of sections, and their known owners.
#[derive(Clone, Debug, Default)]
pub struct SectionAssignment {
    /// Serving servers in the order of their addresses, with this one if it serves.
    servers: Vec<Server>,
    /// Kinds of sections that each of them serves.
    serves: Vec<Serves>,
    /// This process.
    own: Option<Incarnation>,
    /// Assigned server of each group of neighbouring sections, as an index into `servers`.
    owners: Vec<usize>,
    /// The same for the slots of global-order sources.
    ordered: Vec<usize>,
    /// Sections for which the store reported another owner, and the time of the report.
    held: HashMap<u16, (Server, ElapsedMillis)>,
    /// Sections that this process has stopped to serve, and the store may still hold for it: no
    /// other server has them yet.
    leaving: BTreeSet<u16>,
    /// Whether the store was asked for the peers before.
    is_listed: bool,
}

/// Location of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionLocation {
    /// In this process, or with no owner yet.
    Here,
    /// With this server.
    With(Server),
}

impl SectionAssignment {
    /// Creates the assignment for these servers, each of which serves all sections.
    #[must_use]
    pub fn new(own: Option<Incarnation>, servers: Vec<Server>) -> Self {
        Self::serving(own, servers.into_iter().map(|server| (server, Serves::All)).collect())
    }

    /// Creates the assignment for these servers, with the kinds of sections that each serves.
    #[must_use]
    pub fn serving(own: Option<Incarnation>, mut servers: Vec<(Server, Serves)>) -> Self {
        servers.sort_by(|(one, _), (next, _)| one.address.cmp(&next.address));
        let (servers, serves): (Vec<Server>, Vec<Serves>) = servers.into_iter().unzip();
        let (mut owners, mut ordered) = (Vec::new(), Vec::new());
        // A process that serves no other process owns whatever it can acquire.
        if servers.iter().any(|server| Some(server.member) == own) {
            owners = owners_of(&servers, &serves, Serves::Counters);
            ordered = owners_of(&servers, &serves, Serves::All);
        }
        let (held, leaving) = (HashMap::new(), BTreeSet::new());
        Self { servers, serves, own, owners, ordered, held, leaving, is_listed: false }
    }

    /// Returns whether this is the assignment for these servers, in the order of their addresses.
    pub(crate) fn is_of(&self, own: Incarnation, servers: &[(Server, Serves)]) -> bool {
        let ours = self.servers.iter().zip(&self.serves);
        self.own == Some(own) && ours.eq(servers.iter().map(|(server, serves)| (server, serves)))
    }

    /// Returns the same assignment with sections that other servers own, and sections that this
    /// process is about to relinquish. `is_listed`: the store was asked for the peers before.
    pub(crate) fn holding(
        self,
        held: HashMap<u16, (Server, ElapsedMillis)>,
        leaving: BTreeSet<u16>,
        is_listed: bool,
    ) -> Self {
        Self { held, leaving, is_listed, ..self }
    }

    /// Returns whether this process is about to relinquish a section: callers wait, since the next
    /// owner would send them back.
    pub(crate) fn is_leaving(&self, section: u16) -> bool {
        self.leaving.contains(&section)
    }

    /// Returns whether the store was asked for the peers before. If not, this process knows of no
    /// server but itself.
    pub(crate) const fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Returns the server to which a section is assigned; `None` if the first to acquire it owns
    /// it.
    #[must_use]
    pub fn owner(&self, section: u16) -> Option<&Server> {
        let owners = if section < SECTIONS { &self.owners } else { &self.ordered };
        let group = usize::from(section % SECTIONS / GROUP_SECTIONS);
        self.servers.get(*owners.get(group)?)
    }

    /// Returns whether a section is assigned to this process.
    #[must_use]
    pub fn is_own(&self, section: u16) -> bool {
        self.owner(section).is_none_or(|server| Some(server.member) == self.own)
    }

    /// Returns whether a section is assigned to this process as one of several servers.
    #[must_use]
    pub fn is_assigned_here(&self, section: u16) -> bool {
        self.owner(section).is_some_and(|server| Some(server.member) == self.own)
    }

    /// Returns the place to request a key of a section.
    #[must_use]
    pub fn place(&self, section: u16) -> SectionLocation {
        match self.held.get(&section) {
            Some((server, _)) => SectionLocation::With(server.clone()),
            None if self.is_own(section) => SectionLocation::Here,
            None => {
                self.owner(section).cloned().map_or(SectionLocation::Here, SectionLocation::With)
            }
        }
    }

    /// Returns whether the report on a section's owner is old: it may have released the section.
    pub(crate) fn is_holder_stale(&self, section: u16, now: ElapsedMillis) -> bool {
        self.held.get(&section).is_some_and(|(_, at)| now.since(*at) >= FRESH_MS)
    }

    /// Returns the serving servers.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Returns the incarnation of this process, if it is in the store.
    #[must_use]
    pub const fn own(&self) -> Option<Incarnation> {
        self.own
    }

    /// Returns all sections in order as ranges `(first, last, server)`, with assigned or known
    /// owner.
    #[must_use]
    pub fn ranges(&self) -> Vec<(u16, u16, Server)> {
        let own = self.servers.iter().find(|server| Some(server.member) == self.own);
        let mut ranges: Vec<(u16, u16, Server)> = Vec::new();
        for section in 0..SECTIONS {
            let server = match self.place(section) {
                SectionLocation::With(server) => server,
                SectionLocation::Here => match own {
                    Some(own) => own.clone(),
                    None => continue,
                },
            };
            match ranges.last_mut() {
                Some((_, last, before))
                    if *last + 1 == section && before.member == server.member =>
                {
                    *last = section;
                }
                _ => ranges.push((section, section, server)),
            }
        }
        ranges
    }
}

fn hash(address: &str) -> u64 {
    address.bytes().fold(0, |sum, byte| mix(sum ^ u64::from(byte)))
}

/// Returns the assigned server of each group, as an index. Servers that do not serve what is
/// `needed` are skipped; if none serves it, those that serve most get it.
fn owners_of(servers: &[Server], serves: &[Serves], needed: Serves) -> Vec<usize> {
    let most = serves.iter().copied().min().unwrap_or_default();
    let may = needed.max(most);
    let hashes: Vec<(usize, u64)> = servers
        .iter()
        .zip(serves)
        .enumerate()
        .filter(|(_, (_, serves))| **serves <= may)
        .map(|(place, (server, _))| (place, hash(&server.address)))
        .collect();
    (0..SECTIONS / GROUP_SECTIONS).map(|group| owner(&hashes, group)).collect()
}

/// Returns the index of the server whose address has the highest hash with the group.
fn owner(addresses: &[(usize, u64)], group: u16) -> usize {
    let group = mix(group.into());
    let best = addresses.iter().max_by_key(|(_, address)| mix(*address ^ group));
    best.map_or(0, |(place, _)| *place)
}

/// Spreads the bits of a number, in the way that all versions of the assignment use.
const fn mix(number: u64) -> u64 {
    mixed(number.wrapping_add(MIX_STEP))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(count: u128) -> Vec<Server> {
        let server = |number: u128| Server {
            member: Incarnation::new(number * 0x1234_5678_9abc_def0_1111_2222_3333_4444),
            address: format!("host-{number}:7701"),
        };
        (1..=count).map(server).collect()
    }

    fn owners(servers: &[Server]) -> Vec<Incarnation> {
        let assignment = SectionAssignment::new(Some(servers[0].member), servers.to_vec());
        (0..SECTIONS).map(|section| assignment.owner(section).unwrap().member).collect()
    }

    #[test]
    fn assignment_is_fair_and_deterministic() {
        for count in 1..=8 {
            let servers = servers(count);
            let found = owners(&servers);
            let mut turned = servers.clone();
            turned.rotate_left(1);
            assert_eq!(found, owners(&turned));
            let fair = f64::from(SECTIONS) / servers.len() as f64;
            for server in &servers {
                let own = found.iter().filter(|owner| **owner == server.member).count() as f64;
                assert!((0.8..=1.2).contains(&(own / fair)), "{own} of {fair}");
            }
        }
    }

    /// Servers of two versions serve together, so the assignment never changes.
    #[test]
    fn assignment_is_that_of_all_versions() {
        let three = servers(3);
        let place = |owner| three.iter().position(|server| server.member == owner).unwrap();
        let found: Vec<usize> =
            owners(&three).into_iter().map(place).step_by(GROUP_SECTIONS.into()).take(16).collect();
        assert_eq!(found, [0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 2, 2, 1, 1, 0]);
    }

    #[test]
    fn joining_server_moves_only_its_own_sections() {
        let four = servers(4);
        let (before, after) = (owners(&four[..3]), owners(&four));
        for (before, after) in before.iter().zip(&after) {
            assert!(before == after || *after == four[3].member);
        }
    }

    #[test]
    fn unavailable_server_is_skipped_while_another_serves() {
        let three = servers(3);
        let owners = |serves: [Serves; 3], sections: std::ops::Range<u16>| -> Vec<Incarnation> {
            let servers = three.iter().cloned().zip(serves).collect();
            // The first server computes the assignment, whatever it serves itself.
            let assignment = SectionAssignment::serving(Some(three[0].member), servers);
            sections.map(|section| assignment.owner(section).unwrap().member).collect()
        };
        let (counters, ordered) = (|| 0..SECTIONS, || SECTIONS..2 * SECTIONS);
        let all = owners([Serves::All; 3], counters());
        assert_eq!(all, owners([Serves::All; 3], ordered()));
        let some = [Serves::Counters, Serves::All, Serves::All];
        assert_eq!(owners(some, counters()), all);
        assert!(!owners(some, ordered()).contains(&three[0].member));
        let none = [Serves::Nothing, Serves::Counters, Serves::All];
        assert!(!owners(none, counters()).contains(&three[0].member));
        assert!(owners(none, ordered()).iter().all(|owner| *owner == three[2].member));
        // Sections of other servers stay with their servers.
        for (before, after) in all.iter().zip(owners(none, counters())) {
            assert!(*before == after || *before == three[0].member);
        }
        for serves in [Serves::Counters, Serves::Nothing] {
            assert_eq!(owners([serves; 3], counters()), all);
            assert_eq!(owners([serves; 3], ordered()), all);
        }
    }

    #[test]
    fn stored_owner_precedes_the_assignment() {
        let two = servers(2);
        let assignment = SectionAssignment::new(Some(two[0].member), two.clone());
        let section = (0..SECTIONS).find(|section| assignment.is_own(*section)).unwrap();
        assert_eq!(assignment.place(section), SectionLocation::Here);
        let assignment = assignment.holding(
            HashMap::from([(section, (two[1].clone(), ElapsedMillis::new(7)))]),
            BTreeSet::new(),
            true,
        );
        assert_eq!(assignment.place(section), SectionLocation::With(two[1].clone()));
        assert!(!assignment.is_holder_stale(section, ElapsedMillis::new(11)));
        assert!(assignment.is_holder_stale(section, ElapsedMillis::new(12)));
        let covered: u32 =
            assignment.ranges().iter().map(|(first, last, _)| u32::from(last - first) + 1).sum();
        assert_eq!(covered, u32::from(SECTIONS));
    }

    #[test]
    fn process_without_address_owns_its_sections() {
        let two = servers(2);
        let assignment = SectionAssignment::new(Some(Incarnation::new(9)), two);
        assert!((0..SECTIONS).all(|section| assignment.place(section) == SectionLocation::Here));
        assert!(assignment.ranges().is_empty());
    }
}
