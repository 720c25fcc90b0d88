//! `[worker]`, `[counters]` and `[clock]`: the worker numbers that a node claims, how it keeps
//! them, and the clocks that it trusts.

use serde::{Deserialize, Deserializer, Serialize};
use snowmint_coord::spec::{Span, words};
use snowmint_coord::{AfterCrash, NodeSettings, Reuse};
use snowmint_server::{Documented, SettingValues, settings};

use crate::system::ntp::Ntp;
use crate::terminal::exit::{Failure, Outcome};

/// Largest worker number: of 64 bits, at least one each is for time and sequence.
const NUMBER_MAX: u64 = (1 << 62) - 1;
const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
/// Default lease. A peer takes the place of a dead server within 5 s, as with PD's leader. Embedded
/// clients are never section owners, and renew less often.
const LEASE_MS: u64 = 3_000;

settings! {
    /// `[worker]`
    pub(crate) struct WorkerSection {
        /// Worker number to claim in the store, and no other: a number such as 7, "ordinal", or
        /// "any" (a free one). "ordinal": the number that the host name ends in, as in a
        /// StatefulSet's pod snowmint-0. The server does not start if another process holds the
        /// number (exit code 3).
        ///
        /// The error names the holder. From a program with a token, the server takes the number
        /// (docs/reference/access.md#programs-that-mint-in-their-own-process). The server does not
        /// start (exit code 2) if the layout lacks the number, or if own sources that borrow or
        /// have clock bits share the pool with others. Own sources have the number before all
        /// others.
        pub(crate) number: NumberChoice = NumberChoice::Any,
        /// "recycle": a released number is claimed again. "never": each start claims a number that
        /// was never used, until there are none (10 worker bits: 1024 starts). The same for all
        /// servers of a namespace, for ever.
        ///
        /// The store rejects a server that disagrees with the first one of the namespace
        /// (`conflict`). "never" excludes worker.number.
        pub(crate) reuse: WorkerReuse = WorkerReuse::Recycle,
        /// Time ahead of the clock for which a worker number is reserved in the store: minting
        /// continues this long without the store. At least three ticks of the layout.
        ///
        /// Below a second the node would call the store all the time; above a day a crash would
        /// keep its number from others for as long.
        #[within(SECOND_MS..=DAY_MS)]
        pub(crate) window: Span = Span::from_ms(NodeSettings::default().window_ms),
        /// Time without minting, after which the server writes the journal only with each extend of
        /// the window, not five times a second. It extends the window each half of worker.window
        /// (15s by default). The next ID waits for one write of the journal (milliseconds).
        ///
        /// Below a second a source would be idle between two requests of a quiet minute. More:
        /// docs/explanation/clocks.md#idle.
        #[within(SECOND_MS..=DAY_MS)]
        pub(crate) idle_after: Span = Span::from_ms(10 * SECOND_MS),
        /// Whether serve may start, and mint snowflakes, while the store does not respond. It mints
        /// in the rest of the window that the previous process had, by its journal (up to
        /// worker.window). It never does so after a clean stop. Numbers and counters wait for the
        /// store.
        ///
        /// More: docs/explanation/guarantees.md#starting-without-the-store.
        pub(crate) start_without_store: bool,
        /// Action when a crash left this owner's number reserved beyond the clock, and no journal
        /// knows better. other-worker: claim another number at once. wait: claim it, and wait for
        /// the clock. lead: claim it, with IDs that lead the clock by up to lead_max. refuse: do
        /// not start (exit code 3).
        pub(crate) after_crash: CrashPolicy = CrashPolicy::OtherWorker,
        /// Longest lead of IDs over the clock with after_crash = "lead"; if the number is reserved
        /// further ahead, the server claims another.
        ///
        /// A crash without a journal leaves a mark at most a window ahead, plus half a window while
        /// the mark is being moved.
        #[within(SECOND_MS..=DAY_MS)]
        pub(crate) lead_max: Span = Span::from_ms(MINUTE_MS),
    }

    /// `[clock]`
    pub(crate) struct ClockSection {
        /// Largest difference from the store's clock that the server accepts. Where the store has
        /// no clock (such as sqlite or etcd), the median of the live members' clocks counts, once
        /// two others are live. Then the time between two checks is allowed in
        /// addition: 10s at most, or counters.lease if that is longer. With fewer members,
        /// clock.ntp counts.
        ///
        /// Below 100 ms slow responses of the store look like a wrong clock.
        #[within(100..=DAY_MS)]
        pub(crate) skew_max: Span = Span::from_ms(NodeSettings::default().clock_skew_max_ms),
        /// Longest jump ahead of this machine's clock, against the time that has passed, that the
        /// server accepts without confirmation.
        ///
        /// The limit keeps a configuration from trusting a clock that is years ahead.
        #[within(SECOND_MS..=30 * DAY_MS)]
        pub(crate) jump_max: Span = Span::from_ms(NodeSettings::default().clock_jump_max_ms),
        /// Time server, HOST or HOST:PORT, for stores without a clock, while there are not two
        /// other members. The server compares this machine's clock with it at the start and while
        /// running, at most once a minute. Nothing waits for a time server that does not respond.
        /// Empty: none.
        ///
        /// `clock.skew_max` limits the difference.
        #[serde(deserialize_with = "time_server")]
        pub(crate) ntp: String,
    }

    /// `[counters]`
    pub(crate) struct CountersSection {
        /// Time for which this server owns its counters and sources of global order after its last
        /// renewal in the store. It renews three times in this time, and stops serving them when
        /// the store does not respond for two thirds of it. After a crash, peers take over once
        /// this time and an eighth of it (at least 0.5s) have passed.
        ///
        /// A dead process also holds its worker number for this time, and counts as present.
        #[within(SECOND_MS..=5 * MINUTE_MS)]
        pub(crate) lease: Span = Span::from_ms(LEASE_MS),
        /// Approximate limit of the memory, in bytes, that the keys of all counter sources take
        /// together. Beyond it, the server forgets keys of the largest source, and their numbers
        /// jump.
        ///
        /// Costs of a key: docs/explanation/counters.md#keys.
        pub(crate) memory_max_bytes: usize = NodeSettings::default().counter_bytes_max,
    }
}

impl Documented for NumberChoice {
    fn takes() -> SettingValues {
        SettingValues::NumberOr(NUMBER_MAX, &["any", "ordinal"])
    }
}

impl Documented for WorkerReuse {
    fn takes() -> SettingValues {
        SettingValues::Word(words::<Self>())
    }
}

impl Documented for CrashPolicy {
    fn takes() -> SettingValues {
        SettingValues::Word(words::<Self>())
    }
}

/// Choice of the worker number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) enum NumberChoice {
    /// Any free number.
    Any,
    /// The number at the end of the host name.
    Ordinal,
    /// This number only.
    Exactly(u64),
}

impl From<NumberChoice> for String {
    fn from(number: NumberChoice) -> Self {
        match number {
            NumberChoice::Any => "any".into(),
            NumberChoice::Ordinal => "ordinal".into(),
            NumberChoice::Exactly(number) => number.to_string(),
        }
    }
}

impl TryFrom<String> for NumberChoice {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "any" => Ok(Self::Any),
            "ordinal" => Ok(Self::Ordinal),
            number => match number.parse() {
                Ok(number @ ..=NUMBER_MAX) => Ok(Self::Exactly(number)),
                Ok(_) => Err("the maximum is 4611686018427387903 (62 bits)"),
                Err(_) => {
                    Err("expected a whole number, any (a free one) or ordinal (the number at the \
                         end of the host name)")
                }
            },
        }
    }
}

/// Whether worker numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WorkerReuse {
    Recycle,
    Never,
}

/// Reaction when a crash left the mark of this owner's number ahead of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CrashPolicy {
    OtherWorker,
    Wait,
    Lead,
    Refuse,
}

fn time_server<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() || Ntp::at(&text).is_some() {
        return Ok(text);
    }
    Err(serde::de::Error::custom("write HOST or HOST:PORT"))
}

impl WorkerSection {
    /// Returns the worker number that a node on `host` must have, unless any will do.
    pub(crate) fn number_on(&self, host: &str) -> Outcome<Option<u64>> {
        match self.number {
            NumberChoice::Any => Ok(None),
            NumberChoice::Exactly(number) => Ok(Some(number)),
            NumberChoice::Ordinal => ordinal(host).map(Some).ok_or_else(|| {
                Failure::usage(format!(
                    "worker.number \"ordinal\" needs a host name that ends in a dash and a number, \
                     as of a StatefulSet's pods, not {host:?}"
                ))
            }),
        }
    }

    /// Returns whether numbers are used again.
    pub(crate) const fn reuse(&self) -> Reuse {
        match self.reuse {
            WorkerReuse::Recycle => Reuse::Recycle,
            WorkerReuse::Never => Reuse::Never,
        }
    }

    /// Checks conditions over several values.
    pub(super) fn check(&self) -> Outcome {
        if self.reuse == WorkerReuse::Never && self.number != NumberChoice::Any {
            return Err(Failure::usage(
                "worker.reuse \"never\" claims another number at each start, so worker.number \
                 cannot name one; leave one of them out",
            ));
        }
        Ok(())
    }

    /// Returns the node's reaction to a crash.
    pub(crate) fn after_crash(&self) -> AfterCrash {
        match self.after_crash {
            CrashPolicy::OtherWorker => AfterCrash::OtherWorker,
            CrashPolicy::Wait => AfterCrash::Wait,
            CrashPolicy::Lead => AfterCrash::Lead { max_ms: self.lead_max.ms() },
            CrashPolicy::Refuse => AfterCrash::Refuse,
        }
    }
}

/// Returns the number at the end of the name of a StatefulSet's pod: 3 for `snowmint-3` and for
/// `snowmint-3.ids.svc.cluster.local`.
fn ordinal(host: &str) -> Option<u64> {
    let name = host.split('.').next()?;
    let (_, digits) = name.rsplit_once('-')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    (plain && (digits == "0" || !digits.starts_with('0'))).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinal_is_the_suffix_of_the_pod_name() {
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
            let section =
                WorkerSection { number: NumberChoice::Ordinal, ..WorkerSection::default() };
            assert_eq!(section.number_on(host).is_ok(), number.is_some(), "{host}");
        }
    }
}
