//! Distances by which windows and journals are kept ahead of need.

/// Policy for keeping a window ahead of need. All fields are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowPolicy {
    /// Distance of the store's mark ahead of the time that is minted from; zero: the mark is not
    /// moved.
    pub window_ms: u64,
    /// Largest distance of a mark ahead of the store's own time.
    pub ahead_max_ms: u64,
    /// Policy for the journal; none without a journal.
    pub journal: Option<JournalPolicy>,
}

/// Policy for keeping the journal's mark ahead of need, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalPolicy {
    /// Distance of the journal's mark ahead of the time that is minted from.
    pub ahead_ms: u64,
    /// Remaining time below which the mark is moved.
    pub renew_below_ms: u64,
    /// Idle time after which the mark stays where it is, until a caller mints again; none: it is
    /// always kept ahead.
    pub idle_after_ms: Option<u64>,
}

impl JournalPolicy {
    /// After a crash IDs are at most this far ahead of the clock, unless ticks are longer.
    const AHEAD_MS: u64 = 500;
    /// Time within which a write to a busy disk should end.
    const WRITE_MS: u64 = 300;

    /// Returns the policy for layouts with ticks of at most `unit_ms`. A tick must lie wholly below
    /// the mark, so slow ticks need a mark further ahead.
    #[must_use]
    pub const fn for_unit(unit_ms: u64) -> Self {
        let slow_ms = unit_ms.saturating_mul(2).saturating_add(250);
        let ahead_ms = if slow_ms > Self::AHEAD_MS { slow_ms } else { Self::AHEAD_MS };
        let renew_below_ms = ahead_ms - (Self::AHEAD_MS - Self::WRITE_MS);
        Self { ahead_ms, renew_below_ms, idle_after_ms: None }
    }
}

impl WindowPolicy {
    /// Shortest window, in milliseconds.
    pub const WINDOW_MS_MIN: u64 = 1_000;

    /// Returns the policy for layouts with ticks of at most `unit_ms` and IDs that may lead the
    /// clock by `lead_ms`. A window lasts `window_ms`, but at least three ticks. `ahead_max_ms`
    /// leaves room for a store clock that is `skew_ms` behind ours.
    #[must_use]
    pub fn new(window_ms: u64, unit_ms: u64, lead_ms: u64, skew_ms: u64, journal: bool) -> Self {
        let window_ms = window_ms.max(unit_ms.saturating_mul(3)).max(Self::WINDOW_MS_MIN);
        Self {
            window_ms,
            // After a crash the floor may lie a whole window ahead of the clock.
            ahead_max_ms: window_ms
                .saturating_mul(2)
                .saturating_add(lead_ms)
                .saturating_add(skew_ms),
            journal: journal.then(|| JournalPolicy::for_unit(unit_ms)),
        }
    }

    /// Returns the same policy without moves of the store's mark, for offline use.
    #[must_use]
    pub const fn offline(self) -> Self {
        Self { window_ms: 0, ..self }
    }

    /// Returns the same policy with a journal that is idle after this time, but after no less than
    /// two ticks of `unit_ms`: minting within one tick leaves `taken_until` unchanged.
    #[must_use]
    pub fn idle_after(self, idle_after_ms: Option<u64>, unit_ms: u64) -> Self {
        let idle_after_ms = idle_after_ms.map(|ms| ms.max(unit_ms.saturating_mul(2)));
        let journal = self.journal.map(|journal| JournalPolicy { idle_after_ms, ..journal });
        Self { journal, ..self }
    }
}
