//! Data of other ID systems, read for a move to Snowmint, whose numbers must lie above all of
//! theirs.
//!
//! A table records how far numbers were handed out to servers and clients, never which were used:
//! all numbers up to there count as used. A server that still allocates during the read continues
//! from there: stop all such servers first, or cut them over.

mod allocate;
mod cosid_redis;
mod numbers;
mod redis;
mod tables;
mod tokens;
mod workers;
mod zookeeper;

use snowmint_coord::verbs::Access;
use snowmint_coord::{BoxFuture, Error, Result};

use crate::failure::Label;
use crate::scheme::feature_of;
pub use allocate::{Frozen, UpstreamTable};
use numbers::TableShape;
pub use numbers::{HIGHEST_MAX, Numbers, Sequence, SequenceState};
pub use redis::{CounterState, Counters};
use tables::Tables;
pub use tokens::TokenGrant;
pub use workers::{LegacyWorker, LegacyWorkerSystem};
pub use zookeeper::zookeeper_workers;

/// A system that hands out numbers from a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacySystem {
    /// Meituan Leaf: `leaf_alloc`.
    Leaf,
    /// Didi Tinyid: `tiny_id_info`.
    Tinyid,
    /// CosId: `cosid`.
    Cosid,
}

impl LegacySystem {
    /// Returns the most characters of a key that can be cut over. Tinyid's cutover renames the key,
    /// so the column needs space for the prefix.
    #[must_use]
    pub const fn key_chars_max(self) -> Option<usize> {
        match self {
            Self::Tinyid => Some(numbers::BIZ_TYPE_CHARS.saturating_sub(numbers::RENAMED.len())),
            Self::Leaf | Self::Cosid => None,
        }
    }

    const fn shape(self) -> &'static TableShape {
        match self {
            Self::Leaf => &TableShape {
                table: "leaf_alloc",
                key: "biz_tag",
                mark: "max_id",
                mark_is_used: false,
                ends_by_name: false,
                version: None,
                step: Some("step"),
                stripe: None,
            },
            Self::Tinyid => &TableShape {
                table: "tiny_id_info",
                key: "biz_type",
                mark: "max_id",
                mark_is_used: true,
                ends_by_name: true,
                version: Some("version"),
                step: Some("step"),
                stripe: Some(["delta", "remainder"]),
            },
            Self::Cosid => &TableShape {
                table: "cosid",
                key: "name",
                mark: "last_max_id",
                mark_is_used: true,
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
pub struct LegacyDatabase {
    backend: LegacyBackend,
}

#[derive(Debug)]
enum LegacyBackend {
    Tables(Tables),
    /// Connected on first use.
    Redis(String),
}

impl LegacyDatabase {
    /// Returns the database at a URL, without connecting: MySQL or PostgreSQL; for CosId also Redis
    /// or a Redis cluster.
    ///
    /// # Errors
    /// `Invalid` for any other URL.
    pub fn open(url: &str) -> Result<Self> {
        let backend = match feature_of(url) {
            Some("redis") => LegacyBackend::Redis(url.to_owned()),
            _ => LegacyBackend::Tables(Tables::open(url)?),
        };
        Ok(Self { backend })
    }

    /// Returns the product and the address, for operators.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.backend {
            LegacyBackend::Tables(tables) => tables.label.full(),
            LegacyBackend::Redis(url) => Label::of("Redis", url).full(),
        }
    }

    /// Returns reasons to doubt the database's data, as full sentences for an operator.
    ///
    /// # Errors
    /// The database's error.
    pub fn warnings(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(async move {
            let LegacyBackend::Tables(tables) = &self.backend else { return Ok(Vec::new()) };
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
    pub fn workers(&self, system: LegacyWorkerSystem) -> BoxFuture<'_, Result<Vec<LegacyWorker>>> {
        Box::pin(async move {
            match &self.backend {
                LegacyBackend::Tables(tables) => {
                    let mut step = tables.begin(Access::Read).await?;
                    let workers = system.read(&mut step).await?;
                    step.roll_back().await?;
                    Ok(workers)
                }
                LegacyBackend::Redis(url) if system == LegacyWorkerSystem::Cosid => {
                    cosid_redis::workers(&Counters::open(url).await?).await
                }
                LegacyBackend::Redis(_) => Err(self.has_no_tables()),
            }
        })
    }

    /// Returns the tokens of Tinyid's clients.
    ///
    /// # Errors
    /// `NotFound` without its table; the database's error.
    pub fn tokens(&self) -> BoxFuture<'_, Result<Vec<TokenGrant>>> {
        Box::pin(async move {
            let LegacyBackend::Tables(tables) = &self.backend else {
                return Err(self.has_no_tables());
            };
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
    pub fn sequences(&self, legacy_system: LegacySystem) -> BoxFuture<'_, Result<Vec<Sequence>>> {
        Box::pin(async move {
            match &self.backend {
                LegacyBackend::Tables(tables) => {
                    let shape = legacy_system.shape();
                    let mut step = tables.begin(Access::Read).await?;
                    let rows = step.select(shape.table, &shape.columns(), None).await?;
                    step.roll_back().await?;
                    Ok(rows.into_iter().map(|row| shape.read(row)).collect())
                }
                LegacyBackend::Redis(url) if legacy_system == LegacySystem::Cosid => {
                    cosid_redis::sequences(&Counters::open(url).await?).await
                }
                LegacyBackend::Redis(_) => Err(self.has_no_tables()),
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
