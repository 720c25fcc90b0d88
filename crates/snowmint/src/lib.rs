//! Unique IDs inside your service.
//!
//! **The problem.** A service needs IDs that no other process ever makes, that fit 64 bits, that
//! sort by time, and that cost nanoseconds. So each process gets a number, the *worker*, and puts
//! time, worker and a counter into the ID.
//!
//! **Why the easy solutions fail.** Sooner or later two processes use the same worker from a
//! configuration file: during a rolling restart, or after an operator copied the file. And a
//! process that restarts after its clock was set back repeats the IDs of its predecessor. The error
//! stays unnoticed until two rows have one key.
//!
//! **What this crate does.** Before an ID leaves the process, a durable record says that its tick
//! may have been minted: the *mark*. For a worker that you name, the mark is in a locked file on
//! this machine. For a worker that a store assigns, it is in the store, for any number of machines.
//! The next holder starts at the mark, whatever its clock says. The clock decides how fresh an ID's
//! time is, never whether the ID is unique.
//!
//! **What it does not do.** It does not hide a wrong clock: an ID's time is the clock's time, and
//! every clock step is logged. It does not protect a worker that you name on two machines. It keeps
//! no process-wide state, installs no signal handler, and has no thread that outlives its handle.
//!
//! # A worker that you name
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use snowmint::Layout;
//!
//! # let dir = std::env::temp_dir().join(format!("snowmint-doc-{}", std::process::id()));
//! // You name the worker; its mark is kept in a locked file (`without_state()` says what is lost).
//! let ids = snowmint::Snowflake::builder()
//!     .layout(Layout::TWITTER)
//!     .worker(7)
//! #   .data_dir(&dir)
//!     .build()?;
//! let id = ids.mint()?;
//! # assert_eq!(ids.decode(id)?.worker, 7);
//! # ids.close()?;
//! # std::fs::remove_dir_all(dir)?;
//! # Ok(())
//! # }
//! ```
//!
//! The file is in the user's state directory ([`default_dir`]). One process at a time has the
//! worker; [`Builder`] describes how the next process waits, the effect of a crash, and the limits
//! of the file.
//!
//! # A store assigns the worker
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = std::env::temp_dir().join(format!("snowmint-doc-store-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # let url = format!("sqlite:{}/ids.db", dir.display());
//! # #[cfg(any())]
//! let url = "sqlite:ids.db";
//! // A store names the worker, and keeps any number of processes apart.
//! let mint = snowmint::open(&url).await?;
//! let orders = mint.snowflake("orders").await?;
//! let id = orders.mint()?; // never waits for the store
//! let invoices = mint.segment("invoices").await?;
//! let number = invoices.next().await?;
//! # assert_eq!((number, orders.decode(id)?.worker), (1, 0));
//! mint.close().await?; // gives the worker back at once
//! # std::fs::remove_dir_all(dir)?;
//! # Ok(())
//! # }
//! ```
//!
//! One task keeps the worker's window ahead of need. An unreachable store has no effect until the
//! window (30 s) is spent. [`open_blocking`] is for programs without an async runtime.
//!
//! # Forms of minting
//!
//! | form | waits |
//! |---|---|
//! | [`Snowflake::try_mint`] | never |
//! | [`Snowflake::mint`] | for a free tick, up to a bound (100 ms) |
//! | [`Snowflake::mint_by`] | for a free tick, until a deadline |
//! | [`Snowflake::mint_async`] | as `mint`, without holding a thread |
//! | [`Snowflake::fill`], [`Snowflake::try_fill`] | a batch: exact, or an error says how many and why |
//! | [`Snowflake::lane`] | one thread's own blocks, for the hottest loops |
//!
//! Every error is an [`Error`]: the failure, whether a retry helps, and when.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod blocking;
mod builder;
mod clock;
mod lane;
mod mint;
mod observer;
mod options;
mod runtime;
mod snowflake;
mod stored;
mod values;
mod worker;

pub use blocking::open_blocking;
pub use builder::{Builder, CATCH_UP_MS, JUMP_MAX_MS, LOCK_WAIT_MS};
pub use clock::ClockChoice;
pub use lane::Lane;
pub use mint::Mint;
pub use options::{Options, STORE_WAIT_MS, open};
pub use snowflake::Snowflake;
pub use stored::{Counter, Segment, TextSource};
pub use values::{Decoded, Short, Stats};
pub use worker::{WINDOW_MS, default_dir};

#[cfg(feature = "client")]
pub use snowmint_client::Credentials;
pub use snowmint_coord as coord;
pub use snowmint_coord::{
    AfterCrash, Error, ErrorKind, NodeSettings, NumberLane, NumberRange, NumberStats, Readiness,
    Reason, Result, Retry, SourceSpec, SourceStats,
};
pub use snowmint_core as core;
pub use snowmint_core::{Layout, Settings};

/// The examples of the README, tested like those of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The examples of the repository's documents. A package has none of these files: only the tests of
/// a checkout read them.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../docs/reference/library.md")]
    struct Library;

    #[cfg(feature = "client")]
    #[doc = include_str!("../../../docs/how-to/mint-in-rust.md")]
    struct MintInRust;
}
