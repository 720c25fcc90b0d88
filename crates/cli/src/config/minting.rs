//! `[worker]`, `[counters]` and `[clock]`: which worker numbers a node takes, how it keeps what it
//! holds, and which clocks it believes.

use serde::{Deserialize, Deserializer, Serialize};
use snowmint_coord::spec::Span;
use snowmint_coord::{AfterCrash, NodeSettings, Reuse};

use crate::exit::{Failure, Outcome};
use crate::ntp::Ntp;

/// Of 64 bits, one at least is the time's and one the sequence's.
const NUMBER_MAX: u64 = (1 << 62) - 1;
const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// `[worker]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WorkerSection {
    pub(crate) number: Number,
    pub(crate) reuse: Again,
    /// How far ahead the store's mark is kept. A shorter one than a second would ask the store all the
    /// time; one of more than a day would keep a number from others for as long after a crash.
    #[serde(deserialize_with = "from_to::<SECOND_MS, DAY_MS, _>")]
    pub(crate) window: Span,
    /// A shorter one than a second would rest between two requests of a quiet minute.
    #[serde(deserialize_with = "from_to::<SECOND_MS, DAY_MS, _>")]
    pub(crate) rest_after: Span,
    pub(crate) start_without_store: bool,
    pub(crate) after_crash: Then,
    /// How far IDs may lead the clock when `after_crash` is `lead`.
    #[serde(deserialize_with = "from_to::<SECOND_MS, DAY_MS, _>")]
    pub(crate) lead_max: Span,
}

/// Which worker number is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) enum Number {
    /// One that is free.
    Any,
    /// The one that the host's name ends in.
    Ordinal,
    /// This one and no other.
    Exactly(u64),
}

impl From<Number> for String {
    fn from(number: Number) -> Self {
        match number {
            Number::Any => "any".into(),
            Number::Ordinal => "ordinal".into(),
            Number::Exactly(number) => number.to_string(),
        }
    }
}

impl TryFrom<String> for Number {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "any" => Ok(Self::Any),
            "ordinal" => Ok(Self::Ordinal),
            number => match number.parse() {
                Ok(number @ ..=NUMBER_MAX) => Ok(Self::Exactly(number)),
                Ok(_) => {
                    Err("it takes 4611686018427387903 at most, since no layout has more than 62 \
                              bits for it")
                }
                Err(_) => {
                    Err("it takes a number from 0 on, any (one that is free) or ordinal (the one \
                               that the host's name ends in)")
                }
            },
        }
    }
}

/// Whether a worker number is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Again {
    Recycle,
    Never,
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

/// A server that dies is succeeded within 5 s, as PD's leader is. Programs answer for nobody, and say less often
/// that they are there.
const LEASE_MS: u64 = 3_000;

/// `[counters]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CountersSection {
    /// Also how long a worker number stays held by a process that is gone.
    #[serde(deserialize_with = "from_to::<SECOND_MS, { 5 * MINUTE_MS }, _>")]
    pub(crate) lease: Span,
    pub(crate) memory_max_bytes: usize,
}

impl Default for CountersSection {
    fn default() -> Self {
        let NodeSettings { counter_bytes_max, .. } = NodeSettings::default();
        Self { lease: Span::from_ms(LEASE_MS), memory_max_bytes: counter_bytes_max }
    }
}

impl Default for WorkerSection {
    fn default() -> Self {
        Self {
            number: Number::Any,
            reuse: Again::Recycle,
            window: Span::from_ms(NodeSettings::default().window_ms),
            rest_after: Span::from_ms(10 * SECOND_MS),
            start_without_store: false,
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
    /// The one number that a node on `host` takes, if it is not to take any.
    pub(crate) fn number_on(&self, host: &str) -> Outcome<Option<u64>> {
        match self.number {
            Number::Any => Ok(None),
            Number::Exactly(number) => Ok(Some(number)),
            Number::Ordinal => ordinal(host).map(Some).ok_or_else(|| {
                Failure::usage(format!(
                    "worker.number = \"ordinal\": this host is called {host:?}, which does not end in a \
                     dash and a number, as the pods of a StatefulSet do"
                ))
            }),
        }
    }

    /// Whether numbers are used again.
    pub(crate) const fn reuse(&self) -> Reuse {
        match self.reuse {
            Again::Recycle => Reuse::Recycle,
            Again::Never => Reuse::Never,
        }
    }

    /// What a single value cannot show.
    pub(super) fn check(&self) -> Outcome {
        if self.reuse == Again::Never && self.number != Number::Any {
            return Err(Failure::usage(
                "worker.reuse = \"never\" gives each start another number, so worker.number cannot name \
                 one: leave one of them out",
            ));
        }
        Ok(())
    }

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

/// The number that the name of a StatefulSet's pod ends in: 3 of `snowmint-3` and of
/// `snowmint-3.ids.svc.cluster.local`.
fn ordinal(host: &str) -> Option<u64> {
    let name = host.split('.').next()?;
    let (_, digits) = name.rsplit_once('-')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    (plain && (digits == "0" || !digits.starts_with('0'))).then(|| digits.parse().ok())?
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinal_is_what_the_name_of_a_pod_ends_in() {
        for (host, number) in [
            ("snowmint-0", Some(0)),
            ("ids-eu-17", Some(17)),
            ("ids-3.ids.default.svc.cluster.local", Some(3)),
            ("snowmint", None),
            ("snowmint-7d9f", None),
            ("snowmint-", None),
            ("snowmint-07", None),
            ("7", None),
            ("", None),
        ] {
            assert_eq!(ordinal(host), number, "{host}");
            let section = WorkerSection { number: Number::Ordinal, ..WorkerSection::default() };
            assert_eq!(section.number_on(host).is_ok(), number.is_some(), "{host}");
        }
    }
}
