//! A caller, as its connection and the audit trail know it.

use super::caller::Caller;
use crate::clients::tracker::TrackedConnection;
use crate::trail::Audited;

impl Caller {
    /// Makes the connection one of this caller.
    pub(crate) fn is_on(&self, connection: &TrackedConnection) {
        connection.is_of(self.has_a_token(), self.has_shown_something(), || self.client());
    }
}

impl Audited for Caller {
    fn has_a_token(&self) -> bool {
        Self::has_a_token(self)
    }

    fn name(&self) -> Option<&str> {
        Self::name(self)
    }

    fn at_network(&self) -> String {
        Self::at_network(self)
    }
}
