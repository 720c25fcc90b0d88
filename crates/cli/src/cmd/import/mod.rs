//! `snowmint import`: a move from another system, so that none of its IDs comes again.
//!
//! Each other system is read into a plan, which is shown and, without `--dry-run`, carried out. A
//! plan with an invalid entry is never carried out. The same command again finds everything done,
//! and nothing is ever lowered.

mod apply;
mod common;
mod cut;
mod keys;
mod merge;
mod plan;
mod redis;
mod segments;
mod systems;
mod tokens;
mod workers;

use clap::{Args, Subcommand};

use crate::terminal::exit::Outcome;

/// Begin above every ID of another system.
///
/// First stop everything that allocates from the other system, including clients with segments of
/// their own, or make sure that they take nothing new: the import reads its current state. A plan
/// is shown before anything changes; --dry-run ends there. The same command again changes nothing,
/// and nothing is ever lowered.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint import leaf --from env:LEAF --dry-run
  snowmint import leaf --from env:LEAF --name leaf-segment-test=orders
  snowmint import tinyid --from env:TINYID_1 --from env:TINYID_2
  snowmint import tinyid --from env:TINYID_1 --tokens
  snowmint import cosid --from file:cosid-url --only app.orders
  snowmint import leaf-snowflake --from zookeeper://zk1:2181,zk2:2181/snowflake/leaf
  snowmint import uid-generator --from env:UID_GENERATOR
  snowmint import redis --from redis://db:6379/0 --match 'seq:*' --server 10.0.0.1:7700

env:NAME and file:PATH name where a URL is kept that has a password in it, such as mysql://user:password@db/leaf:
others can read command lines.")]
pub(crate) struct Import {
    #[command(subcommand)]
    import_source: ImportSource,
}

#[derive(Debug, Subcommand)]
enum ImportSource {
    /// Turn the keys of Meituan Leaf's table `leaf_alloc` into segment sources.
    Leaf(segments::KeySelection),
    /// Exclude the worker numbers in the ZooKeeper tree of Meituan Leaf, or of an application that
    /// keeps /servers and /instances (as Twitter's and its heirs do).
    ///
    /// The path of the URL is the application's, or that of all applications; default /snowflake.
    LeafSnowflake(systems::WorkerSelection),
    Tinyid(systems::Tinyid),
    /// Exclude the worker numbers of Baidu's uid-generator, up to the highest in its table
    /// `WORKER_NODE`.
    ///
    /// A process that borrowed time may have minted far ahead of any clock: consider this before
    /// giving --stopped. That option is rejected until --layout gives the epoch of its IDs: the
    /// shipped epoch has run out, and a layout with a later epoch repeats its IDs.
    UidGenerator(systems::WorkerSelection),
    Cosid(systems::Cosid),
    Redis(redis::Redis),
}

impl Import {
    pub(crate) fn run(self) -> Outcome {
        match self.import_source {
            ImportSource::Leaf(keys) => systems::leaf(&keys),
            ImportSource::LeafSnowflake(workers) => systems::leaf_snowflake(&workers),
            ImportSource::UidGenerator(workers) => systems::uid_generator(&workers),
            ImportSource::Tinyid(tinyid) => tinyid.run(),
            ImportSource::Cosid(cosid) => cosid.run(),
            ImportSource::Redis(redis) => redis.run(),
        }
    }
}
