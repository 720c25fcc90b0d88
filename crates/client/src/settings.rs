//! How servers are asked.

/// How servers are asked. Everything has a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a server may take to take a connection, and to say which store it has. 1 s.
    pub connect_ms: u64,
    /// How long one server may take to answer a call before another is asked. 2 s.
    pub attempt_ms: u64,
    /// How long a call of the store may take in all. 4.5 s: less than a node gives its store.
    pub call_ms: u64,
    /// How many repeats may be made at once, over all calls; who wants more waits. What a call asks of a
    /// server for the first time is no repeat. 32.
    pub retries_at_once: u32,
    /// How many more there are each second. 8.
    pub retries_per_second: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_ms: 1_000,
            attempt_ms: 2_000,
            call_ms: 4_500,
            retries_at_once: 32,
            retries_per_second: 8,
        }
    }
}
