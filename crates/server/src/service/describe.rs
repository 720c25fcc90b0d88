//! Parts of an ID, as values: each protocol writes them in its form.

use snowmint_coord::Decoded;
use snowmint_core::layout::{Field, ReadableLayout};
use snowmint_core::{Parts, Rfc3339, UnixMillis};

/// Parts of an ID; `None` for those that its kind does not have.
#[derive(Debug, Default)]
pub(crate) struct DecodedParts<'a> {
    /// Number in the ID, before any disguise or text form.
    pub(crate) number: Option<u64>,
    /// Period of a serial's number.
    pub(crate) period: Option<&'a str>,
    pub(crate) time: Option<Rfc3339>,
    pub(crate) tick: Option<u64>,
    pub(crate) worker: Option<u64>,
    /// Two parts of a worker that the layout splits, the high part first.
    pub(crate) worker_parts: Option<[u64; 2]>,
    pub(crate) clock: Option<u64>,
    pub(crate) sequence: Option<u64>,
    pub(crate) layout: Option<ReadableLayout>,
    pub(crate) uuid_version: Option<u8>,
}

impl<'a> DecodedParts<'a> {
    pub(crate) fn of(decoded: &'a Decoded) -> Self {
        let none = Self::default();
        match decoded {
            Decoded::Snowflake { id, parts, layout, .. } => {
                Self::of_snowflake(*id, *parts, layout.readable())
            }
            Decoded::Number { id } => Self { number: Some(*id), ..none },
            Decoded::Serial { period, number } => {
                Self { number: Some(*number), period: period.as_deref(), ..none }
            }
            Decoded::Uuid { uuid } => {
                let time = uuid.get_timestamp().map(|timestamp| {
                    let (seconds, nanos) = timestamp.to_unix();
                    let ms =
                        seconds.saturating_mul(1_000).saturating_add(u64::from(nanos) / 1_000_000);
                    Rfc3339(UnixMillis::new(ms))
                });
                Self { uuid_version: uuid.get_version_num().try_into().ok(), time, ..none }
            }
            Decoded::Text { time } => Self { time: time.map(Rfc3339), ..none },
            // A kind that is added later shows no more than the ID itself until it is described
            // here.
            _ => none,
        }
    }

    /// Returns the parts that a layout reads in a number.
    pub(crate) fn of_snowflake(id: u64, parts: Parts, layout: ReadableLayout) -> Self {
        let has = |field| layout.bits(field) > 0;
        Self {
            number: Some(id),
            time: Some(Rfc3339(layout.start_of(parts.tick))),
            tick: Some(parts.tick.get()),
            worker: has(Field::Worker).then_some(parts.worker),
            worker_parts: layout.split_worker(parts.worker).map(|(high, low)| [high, low]),
            clock: has(Field::Clock).then_some(parts.clock),
            sequence: has(Field::Sequence).then_some(parts.sequence),
            layout: Some(layout),
            ..Self::default()
        }
    }
}
