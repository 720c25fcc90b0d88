//! Counters that applications keep in Redis by `INCR`.
//!
//! One script moves a counter: it reads the counter and replaces it by a text with the last number,
//! which `INCR` rejects. So an application that still counts there gets an error instead of one of
//! our numbers. The text has no expiry, so a later command can read it if the moving command was
//! cut off.

use redis::{Script, Value, cmd, from_redis_value};
use snowmint_coord::{BoxFuture, Error, Result, opaque_debug};

use super::numbers::HIGHEST_MAX;
use crate::failure::{Class, Label};
use crate::redis::{Address, RedisLink, map_error};
use crate::scheme::feature_of;

/// Prefix of a moved counter; its last number follows.
const MOVED: &str = "moved:snowmint:";
/// Keys that a server scans for one reply.
const SCAN_COUNT: u32 = 1_000;

/// Moves only a value that `INCR` can count, from 0 to ARGV[2]. Texts of equal length sort like
/// their numbers.
const MOVE: &str = r"
    local value = redis.call('GET', KEYS[1])
    if not value then return false end
    local counts = value == '0' or string.match(value, '^[1-9]%d*$')
    local highest = ARGV[2]
    if counts and (#value < #highest or (#value == #highest and value <= highest)) then
        value = ARGV[1] .. value
        redis.call('SET', KEYS[1], value)
    end
    return value";

/// State of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CounterState {
    /// It counts; this was its last number.
    Counts(u64),
    /// It was moved at this number, and counts no more.
    Moved(u64),
    /// It is not a counter, for this reason.
    Senseless(String),
}

/// A Redis server with counters, or a cluster.
pub struct Counters {
    pub(super) link: RedisLink,
    /// Each server that can list its keys.
    servers: Vec<RedisLink>,
    pub(super) label: Label,
}

opaque_debug!(Counters: label);

impl Counters {
    /// Connects to the server at a URL, or to all primaries of a cluster.
    ///
    /// # Errors
    /// `Invalid` for any other URL; `Unavailable`.
    pub fn open(url: &str) -> BoxFuture<'_, Result<Self>> {
        Box::pin(async move {
            let label = Label::of("Redis", url);
            if feature_of(url) != Some("redis") {
                return Err(label.locate(Error::invalid(
                    "URL does not name Redis; write redis://USER:PASSWORD@HOST:PORT/DATABASE or \
                     redis-cluster://USER:PASSWORD@HOST:PORT,HOST:PORT",
                )));
            }
            let address = Address::read(url, &label).map_err(|error| label.locate(error))?;
            let mapped = |error| label.locate(map_error(&label, error, Class::of_legacy));
            let mut link = RedisLink::open(address.clone()).await.map_err(mapped)?;
            let servers = link.each(&address).await.map_err(mapped)?;
            Ok(Self { link, servers, label })
        })
    }

    /// Returns the keys that match a pattern, in order. In a cluster with slots moving meanwhile,
    /// some keys may be missing.
    ///
    /// # Errors
    /// The server's error.
    pub fn keys<'a>(&'a self, pattern: &'a str) -> BoxFuture<'a, Result<Vec<Vec<u8>>>> {
        Box::pin(async move {
            let mut found = std::collections::BTreeSet::new();
            for server in &self.servers {
                let mut cursor = 0_u64;
                loop {
                    let mut scan = cmd("SCAN");
                    scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCAN_COUNT);
                    let page = scan.query_async::<(u64, Vec<Vec<u8>>)>(&mut server.clone()).await;
                    let (next, keys) = page.map_err(|error| self.map_error(error))?;
                    found.extend(keys);
                    if next == 0 {
                        break;
                    }
                    cursor = next;
                }
            }
            Ok(found.into_iter().collect())
        })
    }

    /// Returns the state of a counter.
    ///
    /// # Errors
    /// The server's error.
    pub fn read_state<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<CounterState>> {
        Box::pin(async move {
            let got = cmd("GET").arg(key).query_async(&mut self.link.clone()).await;
            self.read(got)
        })
    }

    /// Moves a counter, if it counts, and returns its state afterwards.
    ///
    /// # Errors
    /// The server's error. If the reply was lost, the outcome is unknown: read the counter again.
    pub fn move_counter<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<CounterState>> {
        Box::pin(async move {
            let script = Script::new(MOVE);
            let mut call = script.key(key);
            call.arg(MOVED).arg(HIGHEST_MAX);
            let moved = call.invoke_async(&mut self.link.clone()).await;
            self.read(moved)
        })
    }

    fn read(&self, reply: redis::RedisResult<Value>) -> Result<CounterState> {
        let value = match reply {
            // Before Redis 7, the code of an error within a script is part of its text only.
            Err(error) if error.to_string().contains("WRONGTYPE") => {
                return Ok(CounterState::Senseless("it is not a string".into()));
            }
            reply => reply.map_err(|error| self.map_error(error))?,
        };
        let text: Option<Vec<u8>> = from_redis_value(value)
            .map_err(|error| self.located(Class::Corrupt).with_source(error))?;
        Ok(text.map_or_else(
            || CounterState::Senseless("it was deleted".into()),
            |text| parse_state(&text),
        ))
    }

    pub(super) fn map_error(&self, error: redis::RedisError) -> Error {
        self.label.locate(map_error(&self.label, error, Class::of_legacy))
    }

    fn located(&self, class: Class) -> Error {
        self.label.locate(class.of_legacy(&self.label))
    }
}

/// Parses a counter's text.
fn parse_state(text: &[u8]) -> CounterState {
    let text = String::from_utf8_lossy(text);
    if let Some(number) = text.strip_prefix(MOVED).and_then(counted) {
        return CounterState::Moved(number);
    }
    let shown: String = text.chars().take(40).collect();
    counted(&text).map_or_else(
        || {
            CounterState::Senseless(format!(
                "{shown:?} is not a number from 0 to {HIGHEST_MAX} (2^62)"
            ))
        },
        CounterState::Counts,
    )
}

/// Parses a number as `INCR` writes it, up to [`HIGHEST_MAX`].
fn counted(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number <= HIGHEST_MAX && number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_shows_the_counter_state() {
        for (text, at) in [
            ("0", CounterState::Counts(0)),
            ("41", CounterState::Counts(41)),
            ("4611686018427387904", CounterState::Counts(1 << 62)),
            ("moved:snowmint:41", CounterState::Moved(41)),
        ] {
            assert_eq!(parse_state(text.as_bytes()), at);
        }
        for text in ["", "-1", "+1", "041", "1.5", "4611686018427387905", "x", "moved:snowmint:x"] {
            assert!(matches!(parse_state(text.as_bytes()), CounterState::Senseless(_)), "{text}");
        }
    }
}
