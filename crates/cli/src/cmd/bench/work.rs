//! The work of a run: its requests, its connections, and when each request is due.

/// The work of a run.
#[derive(Clone, Debug)]
pub(super) struct BenchWork {
    pub(super) source: String,
    pub(super) key: Option<String>,
    /// IDs per request.
    pub(super) batch: u32,
    pub(super) connections: usize,
    /// Requests in flight on one connection.
    pub(super) pipeline: usize,
    pub(super) threads: usize,
    /// Requests per second, over all connections; `None`: as fast as responses come.
    pub(super) rate: Option<u32>,
}

/// Due times of the requests of one connection.
pub(super) struct Schedule {
    paced: Option<Paced>,
}

struct Paced {
    start_ns: u64,
    /// Number of the next request, counted over all connections, which take turns.
    next: u64,
    connections: u64,
    rate: u64,
}

impl Schedule {
    pub(super) fn new(work: &BenchWork, connection: usize, start_ns: u64) -> Self {
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let paced = work.rate.map(|rate| Paced {
            start_ns,
            next: number(connection),
            connections: number(work.connections),
            rate: u64::from(rate),
        });
        Self { paced }
    }

    /// Returns when the next request is due: now, where responses set the pace.
    pub(super) fn next_due_ns(&self, now_ns: u64) -> u64 {
        let Some(Paced { start_ns, next, rate, .. }) = &self.paced else { return now_ns };
        let after_ns = u128::from(*next) * 1_000_000_000 / u128::from((*rate).max(1));
        start_ns.saturating_add(u64::try_from(after_ns).unwrap_or(u64::MAX))
    }

    /// Returns the number of requests due before this time and not sent.
    pub(super) fn unsent(&self, end_ns: u64) -> u64 {
        let Some(Paced { start_ns, next, connections, rate }) = &self.paced else { return 0 };
        let lasts_ns = u128::from(end_ns.saturating_sub(*start_ns));
        let due = (lasts_ns * u128::from(*rate)).div_ceil(1_000_000_000);
        let unsent = due.saturating_sub(u128::from(*next)).div_ceil(u128::from(*connections));
        u64::try_from(unsent).unwrap_or(u64::MAX)
    }

    /// Records that the next request is sent.
    pub(super) fn sent(&mut self) {
        if let Some(Paced { next, connections, .. }) = &mut self.paced {
            *next = next.saturating_add(*connections);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_take_turns_at_the_rate() {
        let work = BenchWork {
            source: String::new(),
            key: None,
            batch: 1,
            connections: 3,
            pipeline: 1,
            threads: 1,
            rate: Some(1_000),
        };
        let mut due: Vec<u64> = (0..3)
            .flat_map(|connection| {
                let mut schedule = Schedule::new(&work, connection, 500);
                // Each connection has 4 due requests in 12 ms; the first connection has another one
                // a nanosecond later.
                assert_eq!(schedule.unsent(500 + 12_000_000), 4);
                assert_eq!(schedule.unsent(501 + 12_000_000), 4 + u64::from(connection == 0));
                (0..4).map(move |_| {
                    let due = schedule.next_due_ns(u64::MAX);
                    schedule.sent();
                    due
                })
            })
            .collect();
        due.sort_unstable();
        assert_eq!(due, (0..12).map(|k| 500 + k * 1_000_000).collect::<Vec<_>>());
        let free = Schedule::new(&BenchWork { rate: None, ..work }, 0, 500);
        assert_eq!((free.next_due_ns(77), free.unsent(u64::MAX)), (77, 0));
    }
}
