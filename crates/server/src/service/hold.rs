//! What answers take of what may be minted and not yet sent.
//!
//! Nearly all are sent at once and take nothing. A connection may have some small ones that are not read, by itself,
//! as over HTTP/2, where it may ask for many at once; beyond, and for large ones, the client takes from its share of
//! the limit that all have in common.

use std::sync::Arc;

use super::{Error, Service};
use crate::roster::Entry;
use crate::share::Share;

/// Answers with fewer IDs than this are not counted at all.
const COUNTED_FROM: u64 = 16;
/// Those with fewer than this are counted for their connection, as long as there is room,
const LARGE_FROM: u64 = 1_024;
/// which there is for so many IDs.
const OF_CONNECTION: u32 = 4_096;
/// How many unsent IDs a stream counts as: more than it ever holds.
const STREAM_IDS: u64 = 16_384;
/// How many a row of a list counts as, such as a definition: by its bytes.
const ROW_IDS: u64 = 16;
/// How many bytes of any other text count as one.
const ID_BYTES: u64 = 20;

/// What an answer takes of what may be unsent. Keep it until the answer is sent.
#[derive(Debug, Default)]
pub struct Hold(Kept);

#[derive(Debug, Default)]
enum Kept {
    #[default]
    Nothing,
    OfConnection {
        _small: Small,
    },
    OfAll {
        _share: Share,
    },
}

/// Of what a connection may have unsent by itself.
#[derive(Debug)]
struct Small {
    connection: Arc<Entry>,
    count: u32,
}

impl Drop for Small {
    fn drop(&mut self) {
        self.connection.gives_back(self.count);
    }
}

impl Hold {
    /// Whether nobody misses it.
    pub(crate) const fn is_nothing(&self) -> bool {
        matches!(self.0, Kept::Nothing)
    }

    /// Whether it is missed by others.
    pub(crate) fn counts(&self) -> bool {
        matches!(self.0, Kept::OfAll { .. })
    }
}

impl Service {
    /// What a stream takes of the limit of unsent IDs, for as long as it lasts.
    ///
    /// # Errors
    /// When it is more than the caller's share.
    pub(crate) fn hold_stream(&self) -> Result<Hold, Error> {
        self.hold_share(STREAM_IDS)
    }

    /// What an answer with so many IDs takes of what may be unsent.
    ///
    /// # Errors
    /// As [`Service::hold_stream`].
    pub(crate) fn hold(&self, count: u64) -> Result<Hold, Error> {
        if count < COUNTED_FROM {
            return Ok(Hold::default());
        }
        match (u32::try_from(count), self.caller.connection()) {
            (Ok(count), Some(connection)) if u64::from(count) < LARGE_FROM => {
                if !connection.takes(count, OF_CONNECTION) {
                    return self.hold_share(count.into());
                }
                let small = Small { connection: Arc::clone(connection), count };
                Ok(Hold(Kept::OfConnection { _small: small }))
            }
            (_, None) if count < LARGE_FROM => Ok(Hold::default()),
            _ => self.hold_share(count),
        }
    }

    /// What a list with so many rows takes of it.
    ///
    /// # Errors
    /// As [`Service::hold_stream`].
    pub(crate) fn hold_rows(&self, count: usize) -> Result<Hold, Error> {
        self.hold(u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(ROW_IDS))
    }

    /// What a text of so many bytes takes of the same limit.
    ///
    /// # Errors
    /// As [`Service::hold_stream`].
    pub(crate) fn hold_bytes(&self, bytes: usize) -> Result<Hold, Error> {
        self.hold(u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(ID_BYTES))
    }

    fn hold_share(&self, count: u64) -> Result<Hold, Error> {
        let share = self.unsent.take(self.caller.client(), count);
        share
            .map(|share| Hold(Kept::OfAll { _share: share }))
            .map_err(|over| Error::unsent(count, &over))
    }
}
