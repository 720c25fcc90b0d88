//! Demand for sections.

use snowmint_core::UnixMillis;

/// Demand for more in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// Numbers of counters.
    Numbers {
        /// Number up to which the window should reach at least.
        until: u64,
        /// Numbers to fetch at a time.
        step: u64,
    },
    /// Time of a global-order source.
    Time {
        /// End of everything minted.
        taken_until: UnixMillis,
        /// Milliseconds that the window should reach ahead of now, and of everything minted.
        window_ms: u64,
        /// Milliseconds that IDs may lead the clock.
        lead_max_ms: u64,
    },
}

impl Demand {
    /// Returns a demand that covers both. A section is of one kind.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Numbers { until, step }, Self::Numbers { until: until2, step: step2 }) => {
                Self::Numbers { until: until.max(until2), step: step.max(step2) }
            }
            (
                Self::Time { taken_until, window_ms, lead_max_ms },
                Self::Time { taken_until: until2, window_ms: window2, lead_max_ms: lead2 },
            ) => Self::Time {
                taken_until: taken_until.max(until2),
                window_ms: window_ms.max(window2),
                lead_max_ms: lead_max_ms.max(lead2),
            },
            (_, other) => other,
        }
    }
}
