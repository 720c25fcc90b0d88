//! Another clock, to hold one's own against.

use std::fmt;

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use crate::error::Result;

/// A clock that a node's own is held against where the store has none: that of a time server.
#[async_trait]
pub trait ClockWitness: Send + Sync + fmt::Debug + 'static {
    /// What it is called in messages.
    fn name(&self) -> String;
    /// What time it is. Asked every few seconds: it is for the witness to ask a server less often.
    ///
    /// # Errors
    /// When it is not known: nothing is compared then.
    async fn now(&self) -> Result<UnixMillis>;
}
