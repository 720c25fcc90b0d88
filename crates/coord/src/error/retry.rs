//! Whether a retry helps.

/// Whether the same call can succeed later without any other change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// No retry helps without a change of the call or configuration, or an operator.
    Never,
    /// A retry may succeed at once.
    Now,
    /// A retry may succeed after this many milliseconds.
    AfterMs(u64),
}
