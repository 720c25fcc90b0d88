//! Which peers this process reaches at their addresses, as requests and probes find out.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Server;
use crate::member::Incarnation;

/// Which peers are not reached, and which are to be probed.
#[derive(Debug, Default)]
pub(crate) struct PeerProbes {
    known: Mutex<Known>,
    /// Notified when peers are to be probed.
    due: Notify,
}

#[derive(Debug, Default)]
struct Known {
    /// A request got no response, and no probe has since.
    suspected: BTreeSet<Incarnation>,
    /// Those that did not respond to the last probe.
    unreached: BTreeSet<Incarnation>,
    due: Vec<Server>,
}

impl PeerProbes {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Plain sets, whole after every statement.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request got no response. Returns whether that is news.
    pub(crate) fn suspect(&self, server: Incarnation) -> bool {
        self.known().suspected.insert(server)
    }

    /// A probe got a response, or none. Returns whether that is news.
    pub(crate) fn probed(&self, server: Incarnation, responded: bool) -> bool {
        let mut known = self.known();
        if responded {
            known.suspected.remove(&server);
            known.unreached.remove(&server)
        } else {
            known.unreached.insert(server)
        }
    }

    /// Those that are to be probed; waits until there are some.
    pub(crate) async fn to_probe(&self) -> Vec<Server> {
        loop {
            let due = self.due.notified();
            let servers = self.known().due.clone();
            if !servers.is_empty() {
                return servers;
            }
            due.await;
        }
    }

    // What follows is for the driver.

    /// Which of these peers are not reached. From now on those are probed that are not, or may not be: by this
    /// process, or as `others` report.
    pub(crate) fn look(
        &self,
        servers: &[Server],
        others: &BTreeSet<Incarnation>,
    ) -> BTreeSet<Incarnation> {
        let mut known = self.known();
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
        let (probes, nobody) = (PeerProbes::default(), BTreeSet::new());
        let servers = [server(1), server(2), server(3)];
        let [one, two, _] = servers.each_ref().map(|server| server.member);
        assert!(probes.look(&servers, &nobody).is_empty());
        assert!(probes.suspect(one) && !probes.suspect(one));
        assert!(probes.look(&servers, &BTreeSet::from([two])).is_empty(), "none was probed yet");
        assert_eq!(probes.to_probe().await, servers[..2]);
        assert!(probes.probed(one, false) && !probes.probed(one, false));
        assert!(!probes.probed(two, true));
        assert_eq!(probes.look(&servers, &nobody), BTreeSet::from([one]));
        assert_eq!(probes.to_probe().await, servers[..1]);
        assert!(probes.probed(one, true));
        assert!(probes.look(&servers, &nobody).is_empty());
        // It waits until a peer is to be probed.
        let waits = probes.to_probe();
        tokio::pin!(waits);
        tokio::select! {
            biased;
            servers = &mut waits => panic!("{servers:?}"),
            () = tokio::task::yield_now() => {}
        }
        probes.suspect(one);
        probes.look(&servers, &nobody);
        assert_eq!(waits.await, servers[..1]);
    }

    #[test]
    fn a_peer_that_left_is_forgotten() {
        let (probes, nobody) = (PeerProbes::default(), BTreeSet::new());
        probes.suspect(Incarnation::new(1));
        probes.probed(Incarnation::new(1), false);
        assert!(probes.look(&[server(2)], &nobody).is_empty());
        assert!(probes.look(&[server(1)], &nobody).is_empty());
    }
}
