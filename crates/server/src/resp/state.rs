//! State that all connections share.

use std::sync::{Arc, Mutex};

use snowmint_coord::{Timer, lock};

use crate::config::RespSettings;
use crate::requests::reading::WaitingRequests;
use crate::service::Service;

/// State that all connections share.
#[derive(Debug)]
pub(super) struct RespState {
    pub(super) service: Service,
    /// Limit of all waiting requests, toward which memory kept for clients counts.
    pub(super) requests: WaitingRequests,
    pub(super) settings: RespSettings,
    pub(super) timer: Arc<dyn Timer>,
    /// Elapsed time at the start, for `INFO`.
    pub(super) started_ms: u64,
    /// Commands in a second, for `INFO`.
    pub(super) ops: OpsMeter,
    pub(super) port: u16,
}

/// Shortest time over which commands are counted, in milliseconds.
const OPS_PERIOD_MS: u64 = 100;

/// Measures commands in a second, from one reading to the next.
#[derive(Debug, Default)]
pub(super) struct OpsMeter(Mutex<OpsReading>);

#[derive(Debug, Default)]
struct OpsReading {
    at_ms: u64,
    commands: u64,
    per_second: u64,
}

impl OpsMeter {
    /// Returns the commands in a second since the last reading, given their number until now. A
    /// reading too soon after another returns what the other did.
    pub(super) fn per_second(&self, commands: u64, now_ms: u64) -> u64 {
        let mut last = lock(&self.0);
        let passed_ms = now_ms.saturating_sub(last.at_ms);
        if passed_ms >= OPS_PERIOD_MS {
            let more = commands.saturating_sub(last.commands);
            let per_second = more.saturating_mul(1_000).checked_div(passed_ms).unwrap_or_default();
            *last = OpsReading { at_ms: now_ms, commands, per_second };
        }
        last.per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_are_those_since_the_last_reading() {
        let meter = OpsMeter::default();
        for (commands, now_ms, expected) in [
            (0, 10, 0),
            (500, 1_000, 500),
            (900, 1_050, 500),
            (1_500, 1_500, 2_000),
            (1_500, 9_000, 0),
        ] {
            assert_eq!(meter.per_second(commands, now_ms), expected, "at {now_ms} ms");
        }
    }
}
