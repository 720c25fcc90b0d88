//! What a store can do, as data that its documentation shows.

/// What a store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whose clock decides whether a presence has lapsed and a mark lies too far ahead.
    pub clock: ClockOf,
    /// Whether a change survives the loss of power once it was answered.
    pub durable_on_reply: bool,
    /// Whether a change survives the loss of the machine that answered it.
    pub safe_over_failover: bool,
    /// How a lapsed presence is seen.
    pub presence: PresenceBy,
}

/// Whose clock a store goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockOf {
    /// The store's own.
    Store,
    /// The `now` of each caller.
    Caller,
}

/// How a store sees that a member is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresenceBy {
    /// By a record that the member has not renewed.
    Record,
    /// By a session that the store ended.
    Session,
}

impl Capabilities {
    /// The table that a store's documentation shows, one `//!`-free line a row.
    #[must_use]
    pub fn table(&self) -> String {
        let yes_no = |yes| if yes { "yes" } else { "no" };
        format!(
            "| capability | |\n|---|---|\n| whose clock | {} |\n| durable on reply | {} |\n\
             | safe over failover | {} |\n| presence by | {} |\n",
            match self.clock {
                ClockOf::Store => "the store's",
                ClockOf::Caller => "the caller's",
            },
            yes_no(self.durable_on_reply),
            yes_no(self.safe_over_failover),
            match self.presence {
                PresenceBy::Record => "a record that is renewed",
                PresenceBy::Session => "a session",
            }
        )
    }

    /// Whether the source text of a store's module shows [`table`](Self::table) in its `//!` lines.
    #[must_use]
    pub fn shown_in(&self, module_source: &str) -> bool {
        let docs: String = module_source
            .lines()
            .filter_map(|line| line.strip_prefix("//!"))
            .map(|line| format!("{}\n", line.trim()))
            .collect();
        docs.contains(&self.table())
    }
}
