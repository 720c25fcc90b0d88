//! Trait of a verb as a step runs it: its result, its kind of access, and its work on the rows.

use async_trait::async_trait;

use super::rows::{Access, FirstRow, Rows, VerbResult};
use crate::error::Verb;

/// Largest number of slots that one step writes if the rest can follow in another step. Other
/// callers of a store wait until a step ends.
const STEP_SLOTS_MAX: usize = 500;

/// Returns how many slots a step writes of a request for more, if it may write `writes_max`.
pub(super) fn step_slots(writes_max: usize) -> usize {
    writes_max.min(STEP_SLOTS_MAX)
}

/// A verb with its arguments.
#[async_trait]
pub trait RunVerb: Sync {
    /// Result of the verb.
    type Output: Send;
    /// Kind of access to the store.
    const ACCESS: Access = Access::Write;
    /// Whether the verb also runs on a store in doubt, whatever this handle has seen of it.
    const IN_DOUBT: bool = false;
    /// Whether the verb's first step that changes anything leaves a start itself.
    const LEAVES_START: bool = false;
    /// Whether reserves yield to this verb when it has lost to other writers.
    const HAS_PRIORITY: bool = true;

    /// Returns the verb, for errors.
    fn verb(&self) -> Verb;

    /// Returns the row that the verb reads first, if it is known before the step begins.
    fn first_row(&self) -> Option<FirstRow<'_>> {
        None
    }

    /// Reads, decides and writes.
    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Self::Output>;
}
