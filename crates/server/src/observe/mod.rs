//! What the server shows of itself: counts, log lines, spans, and what may change while it runs.

pub(crate) mod live;
pub(crate) mod log_line;
pub(crate) mod meter;
pub(crate) mod trace;
