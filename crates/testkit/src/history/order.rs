//! What must rise in real time, over everybody who answers: whatever was answered before a request began lies
//! below its answer.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

use super::{Check, Checked};

/// The highest answer of each key so far. What is remembered is one number a key, so that there may be
/// millions, and a run may last as long as it likes.
///
/// Ask for the [`floor`](Self::floor) before the request is sent, and tell the [`answer`](Self::answered)
/// when it is there. Between two that overlap nothing is promised, and nothing is found.
#[derive(Debug)]
pub struct Order<K> {
    highest: HashMap<K, u64>,
    answers: usize,
    overlapped: usize,
}

impl<K> Default for Order<K> {
    fn default() -> Self {
        Self { highest: HashMap::new(), answers: 0, overlapped: 0 }
    }
}

impl<K: Clone + Debug + Eq + Hash> Order<K> {
    /// What the answer to a request that begins now must be above.
    #[must_use]
    pub fn floor(&self, key: &K) -> u64 {
        self.highest.get(key).copied().unwrap_or(0)
    }

    /// The lowest and the highest number of an answer to a request that began when `floor` was its floor.
    ///
    /// # Errors
    /// It is not above. Which check that is, whoever asks knows: here the keys are a counter's.
    pub fn answered(&mut self, key: &K, floor: u64, answer: (u64, u64), by: &str) -> Checked {
        let (lowest, highest) = answer;
        if lowest <= floor || highest < lowest {
            return Err(Check::Counters.broken(format!(
                "{key:?}: {by} answers {lowest} to {highest} after {floor} was answered"
            )));
        }
        self.answers += 1;
        match self.highest.get_mut(key) {
            Some(known) => {
                self.overlapped += usize::from(*known != floor);
                *known = (*known).max(highest);
            }
            None => drop(self.highest.insert(key.clone(), highest)),
        }
        Ok(())
    }

    /// How many keys were answered for.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.highest.len()
    }

    /// How many answers there were.
    #[must_use]
    pub const fn answers(&self) -> usize {
        self.answers
    }

    /// While how many answers were on their way, somebody else got one for the same key: without any,
    /// nothing was tried.
    #[must_use]
    pub const fn overlapped(&self) -> usize {
        self.overlapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_below_what_was_answered_before_it_was_asked_for_is_found() {
        let mut order = Order::default();
        let asks = |order: &Order<&str>| order.floor(&"alice");
        let (one, other) = (asks(&order), asks(&order));
        order.answered(&"alice", one, (7, 9), "a").unwrap();
        // They overlapped: either may be the lower.
        order.answered(&"alice", other, (3, 4), "b").unwrap();
        let third = asks(&order);
        assert!(order.answered(&"alice", third, (9, 9), "equal").is_err());
        assert!(order.answered(&"alice", third, (5, 12), "its first is too low").is_err());
        assert!(order.answered(&"alice", third, (12, 11), "no range").is_err());
        order.answered(&"bob", 0, (1, 1), "another key").unwrap();
        order.answered(&"alice", third, (10, 10), "c").unwrap();
        assert_eq!((order.keys(), order.answers(), order.overlapped()), (2, 4, 1));
    }
}
