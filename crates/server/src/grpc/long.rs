//! Calls that a caller may hold open without a token: health watches and reflection, and the list
//! of layouts, which is long, until the caller has read it.

use std::sync::Arc;

use snowmint_wire::error::Code;

use crate::access::Caller;
use crate::error::Error;
use crate::requests::quota::{Bounds, Full, Quota, QuotaPermit};

/// Bounds of these calls. A client needs one health watch for a connection, and a tool one call of
/// reflection.
const BOUNDS: Bounds = Bounds { all: 4_096, share: 512, connection: 8 };

/// All such calls of a server. Clones share the bounds.
#[derive(Clone, Debug)]
pub(super) struct LongCalls(Arc<Quota>);

impl LongCalls {
    pub(super) fn new(requires_tokens: bool) -> Self {
        Self(Quota::new(BOUNDS, requires_tokens))
    }

    /// Counts a call until the result is dropped.
    ///
    /// # Errors
    /// The bound that is reached.
    pub(super) fn begin(&self, caller: &Caller) -> Result<QuotaPermit, Error> {
        let Bounds { all, share, connection } = *self.0.bounds();
        self.0.try_acquire(caller, 1).map_err(|full| match full {
            Full::Connection => {
                let message = format!(
                    "calls of health Watch, reflection and ListLayouts exceed {connection} on this \
                     connection; end one, or share one Watch"
                );
                Error::new(Code::LimitExceeded, message)
            }
            Full::Share | Full::Anonymous | Full::All => {
                let message = format!(
                    "calls of health Watch, reflection and ListLayouts exceed their limit ({all} \
                     in all, half of it without a token, {share} for one token or address); call \
                     Check instead"
                );
                Error::new(Code::Overloaded, message)
            }
        })
    }
}
