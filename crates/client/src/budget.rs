//! Retry budget over all calls, so that retries do not flood servers in trouble.

use snowmint_core::ElapsedMillis;

/// Retries that may be made now, in thousandths; more accrue with time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    milli: u64,
    max_milli: u64,
    /// Retries per second, which are thousandths per millisecond.
    per_second: u64,
    at: ElapsedMillis,
}

impl Budget {
    pub(crate) fn new(at_once: u32, per_second: u32, now: ElapsedMillis) -> Self {
        let max_milli = u64::from(at_once).saturating_mul(1_000);
        Self { milli: max_milli, max_milli, per_second: per_second.into(), at: now }
    }

    /// Counts one more retry that may be made now.
    ///
    /// # Errors
    /// `Err(ms)`: milliseconds until a retry is allowed.
    pub(crate) fn try_spend(&mut self, now: ElapsedMillis) -> Result<(), u64> {
        let came = now.since(self.at).saturating_mul(self.per_second);
        self.at = now;
        self.milli = self.milli.saturating_add(came).min(self.max_milli);
        match self.milli.checked_sub(1_000) {
            Some(left) => {
                self.milli = left;
                Ok(())
            }
            None => {
                let missing = 1_000_u64.saturating_sub(self.milli);
                Err(missing.div_ceil(self.per_second.max(1)).max(1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_limits_burst_and_rate() {
        let at = ElapsedMillis::new;
        let mut budget = Budget::new(3, 4, at(0));
        let mut spent = |now| (0..100).filter(|_| budget.try_spend(at(now)).is_ok()).count();
        assert_eq!(spent(0), 3);
        assert_eq!(spent(249), 0);
        assert_eq!(spent(250), 1);
        assert_eq!(spent(750), 2);
        assert_eq!(spent(3_600_000), 3, "no more than at once are saved up");
        assert_eq!(budget.try_spend(at(3_600_000)), Err(250));
        assert_eq!(budget.try_spend(at(3_600_100)), Err(150));
        assert_eq!(Budget::new(0, 9, at(0)).try_spend(at(100_000)), Err(112), "never, in the end");
    }
}
