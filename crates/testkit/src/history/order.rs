//! Numbers that must rise in real time over all servers: those returned before a request began lie
//! below those of its response.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

use super::{Check, Checked};

/// Highest number returned for each key so far. It keeps one number per key, so that there may be
/// millions of keys, and a run may take any time.
///
/// Callers read the [`floor`](Self::floor) before they send a request, and record the numbers with
/// [`record`](Self::record) when they arrive. Overlapping requests have no promised order, and
/// none is checked.
#[derive(Debug)]
pub struct Order<K> {
    highest: HashMap<K, u64>,
    responses: usize,
    overlapped: usize,
}

impl<K> Default for Order<K> {
    fn default() -> Self {
        Self { highest: HashMap::new(), responses: 0, overlapped: 0 }
    }
}

impl<K: Clone + Debug + Eq + Hash> Order<K> {
    /// Returns the number that the response to a request beginning now must exceed.
    #[must_use]
    pub fn floor(&self, key: &K) -> u64 {
        self.highest.get(key).copied().unwrap_or(0)
    }

    /// Records the lowest and the highest number of a response to a request that began at `floor`.
    ///
    /// # Errors
    /// The numbers are not above `floor`. The violation is that of a counter; the caller knows
    /// which check it really is.
    pub fn record(&mut self, key: &K, floor: u64, numbers: (u64, u64), by: &str) -> Checked {
        let (lowest, highest) = numbers;
        if lowest <= floor || highest < lowest {
            return Err(Check::Counters.broken(format!(
                "{key:?}: {by} returned {lowest} to {highest} after {floor} was returned"
            )));
        }
        self.responses += 1;
        match self.highest.get_mut(key) {
            Some(known) => {
                self.overlapped += usize::from(*known != floor);
                *known = (*known).max(highest);
            }
            None => drop(self.highest.insert(key.clone(), highest)),
        }
        Ok(())
    }

    /// Returns the number of keys with a response.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.highest.len()
    }

    /// Returns the number of responses.
    #[must_use]
    pub const fn responses(&self) -> usize {
        self.responses
    }

    /// Returns the number of responses during which another caller got one for the same key:
    /// without any, nothing was tried.
    #[must_use]
    pub const fn overlapped(&self) -> usize {
        self.overlapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_below_an_earlier_result_is_found() {
        let mut order = Order::default();
        let asks = |order: &Order<&str>| order.floor(&"alice");
        let (one, other) = (asks(&order), asks(&order));
        order.record(&"alice", one, (7, 9), "a").unwrap();
        // The requests overlapped: either may be the lower.
        order.record(&"alice", other, (3, 4), "b").unwrap();
        let third = asks(&order);
        assert!(order.record(&"alice", third, (9, 9), "equal").is_err());
        assert!(order.record(&"alice", third, (5, 12), "its first is too low").is_err());
        assert!(order.record(&"alice", third, (12, 11), "no range").is_err());
        order.record(&"bob", 0, (1, 1), "another key").unwrap();
        order.record(&"alice", third, (10, 10), "c").unwrap();
        assert_eq!((order.keys(), order.responses(), order.overlapped()), (2, 4, 1));
    }
}
