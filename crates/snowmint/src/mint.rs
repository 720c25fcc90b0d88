//! An open store, and its sources.

use std::sync::Arc;

use snowmint_coord::spec::Kind;
use snowmint_coord::{END_MS, Error, ErrorKind, Node, Readiness, Result, Source, SourceSpec};

use crate::runtime::OwnedRuntime;
use crate::snowflake::Snowflake;
use crate::stored::{Counter, Segment, StoreBacked, StoreContext, TextSource};

/// An open store: this process's membership in one namespace. Clones share it.
///
/// Opening a source again returns the same generator. An undefined source gets defined with the
/// default of every key; [`define`](Self::define) sets keys.
///
/// [`close`](Self::close) releases worker numbers at once. Dropping the last clone and the last of
/// its sources stops minting, but releases nothing. A worker number then stays held until the
/// presence of this process expires (10 s), and the unused rest of its window is never minted.
///
/// A forked child gets `Unsupported` for every kind of source, because the parent mints the numbers
/// in the child's copy of the memory. Open stores after forking.
#[derive(Clone, Debug)]
pub struct Mint {
    node: Node,
    ctx: StoreContext,
}

impl Mint {
    pub(crate) fn new(node: Node, ctx: StoreContext) -> Self {
        Self { node, ctx }
    }

    pub(crate) fn runtime(mut self, runtime: Arc<OwnedRuntime>) -> Self {
        self.ctx.runtime = Some(runtime);
        self
    }

    /// Returns the snowflake source of this name.
    ///
    /// # Errors
    /// `Conflict` when the source has another kind; `PoolFull` when no worker number is free;
    /// `Unavailable` when the store is unreachable.
    pub async fn snowflake(&self, name: &str) -> Result<Snowflake> {
        let source = self.source(name, Kind::Snowflake).await?;
        Ok(Snowflake::of_source(StoreBacked::new(source, self.ctx.clone())))
    }

    /// Returns the segment source of this name: numbers from 1 on, without time inside.
    ///
    /// # Errors
    /// `Conflict` when the source has another kind; `Unavailable` when the store is unreachable.
    pub async fn segment(&self, name: &str) -> Result<Segment> {
        let source = self.source(name, Kind::Segment).await?;
        if source.makes_serials() {
            return Err(otherwise(name, "serials", "numbers"));
        }
        Ok(Segment::new(source, self.ctx.clone()))
    }

    /// Returns the counter source of this name: numbers for each key.
    ///
    /// # Errors
    /// Same as [`segment`](Self::segment).
    pub async fn counter(&self, name: &str) -> Result<Counter> {
        let source = self.source(name, Kind::Counter).await?;
        Ok(Counter::new(source, self.ctx.clone()))
    }

    /// Returns the segment source of this name that writes its numbers as serials. It must already
    /// be defined.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` when it has another definition; `Unavailable` when the store is
    /// unreachable.
    pub async fn serial(&self, name: &str) -> Result<TextSource> {
        let source = self.node.source(name).await?;
        if !source.makes_serials() {
            return Err(otherwise(name, &format!("kind {}", source.kind()), "serials"));
        }
        Ok(TextSource::new(source, self.ctx.clone()))
    }

    /// Returns the UUID source of this name; version 7 unless its definition says otherwise.
    ///
    /// # Errors
    /// Same as [`segment`](Self::segment).
    pub async fn uuid(&self, name: &str) -> Result<TextSource> {
        let source = self.source(name, Kind::Uuid).await?;
        Ok(TextSource::new(source, self.ctx.clone()))
    }

    /// Returns the ULID source of this name.
    ///
    /// # Errors
    /// Same as [`segment`](Self::segment).
    pub async fn ulid(&self, name: &str) -> Result<TextSource> {
        let source = self.source(name, Kind::Ulid).await?;
        Ok(TextSource::new(source, self.ctx.clone()))
    }

    /// Defines a source for all members of the namespace, or succeeds if it has the same definition
    /// already.
    ///
    /// # Errors
    /// `Invalid` for keys that do not make a source; `Conflict` when it has another definition.
    pub async fn define(&self, name: &str, spec: &SourceSpec) -> Result<()> {
        self.node.define(name, spec).await.map(drop)
    }

    /// Returns whether every opened source can mint now, and if not, the reason.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.node.readiness()
    }

    /// Returns the node: the catalog, the workers, and everything else that a server needs.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Releases everything in a safe order: closes the generators for good, records that in the
    /// journal if there is one, releases in the store, and closes it. Takes at most 10 s, whatever
    /// store and disk do. All sources return `Closed` from then on. Another call does nothing.
    ///
    /// # Errors
    /// An error when the journal or the store could not be written. Nothing is lost then: the
    /// effect is that of a crash.
    pub async fn close(&self) -> Result<()> {
        self.node.end(END_MS).await
    }

    async fn source(&self, name: &str, kind: Kind) -> Result<Source> {
        let source = match self.node.source(name).await {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => {
                match self.node.define(name, &SourceSpec::of(kind)).await {
                    // Another process defined it first, in another way.
                    Err(error) if matches!(error.kind(), ErrorKind::Conflict) => {}
                    defined => drop(defined?),
                }
                self.node.source(name).await?
            }
            found => found?,
        };
        if source.kind() == kind {
            return Ok(source);
        }
        Err(otherwise(name, &format!("kind {}", source.kind()), &format!("kind {kind}")))
    }
}

fn otherwise(name: &str, stored: &str, requested: &str) -> Error {
    Error::conflict(format!(
        "source {name:?} has {stored}, requested {requested}; use another name or these settings"
    ))
}
