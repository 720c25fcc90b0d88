//! Requests that wait: for their bodies, and for calls held open.

pub(crate) mod quota;
pub(crate) mod reading;
