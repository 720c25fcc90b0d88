//! Sources of a store, opened by this process.

mod counter;
mod options;
mod place;
mod segment;
mod snowflake;
mod texts;

use std::sync::Arc;

use snowmint_coord::spec::Kind;
use snowmint_coord::{BoxFuture, END_MS, Node, Readiness, Source, SourceSpec};

pub use counter::Counter;
pub use options::Options;
pub use segment::Segment;
pub(crate) use snowflake::Stored;
pub use texts::Texts;

use crate::clock::HandleClock;
use crate::runtime::Keep;
use crate::snowflake::Snowflake;
use crate::{Error, ErrorKind, Result};

/// How long a call that needs the store waits for it, unless told otherwise.
pub const STORE_WAIT_MS: u64 = 5_000;

/// Opens the store at `url` and joins its namespace `default`: `sqlite:PATH` for the processes of one
/// machine, `snowmint://HOST:PORT,HOST:PORT` for servers, or with TLS `snowmints://` (feature `client`), `memory:`
/// for tests.
/// [`Options`] has everything else that can be chosen.
///
/// Needs a Tokio runtime with time enabled, on which one task then keeps the worker's window ahead of
/// need; [`open_blocking`](crate::open_blocking) is for programs without one.
///
/// # Errors
/// `Invalid` for a URL that names no store; what the store says when it cannot be opened.
pub fn open(url: &str) -> BoxFuture<'_, Result<Mint>> {
    Options::new().open(url)
}

/// An open store: this process's membership in one namespace. Clones share it.
///
/// Asking for a source again gives the same generator. A source that is not defined yet is defined,
/// with every key at its default; [`define`](Self::define) sets keys.
///
/// [`close`](Self::close) gives worker numbers back at once. Dropping the last clone and the last of
/// its sources stops minting, but gives nothing back: a worker number stays held until the presence of
/// this process has lapsed (10 s), and the unused rest of its window is minted by nobody.
///
/// A forked child is refused (`Unsupported`), whatever the kind of source: what is in its memory, the
/// parent mints. Open stores after forking.
#[derive(Clone, Debug)]
pub struct Mint {
    node: Node,
    shared: Shared,
}

/// What a store's handles have in common.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Arc<HandleClock>,
    pub(crate) wait_max_ms: u64,
    /// The runtime, where this crate has made it. Dropped after everything that runs on it.
    pub(crate) keep: Option<Arc<Keep>>,
}

impl Mint {
    pub(crate) fn new(node: Node, shared: Shared) -> Self {
        Self { node, shared }
    }

    pub(crate) fn keep(mut self, keep: Arc<Keep>) -> Self {
        self.shared.keep = Some(keep);
        self
    }

    /// The snowflake source of this name.
    ///
    /// # Errors
    /// `Conflict` when it is defined as another kind; `PoolFull` when no worker number is free;
    /// `Unavailable` when the store is away.
    pub async fn snowflake(&self, name: &str) -> Result<Snowflake> {
        let source = self.source(name, Kind::Snowflake).await?;
        Ok(Snowflake::of_source(Stored::new(source, self.shared.clone())))
    }

    /// The segment source of this name: numbers from 1 on, without time inside.
    ///
    /// # Errors
    /// `Conflict` when it is defined as another kind; `Unavailable` when the store is away.
    pub async fn segment(&self, name: &str) -> Result<Segment> {
        let source = self.source(name, Kind::Segment).await?;
        if source.makes_serials() {
            return Err(otherwise(name, "serials".into(), "numbers".into()));
        }
        Ok(Segment::new(source, self.shared.clone()))
    }

    /// The counter source of this name: numbers for each key.
    ///
    /// # Errors
    /// As [`segment`](Self::segment).
    pub async fn counter(&self, name: &str) -> Result<Counter> {
        let source = self.source(name, Kind::Counter).await?;
        Ok(Counter::new(source, self.shared.clone()))
    }

    /// The segment source of this name that writes its numbers as serials. It must be defined before.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` when it is defined otherwise; `Unavailable` when the store is away.
    pub async fn serial(&self, name: &str) -> Result<Texts> {
        let source = self.node.source(name).await?;
        if !source.makes_serials() {
            return Err(otherwise(name, format!("kind {}", source.kind()), "serials".into()));
        }
        Ok(Texts::new(source, self.shared.clone()))
    }

    /// The UUID source of this name; version 7 unless it is defined otherwise.
    ///
    /// # Errors
    /// As [`segment`](Self::segment).
    pub async fn uuid(&self, name: &str) -> Result<Texts> {
        let source = self.source(name, Kind::Uuid).await?;
        Ok(Texts::new(source, self.shared.clone()))
    }

    /// The ULID source of this name.
    ///
    /// # Errors
    /// As [`segment`](Self::segment).
    pub async fn ulid(&self, name: &str) -> Result<Texts> {
        let source = self.source(name, Kind::Ulid).await?;
        Ok(Texts::new(source, self.shared.clone()))
    }

    /// Defines a source for everybody in the namespace, or finds that it is defined in the same way.
    ///
    /// # Errors
    /// `Invalid` for keys that make no source; `Conflict` when it is defined otherwise.
    pub async fn define(&self, name: &str, spec: &SourceSpec) -> Result<()> {
        self.node.define(name, spec).await.map(drop)
    }

    /// Whether every source that was opened can mint now, and if not, why.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.node.readiness()
    }

    /// The node: the catalog, the workers, and everything else that a server would need.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Gives everything back, in the order that is safe: closes the generators for good, writes so in
    /// the journal where there is one, tells the store, and closes it: within 10 s, whatever store and disk do. All
    /// sources refuse with `Closed` from then on. Another call does nothing.
    ///
    /// # Errors
    /// When journal or store could not be told. Nothing is lost then: it is as if the process had
    /// crashed.
    pub async fn close(&self) -> Result<()> {
        self.node.end(END_MS).await
    }

    async fn source(&self, name: &str, kind: Kind) -> Result<Source> {
        let source = match self.node.source(name).await {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound { .. }) => {
                match self.node.define(name, &SourceSpec::of(kind)).await {
                    // Somebody was faster, and has defined it otherwise.
                    Err(error) if matches!(error.kind(), ErrorKind::Conflict { .. }) => {}
                    defined => drop(defined?),
                }
                self.node.source(name).await?
            }
            found => found?,
        };
        if source.kind() == kind {
            return Ok(source);
        }
        Err(otherwise(name, format!("kind {}", source.kind()), format!("kind {kind}")))
    }
}

fn otherwise(name: &str, stored: String, wanted: String) -> Error {
    let what = format!("source {name}");
    Error::new("open source", ErrorKind::Conflict { what, stored, wanted })
}
