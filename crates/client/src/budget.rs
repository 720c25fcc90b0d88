//! How often things are tried again, over all calls: servers in trouble are not drowned in repeats.

use snowmint_core::ElapsedMillis;

/// Repeats that may be made now, in thousandths; more come with time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    milli: u64,
    max_milli: u64,
    /// Thousandths a millisecond are repeats a second.
    per_second: u64,
    at: ElapsedMillis,
}

impl Budget {
    pub(crate) fn new(at_once: u32, per_second: u32, now: ElapsedMillis) -> Self {
        let max_milli = u64::from(at_once).saturating_mul(1_000);
        Self { milli: max_milli, max_milli, per_second: per_second.into(), at: now }
    }

    /// Whether one more repeat may be made; if so, it is counted.
    pub(crate) fn take(&mut self, now: ElapsedMillis) -> bool {
        let came = now.since(self.at).saturating_mul(self.per_second);
        self.at = now;
        self.milli = self.milli.saturating_add(came).min(self.max_milli);
        match self.milli.checked_sub(1_000) {
            Some(left) => {
                self.milli = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_once_and_so_many_a_second() {
        let at = ElapsedMillis::new;
        let mut budget = Budget::new(3, 4, at(0));
        let mut taken = |now| (0..100).filter(|_| budget.take(at(now))).count();
        assert_eq!(taken(0), 3);
        assert_eq!(taken(249), 0);
        assert_eq!(taken(250), 1);
        assert_eq!(taken(750), 2);
        assert_eq!(taken(3_600_000), 3, "no more than at once are saved up");
        assert!(!Budget::new(0, 9, at(0)).take(at(100_000)));
    }
}
