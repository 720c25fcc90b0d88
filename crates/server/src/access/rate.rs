//! Rates: IDs that a token may take of one source in a period.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use snowmint_coord::Timer;
use snowmint_wire::error::Code;

use super::right::Pattern;
use crate::error::{Error, shown};

/// Most IDs of one second: beyond, a rate limits nothing, and an ID takes no whole nanoseconds.
const PER_SECOND_MAX: u32 = 10_000_000;

/// Longest time in which a burst may refill.
const BURST_MAX: Duration = Duration::from_secs(365 * 86_400);

/// `1000/s orders-*`, or `1000/s burst=5000 orders-*`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rate {
    /// Text in the configuration.
    text: String,
    /// Time that one ID takes.
    each: Duration,
    /// Most IDs at once, after an idle time.
    burst: NonZeroU32,
    pattern: Pattern,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |reason: &str| {
            format!(
                "rate {} {reason}; write COUNT/s, COUNT/m or COUNT/h, optionally burst=COUNT and a \
                 pattern, such as \"1000/s burst=5000 orders-*\"",
                shown(text)
            )
        };
        let mut words = text.split_whitespace();
        let (count, unit) = words.next().and_then(|rate| rate.split_once('/')).unwrap_or_default();
        let seconds: u32 = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            _ => return Err(wrong("has no unit")),
        };
        let count: NonZeroU32 = count.parse().map_err(|_| wrong("has no count above 0"))?;
        if count.get() / seconds > PER_SECOND_MAX {
            return Err(wrong("exceeds 10000000 a second"));
        }
        let mut next = words.next();
        let burst = match next.and_then(|word| word.strip_prefix("burst=")) {
            Some(burst) => {
                next = words.next();
                burst.parse().map_err(|_| wrong("has no burst count above 0"))?
            }
            None => count,
        };
        let pattern = next.unwrap_or("*").parse()?;
        if words.next().is_some() {
            return Err(wrong("has text after the pattern"));
        }
        let each = Duration::from_secs(seconds.into()) / count.get();
        // The library multiplies both, in 64 bits of nanoseconds.
        if each.checked_mul(burst.get()).is_none_or(|whole| whole > BURST_MAX) {
            return Err(wrong("takes more than a year to refill its burst"));
        }
        Ok(Self { text: text.to_owned(), each, burst, pattern })
    }
}

/// Elapsed time, for the library.
#[derive(Clone, Debug)]
struct Elapsed(Arc<dyn Timer>);

impl Clock for Elapsed {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(self.0.elapsed_us().saturating_mul(1_000))
    }
}

/// Describes the subject of a key.
type What = fn(&str) -> String;

/// A rate, and its use by source. Only existing sources get in.
struct Pace {
    rate: Rate,
    clock: Elapsed,
    limiter: RateLimiter<String, HashMapStateStore<String>, Elapsed, NoOpMiddleware<Nanos>>,
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pace").field(&self.rate.text).finish()
    }
}

impl Pace {
    fn new(rate: Rate, timer: &Arc<dyn Timer>) -> Result<Self, String> {
        let quota = Quota::with_period(rate.each);
        let quota = quota.ok_or_else(|| format!("rate {} is too high", shown(&rate.text)))?;
        let (quota, clock) = (quota.allow_burst(rate.burst), Elapsed(Arc::clone(timer)));
        let limiter = RateLimiter::new(quota, HashMapStateStore::default(), clock.clone());
        Ok(Self { rate, clock, limiter })
    }

    fn spend(&self, token: &str, key: &str, what: What, count: u64) -> Result<(), Error> {
        let Rate { text, burst, .. } = &self.rate;
        let too_many = || {
            let message = format!(
                "count {count} exceeds the burst {burst} of rate {text:?} of token {token}; ask \
                 for fewer"
            );
            Error::new(Code::LimitExceeded, message)
        };
        let requested = u32::try_from(count).ok().filter(|&requested| requested <= burst.get());
        let Some(requested) = NonZeroU32::new(requested.ok_or_else(too_many)?) else {
            return Ok(());
        };
        match self.limiter.check_key_n(&key.to_owned(), requested) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(until)) => {
                let wait = until.wait_time_from(self.clock.now()).as_nanos().div_ceil(1_000_000);
                let message = format!(
                    "token {token} exceeds its rate {text:?} for {}; retry later",
                    what(key)
                );
                let error = Error::new(Code::RateLimited, message);
                Err(error.retry_in_ms(u64::try_from(wait).unwrap_or(u64::MAX).max(1)))
            }
            Err(_) => Err(too_many()),
        }
    }
}

/// Action that counts toward a rate although it takes nothing of an existing source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// A program joins.
    Join,
    /// A program claims a worker number, or the server leases one externally.
    Claim,
    /// A source is defined that did not exist.
    Define,
}

impl Deed {
    /// Returns the key: no source can have this name, and a pattern that fits it fits every name.
    const fn key(self) -> &'static str {
        match self {
            Self::Join => "(joins)",
            Self::Claim => "(claims)",
            Self::Define => "(definitions)",
        }
    }
}

/// Rates of one token; the first rate whose pattern fits a source counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates(Vec<Arc<Pace>>);

impl Rates {
    /// Parses rates for the sources of a namespace. An unchanged rate keeps its state.
    pub(super) fn new(
        texts: &[String],
        namespace: &str,
        before: Option<&Self>,
        timer: &Arc<dyn Timer>,
    ) -> Result<Self, String> {
        let mut paces: Vec<Arc<Pace>> = Vec::new();
        for text in texts {
            let rate: Rate = text.parse()?;
            if !rate.pattern.has_namespace(namespace) {
                continue;
            }
            let same = before.and_then(|before| before.0.iter().find(|pace| pace.rate == rate));
            paces.push(match same {
                Some(same) => Arc::clone(same),
                None => Arc::new(Pace::new(rate, timer)?),
            });
        }
        Ok(Self(paces))
    }

    /// Returns whether no rate exists.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the most of a source that can be taken at once, if it has a rate.
    pub(super) fn at_once(&self, source: &str) -> Option<u64> {
        let pace = self.0.iter().find(|pace| pace.rate.pattern.has_source(source))?;
        Some(pace.rate.burst.get().into())
    }

    /// Takes `count` of a source.
    pub(super) fn spend(&self, token: &str, source: &str, count: u64) -> Result<(), Error> {
        self.spend_of(token, source, |source| format!("source {source}"), count)
    }

    /// Counts a single action, regardless of its target.
    pub(super) fn count(&self, token: &str, deed: Deed) -> Result<(), Error> {
        self.spend_of(token, deed.key(), |key| key.trim_matches(['(', ')']).to_owned(), 1)
    }

    fn spend_of(&self, token: &str, key: &str, what: What, count: u64) -> Result<(), Error> {
        match self.0.iter().find(|pace| pace.rate.pattern.has_source(key)) {
            Some(pace) => pace.spend(token, key, what, count),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use snowmint_coord::ManualTimer;

    use super::*;

    fn rates(texts: &[&str], before: Option<&Rates>, timer: &Arc<dyn Timer>) -> Rates {
        let texts: Vec<_> = texts.iter().map(|&text| text.to_owned()).collect();
        Rates::new(&texts, "default", before, timer).unwrap()
    }

    #[test]
    fn a_rate_is_kept_for_each_source_by_itself() {
        let manual = ManualTimer::new(1_000);
        let timer: Arc<dyn Timer> = Arc::new(manual.clone());
        let rates = rates(&["10/s orders-*", "1/m burst=2 *"], None, &timer);
        for source in ["orders-1", "orders-2"] {
            assert_eq!(rates.spend("t", source, 10), Ok(()));
            let over = rates.spend("t", source, 1).unwrap_err();
            assert_eq!((over.code(), over.retry_after_ms()), (Code::RateLimited, Some(100)));
        }
        manual.advance_ms(99);
        assert!(rates.spend("t", "orders-1", 1).is_err());
        manual.advance_ms(1);
        assert_eq!(rates.spend("t", "orders-1", 1), Ok(()));
        assert!(rates.spend("t", "orders-1", 1).is_err());

        assert_eq!(rates.spend("t", "other", 2), Ok(()));
        let over = rates.spend("t", "other", 1).unwrap_err();
        assert_eq!(over.retry_after_ms(), Some(60_000));
        for count in [3, u64::MAX] {
            assert_eq!(rates.spend("t", "third", count).unwrap_err().code(), Code::LimitExceeded);
        }
    }

    #[test]
    fn each_kind_of_deed_has_its_own_rate_count() {
        let timer: Arc<dyn Timer> = Arc::new(ManualTimer::new(1_000));
        let both = rates(&["1/h orders-*", "2/m *"], None, &timer);
        for deed in [Deed::Join, Deed::Claim, Deed::Define] {
            assert_eq!((both.count("t", deed), both.count("t", deed)), (Ok(()), Ok(())));
            let over = both.count("t", deed).unwrap_err();
            assert_eq!((over.code(), over.retry_after_ms()), (Code::RateLimited, Some(30_000)));
            let name = deed.key().trim_matches(['(', ')']);
            assert!(over.message().contains(&format!("for {name};")), "{over}");
        }
        let none = rates(&["1/h orders-*"], None, &timer);
        for _ in 0..9 {
            assert_eq!(none.count("t", Deed::Join), Ok(()));
        }
    }

    #[test]
    fn unchanged_rate_keeps_its_use() {
        let timer: Arc<dyn Timer> = Arc::new(ManualTimer::new(1_000));
        let before = rates(&["1/h a"], None, &timer);
        assert_eq!(before.spend("t", "a", 1), Ok(()));
        assert!(rates(&["1/h a"], Some(&before), &timer).spend("t", "a", 1).is_err());
        assert_eq!(rates(&["2/h a"], Some(&before), &timer).spend("t", "a", 1), Ok(()));
        assert!(rates(&["1/h other/a"], None, &timer).is_empty());
    }

    #[test]
    fn invalid_rate_is_rejected() {
        for text in [
            "",
            "10",
            "10/d",
            "0/s *",
            "-1/s",
            "1.5/s",
            "10/s burst=0 *",
            "10/s burst=x",
            "1/s a b",
            "20000000/s",
            "1/h burst=9000",
        ] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        assert_eq!("60/m".parse::<Rate>().unwrap().each, Duration::from_secs(1));
    }
}
