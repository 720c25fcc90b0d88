//! Report of a server on itself.

/// Report of a server on itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerReport {
    pub(crate) version: String,
    pub(crate) ready: bool,
    /// Reasons that it is not ready, as codes.
    pub(crate) codes: Vec<String>,
    /// Milliseconds by which its clock was ahead of its time reference.
    pub(crate) clock_ahead_ms: Option<i64>,
    pub(crate) presence_ms: u64,
    /// Number of counter sections that it owns.
    pub(crate) sections: u64,
    /// IDs that it has issued since its start.
    pub(crate) issued: u64,
}
