//! Description of the server and of its caller.

use std::sync::Arc;

use snowmint_coord::Node;

use super::state::Service;
use crate::access::Token;
use crate::error::Error;

impl Service {
    /// Returns the node of this server and the caller's token, for a description. The store is not
    /// called: a caller that polls this causes no load.
    ///
    /// # Errors
    /// Without a token, where tokens are required.
    pub(crate) fn about(&self) -> Result<(&Node, Option<Arc<Token>>), Error> {
        Ok((&self.node, self.caller().admitted()?))
    }
}
