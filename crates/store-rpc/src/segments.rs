//! Numbers that are reserved and given back.

use snowmint_coord::segment::NumberInterval;
use snowmint_coord::{Bounds, Reserve, Ticks};
use snowmint_wire::grpc::store as proto;

use crate::codec::{Codec, codec};
use crate::malformed::Malformed;

codec! {
    NumberInterval as Within { first, end } = [NumberInterval { first, end }];
    Ticks as Ticks { epoch, unit_ms, sequence_bits, tick_max, lag, lead, now }
        = [Ticks { epoch, unit_ms, sequence_bits, tick_max, lag, lead, now }];
}

impl Codec<proto::ReserveRequest> for Reserve {
    fn write(self) -> proto::ReserveRequest {
        let Self { source, length, definition_version, within } = self;
        let (within, now) = match within {
            None => (None, None),
            Some(Bounds::Range(range)) => (Some(range.write()), None),
            Some(Bounds::Now(ticks)) => (None, Some(ticks.write())),
        };
        proto::ReserveRequest { source, length, definition_version, within, now }
    }

    fn read(message: proto::ReserveRequest) -> Result<Self, Malformed> {
        let proto::ReserveRequest { source, length, definition_version, within, now } = message;
        let within = match (now, within) {
            (Some(now), _) => Some(Bounds::Now(Ticks::read(now)?)),
            (None, Some(within)) => Some(Bounds::Range(NumberInterval::read(within)?)),
            (None, None) => None,
        };
        Ok(Self { source, length, definition_version, within })
    }
}

/// The bits of a sequence.
impl Codec<u32> for u8 {
    fn write(self) -> u32 {
        self.into()
    }

    fn read(bits: u32) -> Result<Self, Malformed> {
        // A count above the bits of any sequence is rejected later.
        Ok(Self::try_from(bits).unwrap_or(Self::MAX))
    }
}
