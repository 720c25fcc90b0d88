//! How far ahead of need windows and journals are kept.

/// How a window is kept ahead of need. All in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How far ahead of the time that is minted from the store's mark is moved; zero: it is not.
    pub window_ms: u64,
    /// How far a mark may lie ahead of the store's own time.
    pub ahead_max_ms: u64,
    /// The journal's pace; none without a journal.
    pub journal: Option<JournalPace>,
}

/// How the journal's mark is kept ahead of need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalPace {
    /// How far ahead of the time that is minted from it is moved.
    pub ahead_ms: u64,
    /// It is moved when less than this is left.
    pub renew_below_ms: u64,
    /// It is left where it is once nothing was taken for this long, until somebody mints again; none:
    /// it is always kept ahead.
    pub rest_after_ms: Option<u64>,
}

impl JournalPace {
    /// After a crash IDs are at most this far ahead of the clock, where ticks are not longer.
    const AHEAD_MS: u64 = 500;
    /// The time in which a write to a busy disk should be done.
    const WRITE_MS: u64 = 300;

    /// The pace for layouts whose slowest has ticks of `unit_ms`: a tick must lie wholly below the
    /// mark, so slow ticks need a mark further ahead.
    #[must_use]
    pub const fn for_unit(unit_ms: u64) -> Self {
        let slow_ms = unit_ms.saturating_mul(2).saturating_add(250);
        let ahead_ms = if slow_ms > Self::AHEAD_MS { slow_ms } else { Self::AHEAD_MS };
        let renew_below_ms = ahead_ms - (Self::AHEAD_MS - Self::WRITE_MS);
        Self { ahead_ms, renew_below_ms, rest_after_ms: None }
    }
}

impl Pace {
    /// The shortest window.
    pub const WINDOW_MS_MIN: u64 = 1_000;

    /// The pace for layouts whose slowest has ticks of `unit_ms`, whose IDs may lead the clock by
    /// `lead_ms`: a window of `window_ms`, but at least three ticks, with room for a store whose
    /// clock is `skew_ms` behind ours.
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
            journal: journal.then(|| JournalPace::for_unit(unit_ms)),
        }
    }

    /// The same, where there is nobody to ask for more.
    #[must_use]
    pub const fn alone(self) -> Self {
        Self { window_ms: 0, ..self }
    }

    /// The same, with a journal that rests once nothing was taken for so long, but at least two ticks
    /// of `unit_ms`: within one, minting leaves no trace in what is taken.
    #[must_use]
    pub fn resting_after(self, rest_after_ms: Option<u64>, unit_ms: u64) -> Self {
        let rest_after_ms = rest_after_ms.map(|ms| ms.max(unit_ms.saturating_mul(2)));
        let journal = self.journal.map(|journal| JournalPace { rest_after_ms, ..journal });
        Self { journal, ..self }
    }
}
