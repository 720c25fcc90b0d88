//! Limits that callers share, so that no caller can use one up.
//!
//! The problem: a limit over all connections protects the memory of the server. By itself it lets
//! one caller take all of it, after which every other caller is rejected.
//!
//! This module's way: it counts the use of each token, or of each address without a token. Any
//! caller may use the first half of a limit. Beyond the half, no caller gets more than a share, and
//! callers without a token leave room for those with one.

use std::collections::HashMap;
use std::collections::hash_map;
use std::hash::Hash;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::access::Caller;
use crate::clients::share::Client;
use crate::clients::tracker::TrackedConnection;
use snowmint_coord::lock;

/// Bounds of one resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Bound over all callers.
    pub(crate) all: usize,
    /// Bound of one token or address, once half of `all` is used.
    pub(crate) share: usize,
    /// Bound of one connection.
    pub(crate) connection: usize,
}

/// A limit, and its use.
#[derive(Debug)]
pub(crate) struct Quota {
    bounds: Bounds,
    /// Bound over all callers without a token.
    anonymous_max: usize,
    /// Same count as in `used`, for reads without a lock.
    all: AtomicUsize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    all: usize,
    anonymous: usize,
    clients: HashMap<Client, usize>,
    connections: HashMap<SocketAddr, usize>,
}

/// The bound that a request would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Connection,
    Share,
    Anonymous,
    All,
}

impl Full {
    /// Returns the scope of the bound, for a sentence.
    pub(crate) const fn scope(self) -> &'static str {
        match self {
            Self::Connection => "of this connection",
            Self::Share => "of one token or address",
            Self::Anonymous => "without a token",
            Self::All => "in all",
        }
    }
}

/// A part of a limit that is in use until this is dropped.
#[derive(Debug)]
pub(crate) struct QuotaPermit {
    quota: Arc<Quota>,
    client: Client,
    is_anonymous: bool,
    connection: Option<SocketAddr>,
    amount: usize,
}

impl Quota {
    /// Creates a limit. Where tokens are not required, it keeps no room for callers with one.
    pub(crate) fn new(bounds: Bounds, requires_tokens: bool) -> Arc<Self> {
        let anonymous_max = if requires_tokens { bounds.all / 2 } else { bounds.all };
        Arc::new(Self {
            bounds,
            anonymous_max,
            all: AtomicUsize::default(),
            used: Mutex::default(),
        })
    }

    pub(crate) const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Takes this much for a caller.
    ///
    /// # Errors
    /// The bound that is reached.
    pub(crate) fn try_acquire(
        self: &Arc<Self>,
        caller: &Caller,
        amount: usize,
    ) -> Result<QuotaPermit, Full> {
        let mut permit = self.nothing(caller);
        permit.grow(amount)?;
        Ok(permit)
    }

    /// Takes this much for a caller without a check: the work is done already, and new work is
    /// rejected.
    pub(crate) fn acquire_anyway(self: &Arc<Self>, caller: &Caller, amount: usize) -> QuotaPermit {
        let mut permit = self.nothing(caller);
        permit.count(&mut lock(&self.used), amount);
        permit
    }

    /// Checks whether a caller may begin something that takes this much later. Costs one load up to
    /// half of the limit.
    ///
    /// # Errors
    /// The bound that is reached.
    pub(crate) fn check(self: &Arc<Self>, caller: &Caller, amount: usize) -> Result<(), Full> {
        let all = self.all.load(Ordering::Relaxed).saturating_add(amount);
        if all <= self.bounds.all / 2 {
            return Ok(());
        }
        self.nothing(caller).check(&lock(&self.used), amount)
    }

    /// Returns an empty part for the client of a connection.
    pub(crate) fn over(self: &Arc<Self>, connection: &TrackedConnection) -> QuotaPermit {
        QuotaPermit {
            quota: Arc::clone(self),
            client: connection.client(),
            is_anonymous: !connection.is_known(),
            connection: Some(connection.peer),
            amount: 0,
        }
    }

    /// Returns the amount that a bound permits.
    pub(crate) const fn most(&self, bound: Full) -> usize {
        match bound {
            Full::Connection => self.bounds.connection,
            Full::Share => self.bounds.share,
            Full::Anonymous => self.anonymous_max,
            Full::All => self.bounds.all,
        }
    }

    /// Returns the amount in use.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    fn nothing(self: &Arc<Self>, caller: &Caller) -> QuotaPermit {
        QuotaPermit {
            quota: Arc::clone(self),
            client: caller.client(),
            is_anonymous: !caller.has_a_token(),
            connection: caller.address(),
            amount: 0,
        }
    }
}

impl QuotaPermit {
    /// Takes more.
    ///
    /// # Errors
    /// The bound that is reached; nothing is taken then.
    pub(crate) fn grow(&mut self, amount: usize) -> Result<(), Full> {
        let quota = Arc::clone(&self.quota);
        let mut used = lock(&quota.used);
        self.check(&used, amount)?;
        self.count(&mut used, amount);
        Ok(())
    }

    fn check(&self, used: &Used, amount: usize) -> Result<(), Full> {
        let Bounds { all, share, connection } = self.quota.bounds;
        let beyond = |used: usize, most: usize| used.saturating_add(amount) > most;
        let own = self.connection.and_then(|own| used.connections.get(&own));
        if beyond(own.copied().unwrap_or_default(), connection) {
            return Err(Full::Connection);
        }
        let own = used.clients.get(&self.client).copied().unwrap_or_default();
        if beyond(used.all, all / 2) && beyond(own, share) {
            return Err(Full::Share);
        }
        if beyond(used.all, all) {
            return Err(Full::All);
        }
        let is_full = self.is_anonymous && beyond(used.anonymous, self.quota.anonymous_max);
        if is_full { Err(Full::Anonymous) } else { Ok(()) }
    }

    fn count(&mut self, used: &mut Used, amount: usize) {
        self.amount = self.amount.saturating_add(amount);
        used.all = used.all.saturating_add(amount);
        if self.is_anonymous {
            used.anonymous = used.anonymous.saturating_add(amount);
        }
        add(&mut used.clients, self.client.clone(), amount);
        if let Some(connection) = self.connection {
            add(&mut used.connections, connection, amount);
        }
        self.quota.all.store(used.all, Ordering::Relaxed);
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        if self.amount == 0 {
            return;
        }
        let mut used = lock(&self.quota.used);
        used.all = used.all.saturating_sub(self.amount);
        if self.is_anonymous {
            used.anonymous = used.anonymous.saturating_sub(self.amount);
        }
        sub(&mut used.clients, self.client.clone(), self.amount);
        if let Some(connection) = self.connection {
            sub(&mut used.connections, connection, self.amount);
        }
        self.quota.all.store(used.all, Ordering::Relaxed);
    }
}

fn add<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K, amount: usize) {
    let count = counts.entry(key).or_default();
    *count = count.saturating_add(amount);
}

/// Subtracts, and forgets clients that use nothing.
fn sub<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K, amount: usize) {
    if let hash_map::Entry::Occupied(mut entry) = counts.entry(key) {
        let left = entry.get().saturating_sub(amount);
        if left == 0 {
            entry.remove();
        } else {
            entry.insert(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { all: 100, share: 20, connection: 80 };

    fn at(address: &str) -> Caller {
        Caller::unrestricted().over(&Arc::new(TrackedConnection::new(
            1,
            address.parse().unwrap(),
            0,
        )))
    }

    #[test]
    fn anonymous_callers_get_half_and_clients_their_share() {
        let quota = Quota::new(BOUNDS, false);
        let greedy = quota.try_acquire(&at("10.0.0.1:1"), 50).unwrap();
        assert_eq!(quota.try_acquire(&at("10.0.0.1:2"), 1).unwrap_err(), Full::Share);
        let other = quota.try_acquire(&at("10.0.0.2:1"), 20).unwrap();
        assert_eq!(quota.try_acquire(&at("10.0.0.2:2"), 1).unwrap_err(), Full::Share);
        assert_eq!(quota.check(&at("10.0.0.2:2"), 1), Err(Full::Share));
        assert_eq!(quota.check(&at("10.0.0.3:1"), 20), Ok(()));
        let _rest = [3, 4].map(|n| quota.try_acquire(&at(&format!("10.0.0.{n}:1")), 15).unwrap());
        assert_eq!(quota.try_acquire(&at("10.0.0.5:1"), 1).unwrap_err(), Full::All);
        drop(other);
        drop(greedy);
        assert!(
            quota.try_acquire(&at("10.0.0.1:3"), 20).is_ok(),
            "what was given back is there again"
        );
    }

    #[test]
    fn anonymous_callers_leave_room_where_tokens_are_required() {
        let quota = Quota::new(BOUNDS, true);
        let permits: Vec<_> = (1..=5)
            .map(|n| quota.try_acquire(&at(&format!("10.0.0.{n}:1")), 10).unwrap())
            .collect();
        assert_eq!(quota.try_acquire(&at("10.0.0.7:1"), 1).unwrap_err(), Full::Anonymous);
        // A peer shows a token.
        assert!(quota.try_acquire(&Caller::peer(), 20).is_ok());
        drop(permits);
        assert!(lock(&quota.used).clients.is_empty(), "a client that uses nothing is forgotten");
        assert!(lock(&quota.used).connections.is_empty());
        assert_eq!(quota.used(), 0);
    }

    #[test]
    fn connection_has_a_bound_of_its_own() {
        let quota = Quota::new(Bounds { connection: 8, ..BOUNDS }, false);
        let one = quota.try_acquire(&at("10.0.0.1:1"), 8).unwrap();
        assert_eq!(quota.try_acquire(&at("10.0.0.1:1"), 1).unwrap_err(), Full::Connection);
        assert!(quota.try_acquire(&at("10.0.0.1:2"), 8).is_ok(), "another connection");
        drop(one);
        assert!(quota.try_acquire(&at("10.0.0.1:1"), 8).is_ok());
    }
}
