//! `[worker]` and `[clock]`: how a node keeps its worker numbers, and which clocks it believes.

use serde::{Deserialize, Deserializer, Serialize};
use snowmint_coord::spec::Span;
use snowmint_coord::{AfterCrash, NodeSettings};

use crate::ntp::Ntp;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// `[worker]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WorkerSection {
    /// How far ahead the store's mark is kept. A shorter one than a second would ask the store all the
    /// time; one of more than a day would keep a number from others for as long after a crash.
    #[serde(deserialize_with = "from_to::<SECOND_MS, DAY_MS, _>")]
    pub(crate) window: Span,
    pub(crate) after_crash: Then,
    /// How far IDs may lead the clock when `after_crash` is `lead`.
    #[serde(deserialize_with = "from_to::<SECOND_MS, DAY_MS, _>")]
    pub(crate) lead_max: Span,
}

/// What happens when a crash left the mark of this owner's number ahead of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Then {
    OtherSlot,
    Wait,
    Lead,
    Refuse,
}

/// `[clock]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClockSection {
    /// Shorter than 100 ms and slow answers of the store look like a wrong clock.
    #[serde(deserialize_with = "from_to::<100, DAY_MS, _>")]
    pub(crate) skew_max: Span,
    /// The limit keeps a clock that is years ahead from being believed by configuration.
    #[serde(deserialize_with = "from_to::<SECOND_MS, { 30 * DAY_MS }, _>")]
    pub(crate) jump_max: Span,
    /// A time server, for stores without a clock. Empty: none.
    #[serde(deserialize_with = "time_server")]
    pub(crate) ntp: String,
}

fn time_server<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() || Ntp::at(&text).is_some() {
        return Ok(text);
    }
    Err(serde::de::Error::custom("write HOST or HOST:PORT"))
}

impl Default for WorkerSection {
    fn default() -> Self {
        Self {
            window: Span::from_ms(NodeSettings::default().window_ms),
            after_crash: Then::OtherSlot,
            // A crash without a journal leaves a mark at most a window ahead, and half of one more
            // while it was being moved.
            lead_max: Span::from_ms(MINUTE_MS),
        }
    }
}

impl Default for ClockSection {
    fn default() -> Self {
        let NodeSettings { clock_skew_max_ms, clock_jump_max_ms, .. } = NodeSettings::default();
        let (skew_max, jump_max) = (clock_skew_max_ms, clock_jump_max_ms);
        let (skew_max, jump_max) = (Span::from_ms(skew_max), Span::from_ms(jump_max));
        Self { skew_max, jump_max, ntp: String::new() }
    }
}

impl WorkerSection {
    /// What a node is told to do after a crash.
    pub(crate) fn after_crash(&self) -> AfterCrash {
        match self.after_crash {
            Then::OtherSlot => AfterCrash::AnotherSlot,
            Then::Wait => AfterCrash::Wait,
            Then::Lead => AfterCrash::Lead { max_ms: self.lead_max.ms() },
            Then::Refuse => AfterCrash::Refuse,
        }
    }
}

/// A length of time within limits, both of which are allowed.
fn from_to<'de, const MIN_MS: u64, const MAX_MS: u64, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Span, D::Error> {
    let span = Span::deserialize(deserializer)?;
    if (MIN_MS..=MAX_MS).contains(&span.ms()) {
        return Ok(span);
    }
    let (min, max) = (Span::from_ms(MIN_MS), Span::from_ms(MAX_MS));
    Err(serde::de::Error::custom(format_args!("it takes {min} at least and {max} at most")))
}
