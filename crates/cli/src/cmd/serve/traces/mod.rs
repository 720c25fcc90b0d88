//! Spans of requests and of store calls, sent to a collector over OTLP.
//!
//! They wait in a queue of bounded length, and a separate thread sends them. Minting never waits
//! for a collector, and spans beyond the queue are dropped.

#[cfg_attr(feature = "otlp", path = "exporting.rs")]
#[cfg_attr(not(feature = "otlp"), path = "absent.rs")]
mod exporting;

pub(crate) use exporting::Exporting;
