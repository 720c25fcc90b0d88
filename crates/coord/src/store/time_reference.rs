//! Time reference: a clock that the node's own clock is checked against.

use std::fmt;

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use crate::error::Result;

/// A clock, such as a time server's, that a node checks its own against where the store has no
/// clock.
#[async_trait]
pub trait TimeReference: Send + Sync + fmt::Debug + 'static {
    /// Returns the name for messages: any caller may read it, so it has no address.
    fn name(&self) -> String;
    /// Returns the address for operators, such as `at time.example:123`, if there is one.
    fn address(&self) -> Option<String> {
        None
    }
    /// Returns the current time. Nodes call this every few seconds; the implementation decides how
    /// often it asks a server.
    ///
    /// # Errors
    /// The time is unknown; the node skips the comparison.
    async fn now(&self) -> Result<UnixMillis>;
}
