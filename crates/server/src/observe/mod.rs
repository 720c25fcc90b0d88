//! Counts, log lines and spans of the server, and the settings of them that change while it runs.

pub(crate) mod live;
pub(crate) mod log_line;
pub(crate) mod meter;
pub(crate) mod trace;
