//! Which other servers this process reaches at their addresses, as whoever sends requests there finds out.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Server;
use crate::member::Incarnation;

/// Who is not reached, and who is to be tried.
#[derive(Debug, Default)]
pub(crate) struct Reaching {
    known: Mutex<Known>,
    /// Told when somebody is to be tried.
    due: Notify,
}

#[derive(Debug, Default)]
struct Known {
    /// A request was not answered, and none of our tries has been since.
    suspected: BTreeSet<Incarnation>,
    /// Those that did not answer the last try.
    unreached: BTreeSet<Incarnation>,
    to_try: Vec<Server>,
}

impl Reaching {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Plain sets, whole after every statement.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was not answered. Whether that is news.
    pub(crate) fn suspect(&self, server: Incarnation) -> bool {
        self.known().suspected.insert(server)
    }

    /// A try was answered, or not. Whether that is news.
    pub(crate) fn tried(&self, server: Incarnation, answered: bool) -> bool {
        let mut known = self.known();
        if answered {
            known.suspected.remove(&server);
            known.unreached.remove(&server)
        } else {
            known.unreached.insert(server)
        }
    }

    /// Those that are to be tried; waits until there are some.
    pub(crate) async fn to_try(&self) -> Vec<Server> {
        loop {
            let due = self.due.notified();
            let servers = self.known().to_try.clone();
            if !servers.is_empty() {
                return servers;
            }
            due.await;
        }
    }

    // What follows is for the driver.

    /// Of these servers, who is not reached. They are to be tried who are not, or may not be, by ourselves or as
    /// `others` say.
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
        let to_try: Vec<Server> = servers.iter().filter(is_due).cloned().collect();
        known.to_try = to_try;
        if !known.to_try.is_empty() {
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
    async fn who_may_not_be_reached_is_tried_until_it_answers() {
        let (reaching, nobody) = (Reaching::default(), BTreeSet::new());
        let servers = [server(1), server(2), server(3)];
        let [one, two, _] = servers.each_ref().map(|server| server.member);
        assert!(reaching.look(&servers, &nobody).is_empty());
        assert!(reaching.suspect(one) && !reaching.suspect(one));
        assert!(reaching.look(&servers, &BTreeSet::from([two])).is_empty(), "none was tried yet");
        assert_eq!(reaching.to_try().await, servers[..2]);
        assert!(reaching.tried(one, false) && !reaching.tried(one, false));
        assert!(!reaching.tried(two, true));
        assert_eq!(reaching.look(&servers, &nobody), BTreeSet::from([one]));
        assert_eq!(reaching.to_try().await, servers[..1]);
        assert!(reaching.tried(one, true));
        assert!(reaching.look(&servers, &nobody).is_empty());
        // It is waited for until somebody is to be tried.
        let waits = reaching.to_try();
        tokio::pin!(waits);
        tokio::select! {
            biased;
            servers = &mut waits => panic!("{servers:?}"),
            () = tokio::task::yield_now() => {}
        }
        reaching.suspect(one);
        reaching.look(&servers, &nobody);
        assert_eq!(waits.await, servers[..1]);
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let (reaching, nobody) = (Reaching::default(), BTreeSet::new());
        reaching.suspect(Incarnation::new(1));
        reaching.tried(Incarnation::new(1), false);
        assert!(reaching.look(&[server(2)], &nobody).is_empty());
        assert!(reaching.look(&[server(1)], &nobody).is_empty());
    }
}
