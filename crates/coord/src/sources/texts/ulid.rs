//! ULIDs.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use snowmint_core::UnixMillis;
use snowmint_core::text::Format;
use ulid::Ulid;

use crate::error::{Error, Result};
use crate::platform::clock::NodeClock;
use crate::sources::defined::Defined;
use crate::sources::id_batch::Decoded;
use crate::sources::id_codec::quoted;
use crate::sources::source_kind::SourceKind;

/// A source of ULIDs, increasing within the process.
pub(super) struct UlidSource {
    clock: NodeClock,
    generator: Mutex<ulid::Generator>,
}

impl UlidSource {
    pub(super) fn new(clock: NodeClock) -> Self {
        Self { clock, generator: Mutex::new(ulid::Generator::new()) }
    }

    fn mint(&self) -> Ulid {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(self.clock.unix_ms().get());
        let mut generator = self.generator.lock().unwrap_or_else(PoisonError::into_inner);
        match generator.generate_from_datetime(wall) {
            Ok(ulid) => ulid,
            // The random part is exhausted: use the next millisecond rather than break the order.
            Err(overflow) => overflow.commit_overflow_increment(),
        }
    }
}

impl SourceKind for UlidSource {
    fn mint_texts(&self, count: u32, key: Option<&str>) -> Option<Result<Vec<String>>> {
        key.is_none().then(|| Ok((0..count).map(|_| self.mint().to_string()).collect()))
    }

    fn decode(&self, _: &str, _: &Defined, text: &str, _: Option<Format>) -> Result<Decoded> {
        match Ulid::from_string(text) {
            Ok(ulid) => {
                let time = UnixMillis::new(ulid.timestamp_ms());
                Ok(Decoded::Text { time: Some(time) })
            }
            Err(error) => {
                let text = quoted(text);
                Err(Error::invalid(format!("{text} is not a ULID: {error}; check the text")))
            }
        }
    }
}

crate::opaque_debug!(UlidSource);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use snowmint_core::ManualClock;

    use super::*;

    const NOW: UnixMillis = UnixMillis::new(1_800_000_000_123);

    #[test]
    fn ulids_increase_whatever_the_clock_does() {
        let clock = Arc::new(ManualClock::new(NOW));
        let source = UlidSource::new(Arc::clone(&clock) as NodeClock);
        let mut last = Ulid::nil();
        for round in 0..5_000_u32 {
            let next = source.mint();
            assert!(next > last, "{round}");
            last = next;
            match round % 10 {
                3 => clock.advance_ms(1),
                7 => clock.step_back_ms(5),
                _ => {}
            }
        }
        let reached = source.mint().timestamp_ms();
        assert!((NOW.get()..NOW.get() + 500).contains(&reached), "{reached}");
    }
}
