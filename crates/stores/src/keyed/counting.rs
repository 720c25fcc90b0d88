//! Reservation of numbers in one step on the server, if the server supports it. Some sources
//! reserve for each number, where two round trips and lost races would cost too much.
//!
//! The server counts by the rule that every store keeps ([`Reserve::decide`]). This module applies
//! the rule to the row that the server reports, and a different result is an error. All other cases
//! go to the verb over rows, which returns the exact error.

use std::sync::Arc;

use snowmint_coord::verbs::{Failure, NamespaceRow, Seen};
use snowmint_coord::{Error, Reserve, Segment, lock};

use super::Keyed;
use super::keys::Keys;
use super::known_store::KnownStore;
use super::record::{RowRecord as _, StoreRecord, before_mark};
use super::script::{Counted, ScriptOutcome, ScriptRequest};
use super::step::check_server;

/// Pause before the next try after a request to back off, in milliseconds; then the most tries.
const BACKOFF_MS: u64 = 5;
const BACKOFFS_MAX: u32 = 100;

impl<K: Keys> Keyed<K> {
    /// Reserves in one step; returns none if the verb over rows must run instead.
    pub(super) async fn count(
        &self,
        reserve: &Reserve,
        seen: &Seen,
    ) -> Result<Option<Segment>, Failure<K::Error>> {
        if !K::COUNTS {
            return Ok(None);
        }
        let Some(known) = self.known_store(&seen.id).await? else { return Ok(None) };
        let request = ScriptRequest {
            store: &known.store,
            server: known.server.as_deref(),
            writes_at_least: seen.writes.saturating_sub(known.record.writes_more),
            before_mark: before_mark(reserve.definition_version),
            reserve,
        };
        for _ in 0..BACKOFFS_MAX {
            match self.keys.count(&request).await? {
                ScriptOutcome::Counted(counted) => {
                    return agreed(reserve, &counted, known.record.writes_more).map(Some);
                }
                ScriptOutcome::Backoff => self.keys.timer().sleep_ms(BACKOFF_MS).await,
                ScriptOutcome::Differs => break,
            }
        }
        *lock(&self.store) = None;
        Ok(None)
    }

    /// Returns the record of the store seen before; none in every case that the verb over rows must
    /// report.
    async fn known_store(&self, id: &str) -> Result<Option<Arc<KnownStore>>, Failure<K::Error>> {
        let known = lock(&self.store).clone();
        if let Some(known) = known.filter(|known| known.record.id == id) {
            return Ok(Some(known));
        }
        let head = self.keys.head().await?;
        let Some(store) = head.store.clone() else { return Ok(None) };
        let Ok(record) = StoreRecord::read(super::name::STORE, &store.value) else {
            return Ok(None);
        };
        if record.id != id {
            return Ok(None);
        }
        let label = self.keys.info().label;
        if record.check_form(label).is_err() || check_server(label, &record, &head).is_err() {
            return Ok(None);
        }
        let known = Arc::new(KnownStore { store, record, server: head.server });
        *lock(&self.store) = Some(Arc::clone(&known));
        Ok(Some(known))
    }
}

/// Checks the server's result against the rule.
fn agreed<E>(
    reserve: &Reserve,
    counted: &Counted,
    writes_more: u64,
) -> Result<Segment, Failure<E>> {
    let Counted { row, clock, namespace, range } = counted;
    let namespace = NamespaceRow::read(super::name::NAMESPACE, namespace)?;
    match (reserve.decide(row, *clock, namespace.catalog_version), range) {
        (Ok((after, segment)), Some(range))
            if (after.floor.get(), after.mark.get()) == (range.first, range.end) =>
        {
            let writes = range.writes.saturating_add(writes_more);
            Ok(Segment { writes, ..segment })
        }
        (Err(refused), None) => Err(Failure::from(refused)),
        (decided, range) => Err(Failure::from(Error::internal(format!(
            "internal error: server counted {range:?}, the rule gives {decided:?} ({reserve:?} \
                 on {row:?}); please report it"
        )))),
    }
}

#[cfg(test)]
mod tests {
    use snowmint_coord::segment::SegmentRow;
    use snowmint_coord::{Bounds, Mark, Ticks};
    use snowmint_core::UnixMillis;

    use super::*;
    use crate::keyed::script::CountedRange;

    #[test]
    fn script_reply_that_differs_from_the_rule_is_an_error() {
        let ticks = Ticks {
            epoch: UnixMillis::ZERO,
            unit_ms: 1,
            sequence_bits: 2,
            tick_max: 1000,
            lag: 0,
            lead: 0,
            now: UnixMillis::ZERO,
        };
        let within = Some(Bounds::Now(ticks));
        let reserve = Reserve { source: "orders".into(), length: 9, definition_version: 1, within };
        let agreed_on = |mark, range: Option<(u64, u64)>| {
            let row = SegmentRow { mark: Mark::new(mark), ..SegmentRow::NEW };
            let counted = Counted {
                row,
                clock: Some(UnixMillis::new(50)),
                namespace: r#"{"catalog_version":7,"mark":0,"term":0}"#.into(),
                range: range.map(|(first, end)| CountedRange { writes: 40, first, end }),
            };
            match agreed::<()>(&reserve, &counted, 2) {
                Ok(segment) => Ok(segment),
                Err(Failure::Rejected(error)) => Err(error.kind().code()),
                Err(other) => panic!("{other:?}"),
            }
        };
        let right = agreed_on(1, Some((200, 204))).unwrap();
        assert_eq!(
            (right.first, right.last, right.catalog_version, right.writes),
            (200, 203, 7, 42)
        );
        assert_eq!(right.at, Some(UnixMillis::new(50)));
        assert_eq!(agreed_on(204, None), Err("tick_full"));
        for (mark, wrong) in
            [(1, Some((200, 205))), (1, Some((199, 204))), (204, Some((204, 208))), (1, None)]
        {
            assert_eq!(agreed_on(mark, wrong), Err("internal"), "{mark} {wrong:?}");
        }
    }
}
