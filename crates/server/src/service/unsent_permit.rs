//! Parts of the limit of minted and unsent IDs that responses take.

use std::sync::Arc;

use crate::clients::share::Share;
use crate::clients::tracker::TrackedConnection;

/// Part of the limit of unsent IDs that a response takes. Keep it until the response is sent.
#[derive(Debug, Default)]
pub struct UnsentPermit(PermitScope);

#[derive(Debug, Default)]
enum PermitScope {
    #[default]
    Nothing,
    OfConnection {
        _small: Small,
    },
    OfAll {
        _share: Share,
    },
}

/// Part of a connection's own bound of unsent IDs.
#[derive(Debug)]
struct Small {
    connection: Arc<TrackedConnection>,
    count: u32,
}

impl Drop for Small {
    fn drop(&mut self) {
        self.connection.gives_back(self.count);
    }
}

impl UnsentPermit {
    /// Returns the hold of a part that the connection has already taken from its own bound.
    pub(super) const fn of_connection(connection: Arc<TrackedConnection>, count: u32) -> Self {
        Self(PermitScope::OfConnection { _small: Small { connection, count } })
    }

    /// Returns the hold of a part of the common limit.
    pub(super) const fn of_all(share: Share) -> Self {
        Self(PermitScope::OfAll { _share: share })
    }

    /// Returns whether it takes nothing.
    pub(crate) const fn is_nothing(&self) -> bool {
        matches!(self.0, PermitScope::Nothing)
    }

    /// Returns whether it takes from the common limit.
    pub(crate) fn counts(&self) -> bool {
        matches!(self.0, PermitScope::OfAll { .. })
    }
}
