//! Capabilities of a store, as data that its documentation shows.

/// Capabilities of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Clock that decides whether a presence has expired and whether a mark lies too far ahead.
    pub clock: ClockOf,
    /// Whether a change survives the loss of power once the store acknowledged it.
    pub durable_on_reply: bool,
    /// Whether a change survives the loss of the machine that acknowledged it.
    pub safe_over_failover: bool,
    /// Means by which the store detects an expired presence.
    pub presence: PresenceBy,
}

/// Clock that a store uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockOf {
    /// The store's own.
    Store,
    /// The `now` of each caller.
    Caller,
}

/// Means by which a store detects that a member is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresenceBy {
    /// A record that the member has not renewed.
    Record,
    /// A session that the store ended.
    Session,
}

impl Capabilities {
    /// Returns the table that a store's documentation shows, one line for each row, without `//!`.
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

    /// Returns whether the source text of a store's module shows [`table`](Self::table) in its
    /// `//!` lines.
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
