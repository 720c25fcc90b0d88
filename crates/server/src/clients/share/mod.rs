//! Shares of a limit that all clients have in common.
//!
//! The first client could hold all of such a limit, and then clients that hold nothing would get
//! the errors. A fixed number for each client would leave most of it unused while few clients
//! exist. So the part that a client may hold depends on the free part, as in switches whose ports
//! share a buffer (Choudhury and Hahne, "Dynamic queue length thresholds", 1998). As a part of the
//! limit, it is at most the square of the part that is free afterwards.
//!
//! ```text
//! held / limit <= (free / limit)²
//! ```
//!
//! **With K clients, whatever they take and in whatever order, at least `limit / (K + 1)` is free,
//! and one more client can always take `limit / (K + 2)²`.** Proof, with a limit of 1: number the
//! clients by the time of their last take. Let `f(j)` be the part that the first `j` leave free
//! with what they hold now, `f(0) = 1`. When client `j` took last, those before it held no less
//! than now, so at most `f(j)` was free, and it holds at most `f(j)²`. Hence `f(j) >= f(j-1) -
//! f(j)²`, that is `1/f(j) <= 1/f(j-1) + f(j)/f(j-1) <= 1/f(j-1) + 1`, and `f(K) >= 1/(K+1)`. A
//! newcomer that takes `1/(K+2)²` of that leaves at least `1/(K+2)` free, whose square it is.
//!
//! Alone, a client may hold 0.38 of the limit. Only clients that hold something are remembered.

mod client;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use snowmint_coord::lock;

pub(crate) use client::Client;

/// A limit, and the parts that clients hold.
#[derive(Debug)]
pub(crate) struct Shares(Mutex<HeldShares>);

#[derive(Debug)]
struct HeldShares {
    limit: u64,
    /// Sum of all clients.
    all: u64,
    /// Amount of each client that holds something.
    by_client: HashMap<Client, u64>,
}

/// Part of a limit that a client holds, until this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    client: Client,
    count: u64,
}

/// Reason why a client gets no more of a limit now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OverShare {
    pub(crate) client: Client,
    /// Amount that it holds.
    pub(crate) held: u64,
    /// Free amount.
    pub(crate) free: u64,
    pub(crate) limit: u64,
}

impl Shares {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(HeldShares { limit, all: 0, by_client: HashMap::new() })))
    }

    /// Replaces the limit from now on. Held parts stay held.
    pub(crate) fn set_limit(&self, limit: u64) {
        lock(&self.0).limit = limit;
    }

    /// Takes this much of the limit for a client, if its share permits it.
    pub(crate) fn try_acquire(
        self: &Arc<Self>,
        client: Client,
        count: u64,
    ) -> Result<Share, OverShare> {
        lock(&self.0).try_acquire(&client, count)?;
        Ok(Share { shares: Arc::clone(self), client, count })
    }
}

impl HeldShares {
    fn try_acquire(&mut self, client: &Client, count: u64) -> Result<(), OverShare> {
        let held = self.by_client.get(client).copied().unwrap_or_default();
        if !self.has_room(held, count) {
            let free = self.limit.saturating_sub(self.all);
            return Err(OverShare { client: client.clone(), held, free, limit: self.limit });
        }
        self.all = self.all.saturating_add(count);
        self.by_client.insert(client.clone(), held.saturating_add(count));
        Ok(())
    }

    /// Returns whether a client that holds `held` may hold `count` more.
    fn has_room(&self, held: u64, count: u64) -> bool {
        let Some(all) = self.all.checked_add(count) else { return false };
        let Some(free) = self.limit.checked_sub(all) else { return false };
        let (held, free) = (u128::from(held.saturating_add(count)), u128::from(free));
        held.saturating_mul(self.limit.into()) <= free.saturating_mul(free)
    }

    fn give_back(&mut self, client: &Client, count: u64) {
        self.all = self.all.saturating_sub(count);
        if let Some(held) = self.by_client.get_mut(client) {
            *held = held.saturating_sub(count);
            if *held == 0 {
                self.by_client.remove(client);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        lock(&self.shares.0).give_back(&self.client, self.count);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use proptest::prelude::*;

    use super::*;

    const LIMIT: u64 = 1_000_000;

    fn client(number: u32) -> Client {
        Client::at(IpAddr::V4(Ipv4Addr::from_bits(number)))
    }

    /// Takes all that a client gets, in pieces of this size.
    fn greedy(shares: &Arc<Shares>, number: u32, piece: u64) -> Vec<Share> {
        std::iter::from_fn(|| shares.try_acquire(client(number), piece).ok()).collect()
    }

    #[test]
    fn lone_greedy_client_leaves_room_for_others() {
        let shares = Shares::new(LIMIT);
        let acquired = greedy(&shares, 1, 1_000);
        assert_eq!(acquired.len(), 381, "0.38 of the limit");
        let refused = shares.try_acquire(client(1), 1_000).unwrap_err();
        let free = LIMIT - 381_000;
        assert_eq!(refused, OverShare { client: client(1), held: 381_000, free, limit: LIMIT });
        // Its requests are rejected, those of other clients are not.
        let other = shares.try_acquire(client(2), LIMIT / 9).unwrap();
        drop((acquired, other));
        let held = lock(&shares.0);
        assert!(held.by_client.is_empty(), "who holds nothing is not remembered");
        assert_eq!(held.all, 0);
    }

    #[test]
    fn any_number_of_greedy_clients_leaves_room() {
        let shares = Shares::new(LIMIT);
        let mut acquired = Vec::new();
        for others in 0..200_u32 {
            let free = LIMIT - lock(&shares.0).all;
            assert!(free >= LIMIT / u64::from(others + 1), "{free} with {others} others");
            let room = LIMIT / u64::from(others + 2).pow(2);
            assert!(
                shares.try_acquire(client(u32::MAX), room).is_ok(),
                "{room} with {others} others"
            );
            acquired.extend(greedy(&shares, others, 10));
        }
    }

    #[test]
    fn lowered_limit_rejects_until_shares_fit_it() {
        let shares = Shares::new(LIMIT);
        let acquired = greedy(&shares, 1, 100_000);
        shares.set_limit(LIMIT / 10);
        assert!(shares.try_acquire(client(2), 1).is_err());
        drop(acquired);
        assert!(shares.try_acquire(client(2), 1).is_ok());
        shares.set_limit(0);
        assert!(shares.try_acquire(client(2), 1).is_err());
        assert!(shares.try_acquire(client(2), u64::MAX).is_err());
    }

    proptest! {
        /// The free part is as in the proof after any history, and so is a newcomer's.
        #[test]
        fn newcomer_finds_room_after_any_history(
            limit in 1..10_000_u64,
            steps in proptest::collection::vec((0..12_u32, 1..10_000_u64, any::<bool>()), 1..200),
        ) {
            let shares = Shares::new(limit);
            let mut acquired: Vec<(u32, Share)> = Vec::new();
            for (who, count, takes) in steps {
                if takes {
                    acquired.extend(shares.try_acquire(client(who), count).ok().map(|share| (who, share)));
                } else if let Some(at) = acquired.iter().position(|(holder, _)| *holder == who) {
                    acquired.swap_remove(at);
                }
                let (all, holders) = {
                    let held = lock(&shares.0);
                    prop_assert_eq!(held.all, held.by_client.values().sum::<u64>());
                    (held.all, held.by_client.len() as u64)
                };
                prop_assert!(holders <= acquired.len() as u64);
                prop_assert!((limit - all) * (holders + 1) >= limit);
                let room = limit / (holders + 2).pow(2);
                prop_assert!(shares.try_acquire(client(99), room).is_ok());
            }
        }
    }
}
