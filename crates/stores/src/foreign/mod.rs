//! Data of other ID systems, read for a move to Snowmint, whose numbers must lie above all of
//! theirs.
//!
//! A table records how far numbers were handed out to servers and clients, never which were used:
//! all numbers up to there count as used. A server that still allocates during the read continues
//! from there: stop all such servers first, or cut them over.

mod cosid_redis;
mod draw;
mod numbers;
mod redis;
mod tables;
mod tokens;
mod tree;
mod workers;

use snowmint_coord::verbs::Access;
use snowmint_coord::{BoxFuture, Error, Result};

use crate::failure::Label;
use crate::product::Product;
pub use draw::{Frozen, Shared};
use numbers::Shape;
pub use numbers::{HIGHEST_MAX, Numbers, Sequence, Standing};
pub use redis::{CounterAt, Counters};
use tables::Tables;
pub use tokens::Grant;
pub use tree::tree_workers;
pub use workers::{Crew, Worker};

/// A system that hands out numbers from a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Meituan Leaf: `leaf_alloc`.
    Leaf,
    /// Didi Tinyid: `tiny_id_info`.
    Tinyid,
    /// CosId: `cosid`.
    Cosid,
}

impl Peer {
    /// Returns the most characters of a key that can be cut over. Tinyid's cutover renames the key,
    /// so the column needs space for the prefix.
    #[must_use]
    pub const fn key_chars_max(self) -> Option<usize> {
        match self {
            Self::Tinyid => Some(numbers::BIZ_TYPE_CHARS.saturating_sub(numbers::RENAMED.len())),
            Self::Leaf | Self::Cosid => None,
        }
    }

    const fn shape(self) -> &'static Shape {
        match self {
            Self::Leaf => &Shape {
                table: "leaf_alloc",
                key: "biz_tag",
                mark: "max_id",
                mark_is_taken: false,
                ends_by_name: false,
                version: None,
                step: Some("step"),
                stripe: None,
            },
            Self::Tinyid => &Shape {
                table: "tiny_id_info",
                key: "biz_type",
                mark: "max_id",
                mark_is_taken: true,
                ends_by_name: true,
                version: Some("version"),
                step: Some("step"),
                stripe: Some(["delta", "remainder"]),
            },
            Self::Cosid => &Shape {
                table: "cosid",
                key: "name",
                mark: "last_max_id",
                mark_is_taken: true,
                ends_by_name: false,
                version: None,
                step: None,
                stripe: None,
            },
        }
    }
}

/// A database of another system.
#[derive(Debug)]
pub struct Foreign {
    place: Place,
}

#[derive(Debug)]
enum Place {
    Tables(Tables),
    /// Connected on first use.
    Redis(String),
}

impl Foreign {
    /// Returns the database at a URL, without connecting: MySQL or PostgreSQL; for CosId also Redis
    /// or a Redis cluster.
    ///
    /// # Errors
    /// `Invalid` for any other URL.
    pub fn open(url: &str) -> Result<Self> {
        let place = match Product::of(url) {
            Some(Product::Redis) => Place::Redis(url.to_owned()),
            _ => Place::Tables(Tables::open(url)?),
        };
        Ok(Self { place })
    }

    /// Returns the product and the address, for operators.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.place {
            Place::Tables(tables) => tables.label.full(),
            Place::Redis(url) => Label::of("Redis", url).full(),
        }
    }

    /// Returns reasons to doubt the database's data, as full sentences for an operator.
    ///
    /// # Errors
    /// The database's error.
    pub fn warnings(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(async move {
            let Place::Tables(tables) = &self.place else { return Ok(Vec::new()) };
            let warning = || {
                format!(
                    "{} takes no writes: if it is a replica, it may lag behind its primary, whose newest \
                     numbers it does not know. Name the primary",
                    tables.label.full()
                )
            };
            Ok(tables.is_read_only().await?.then(warning).into_iter().collect())
        })
    }

    /// Returns the worker numbers that a system assigned, and their holders.
    ///
    /// # Errors
    /// `NotFound` without its table; the database's error.
    pub fn workers(&self, crew: Crew) -> BoxFuture<'_, Result<Vec<Worker>>> {
        Box::pin(async move {
            match &self.place {
                Place::Tables(tables) => {
                    let mut step = tables.begin(Access::Read).await?;
                    let workers = crew.read(&mut step).await?;
                    step.roll_back().await?;
                    Ok(workers)
                }
                Place::Redis(url) if crew == Crew::Cosid => {
                    cosid_redis::workers(&Counters::open(url).await?).await
                }
                Place::Redis(_) => Err(self.has_no_tables()),
            }
        })
    }

    /// Returns the tokens of Tinyid's clients.
    ///
    /// # Errors
    /// `NotFound` without its table; the database's error.
    pub fn tokens(&self) -> BoxFuture<'_, Result<Vec<Grant>>> {
        Box::pin(async move {
            let Place::Tables(tables) = &self.place else { return Err(self.has_no_tables()) };
            let mut step = tables.begin(Access::Read).await?;
            let tokens = tokens::read(&mut step).await?;
            step.roll_back().await?;
            Ok(tokens)
        })
    }

    /// Returns all keys of a system by name, each with its highest number.
    ///
    /// # Errors
    /// `NotFound` without its table; the database's error.
    pub fn sequences(&self, peer: Peer) -> BoxFuture<'_, Result<Vec<Sequence>>> {
        Box::pin(async move {
            match &self.place {
                Place::Tables(tables) => {
                    let shape = peer.shape();
                    let mut step = tables.begin(Access::Read).await?;
                    let rows = step.select(shape.table, &shape.columns(), None).await?;
                    step.roll_back().await?;
                    Ok(rows.into_iter().map(|row| shape.read(row)).collect())
                }
                Place::Redis(url) if peer == Peer::Cosid => {
                    cosid_redis::sequences(&Counters::open(url).await?).await
                }
                Place::Redis(_) => Err(self.has_no_tables()),
            }
        })
    }

    fn has_no_tables(&self) -> Error {
        Error::invalid(
            "legacy database is Redis, and this system uses MySQL or PostgreSQL; write \
             mysql://USER:PASSWORD@HOST/DATABASE or postgres://…",
        )
        .with_detail(self.label())
    }
}
