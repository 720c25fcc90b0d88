//! Takes parts of the limit of minted and unsent IDs.
//!
//! Nearly all responses are sent immediately and take nothing. A connection may have some small
//! unread ones by itself: over HTTP/2 it may send many requests at once. Beyond those, and for
//! large ones, the client takes from its share of the common limit.

use std::sync::Arc;

use super::state::Service;
use super::unsent_permit::UnsentPermit;
use crate::error::Error;

/// Responses with fewer IDs than this are not counted at all.
const COUNTED_FROM: u64 = 16;
/// Responses with fewer IDs than this count for their connection, up to `OF_CONNECTION`.
const LARGE_FROM: u64 = 1_024;
/// Unsent IDs that a connection may have by itself.
const OF_CONNECTION: u32 = 4_096;
/// Unsent IDs that a stream counts as: more than it ever holds.
const STREAM_IDS: u64 = 16_384;
/// IDs that a row of a list counts as, such as a definition: by its bytes.
const ROW_IDS: u64 = 16;
/// Bytes of any other text that count as one ID.
const ID_BYTES: u64 = 20;

impl Service {
    /// Takes a stream's part of the limit of unsent IDs, for its whole duration.
    ///
    /// # Errors
    /// When it is more than the caller's share.
    pub(crate) fn hold_stream(&self) -> Result<UnsentPermit, Error> {
        self.hold_share(STREAM_IDS)
    }

    /// Takes the part of a response with `count` IDs.
    ///
    /// # Errors
    /// Those of [`Service::hold_stream`].
    pub(crate) fn unsent_permit(&self, count: u64) -> Result<UnsentPermit, Error> {
        if count < COUNTED_FROM {
            return Ok(UnsentPermit::default());
        }
        match (u32::try_from(count), self.caller.connection()) {
            (Ok(count), Some(connection)) if u64::from(count) < LARGE_FROM => {
                if !connection.takes(count, OF_CONNECTION) {
                    return self.hold_share(count.into());
                }
                Ok(UnsentPermit::of_connection(Arc::clone(connection), count))
            }
            (_, None) if count < LARGE_FROM => Ok(UnsentPermit::default()),
            _ => self.hold_share(count),
        }
    }

    /// Takes the part of a list with `count` rows.
    ///
    /// # Errors
    /// Those of [`Service::hold_stream`].
    pub(crate) fn hold_rows(&self, count: usize) -> Result<UnsentPermit, Error> {
        self.unsent_permit(u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(ROW_IDS))
    }

    /// Takes the part of a text with this many bytes.
    ///
    /// # Errors
    /// Those of [`Service::hold_stream`].
    pub(crate) fn hold_bytes(&self, bytes: usize) -> Result<UnsentPermit, Error> {
        self.unsent_permit(u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(ID_BYTES))
    }

    fn hold_share(&self, count: u64) -> Result<UnsentPermit, Error> {
        let share = self.unsent.try_acquire(self.caller.client(), count);
        share.map(UnsentPermit::of_all).map_err(|over| Error::unsent(count, &over))
    }
}
