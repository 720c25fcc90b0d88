//! Minting next to the caller, through servers.
//!
//! The problem: a service that asks a server for every ID waits for the network each time, and stops when
//! the server does. The easy answer, a client that fetches IDs in batches, is a second implementation of
//! everything that can go wrong: what became of a batch whose answer was lost, whose clock counts, who
//! fences whom.
//!
//! What this crate does: [`RemoteStore`] is a [`Store`] like any other. A node on it claims a worker
//! number, keeps windows and segments ahead of need and mints in this process, with the very code that a
//! server runs; servers only pass verbs on to the store that they have. Several of them are as good as one:
//! a call goes to the next when one does not answer, within a deadline and a budget of repeats. A call
//! whose answer was lost is made again only where the store recognises it, or where twice is as good as
//! once; every other is `Unavailable`, as with any store, and what it may have brought is never used.
//!
//! What only one process at a time may answer (counters, sources of global order) is asked of the servers.
//!
//! What it does not do: it keeps nothing on disk, and no connection is made in the background.
//!
//! [`Store`]: snowmint_coord::Store
#![cfg_attr(docsrs, feature(doc_cfg))]

mod approach;
mod budget;
mod credentials;
mod failed;
mod handshake;
mod link;
mod owners;
mod place;
mod refusal;
mod servers;
mod settings;
mod store;

pub use credentials::Credentials;
pub use handshake::advice;
pub use settings::Settings;
pub use store::{Parts, RemoteStore};

/// What the URLs of servers begin with.
pub const SCHEME: &str = "snowmint";
/// What they begin with where TLS is spoken.
pub const SCHEME_TLS: &str = "snowmints";

/// Whether a URL names servers.
#[must_use]
pub fn is_url(url: &str) -> bool {
    matches!(url.split(':').next(), Some(SCHEME | SCHEME_TLS))
}

/// The examples of the README, which are tested as those of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
