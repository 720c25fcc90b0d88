//! Sources of a store, opened by this process.

mod context;
mod counter;
pub(crate) mod place;
mod segment;
mod snowflake;
mod texts;

pub(crate) use context::StoreContext;
pub use counter::Counter;
pub use segment::Segment;
pub(crate) use snowflake::StoreBacked;
pub use texts::TextSource;
