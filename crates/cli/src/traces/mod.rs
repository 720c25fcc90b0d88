//! Spans of requests and of calls of the store, sent to a collector over OTLP.
//!
//! They wait in a queue of bounded length and are sent by a thread of its own: minting never waits for a
//! collector, and what does not fit into the queue is left out.

#[cfg_attr(feature = "otlp", path = "exporting.rs")]
#[cfg_attr(not(feature = "otlp"), path = "absent.rs")]
mod exporting;

pub(crate) use exporting::Exporting;
