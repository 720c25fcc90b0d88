//! Backing of a source, by its kind.

use std::sync::Arc;

use super::counter::CounterSource;
use super::multi_store::MultiStoreSource;
use super::remote_source::RemoteSource;
use super::segment::SegmentBacking;
use super::snowflake::SnowflakeBacking;
use super::store_minted::StoreMinted;
use super::uuid_source::{UlidSource, UuidSource};

/// Backing that a source mints from.
#[derive(Debug)]
pub(crate) enum Backing {
    Snowflake(SnowflakeBacking),
    StoreMinted(Box<StoreMinted>),
    Segment(SegmentBacking),
    MultiStore(Arc<MultiStoreSource>),
    Counter(Arc<CounterSource>),
    Uuid(Box<UuidSource>),
    Ulid(UlidSource),
    Remote(RemoteSource),
}
