//! Reachability of peers at their addresses, found out by requests and probes.

use std::collections::BTreeSet;
use std::sync::Mutex;

use tokio::sync::Notify;

use crate::ids::Incarnation;
use crate::machine::section_assignment::Server;
use crate::platform::lock::lock;

/// Unreachable peers, and peers to probe.
#[derive(Debug, Default)]
pub(crate) struct PeerProbes {
    known: Mutex<KnownPeers>,
    /// Notified when there are peers to probe.
    due: Notify,
}

#[derive(Debug, Default)]
struct KnownPeers {
    /// Peers that left a request without response and have not responded to a probe since.
    suspected: BTreeSet<Incarnation>,
    /// Peers that did not respond to the last probe.
    unreached: BTreeSet<Incarnation>,
    due: Vec<Server>,
}

impl PeerProbes {
    /// Records that a request got no response; returns whether this is news.
    pub(crate) fn suspect(&self, server: Incarnation) -> bool {
        lock(&self.known).suspected.insert(server)
    }

    /// Records whether a probe got a response; returns whether this is news.
    pub(crate) fn probed(&self, server: Incarnation, responded: bool) -> bool {
        let mut known = lock(&self.known);
        if responded {
            known.suspected.remove(&server);
            known.unreached.remove(&server)
        } else {
            known.unreached.insert(server)
        }
    }

    /// Returns the peers to probe; waits until there are some.
    pub(crate) async fn to_probe(&self) -> Vec<Server> {
        loop {
            let due = self.due.notified();
            let servers = lock(&self.known).due.clone();
            if !servers.is_empty() {
                return servers;
            }
            due.await;
        }
    }

    // The driver calls the following.

    /// Returns the unreachable peers among `servers`. From now on those peers are probed that this
    /// process cannot or may not reach, or that `others` report.
    pub(crate) fn poll(
        &self,
        servers: &[Server],
        others: &BTreeSet<Incarnation>,
    ) -> BTreeSet<Incarnation> {
        let mut known = lock(&self.known);
        let is_there = |member: &Incarnation| servers.iter().any(|there| there.member == *member);
        known.suspected.retain(is_there);
        known.unreached.retain(is_there);
        let is_due = |server: &&Server| {
            let member = &server.member;
            known.suspected.contains(member)
                || known.unreached.contains(member)
                || others.contains(member)
        };
        let due: Vec<Server> = servers.iter().filter(is_due).cloned().collect();
        known.due = due;
        if !known.due.is_empty() {
            self.due.notify_waiters();
        }
        known.unreached.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(number: u128) -> Server {
        Server { member: Incarnation::new(number), address: format!("host-{number}") }
    }

    #[tokio::test]
    async fn a_peer_that_may_not_be_reached_is_probed_until_it_responds() {
        let (probes, none) = (PeerProbes::default(), BTreeSet::new());
        let servers = [server(1), server(2), server(3)];
        let [one, two, _] = servers.each_ref().map(|server| server.member);
        assert!(probes.poll(&servers, &none).is_empty());
        assert!(probes.suspect(one) && !probes.suspect(one));
        assert!(probes.poll(&servers, &BTreeSet::from([two])).is_empty(), "none was probed yet");
        assert_eq!(probes.to_probe().await, servers[..2]);
        assert!(probes.probed(one, false) && !probes.probed(one, false));
        assert!(!probes.probed(two, true));
        assert_eq!(probes.poll(&servers, &none), BTreeSet::from([one]));
        assert_eq!(probes.to_probe().await, servers[..1]);
        assert!(probes.probed(one, true));
        assert!(probes.poll(&servers, &none).is_empty());
        // The call waits until there is a peer to probe.
        let waits = probes.to_probe();
        tokio::pin!(waits);
        tokio::select! {
            biased;
            servers = &mut waits => panic!("{servers:?}"),
            () = tokio::task::yield_now() => {}
        }
        probes.suspect(one);
        probes.poll(&servers, &none);
        assert_eq!(waits.await, servers[..1]);
    }

    #[test]
    fn a_peer_that_left_is_forgotten() {
        let (probes, none) = (PeerProbes::default(), BTreeSet::new());
        probes.suspect(Incarnation::new(1));
        probes.probed(Incarnation::new(1), false);
        assert!(probes.poll(&[server(2)], &none).is_empty());
        assert!(probes.poll(&[server(1)], &none).is_empty());
    }
}
