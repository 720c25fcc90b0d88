//! Minting in the caller's process, through servers.
//!
//! The problem: a service that calls a server for every ID waits for the network each time, and
//! stops when the server does. The easy solution is a client that fetches IDs in batches. It is a
//! second implementation of everything that can go wrong: the fate of a batch when its response is
//! lost, the choice of the clock that counts, and fencing.
//!
//! This crate's solution: [`RemoteStore`] is a [`Store`] like any other. A node on it claims a
//! worker number, keeps windows and segments ahead of need and mints in this process, with the same
//! code that a server runs. Servers only forward verbs to their store. Several servers act as one:
//! a call goes to the next server when one does not respond, within a deadline and a retry budget.
//! A call with a lost response is retried only where the store recognises it, or where a repeat has
//! the same effect. Every other call is `Unavailable`, as with any store, and any result of it is
//! never used.
//!
//! The servers are called for everything that only one process at a time may own (counters,
//! global-order sources).
//!
//! The crate keeps nothing on disk, and makes no connection in the background.
//!
//! [`Store`]: snowmint_coord::Store
#![cfg_attr(docsrs, feature(doc_cfg))]

mod budget;
mod call_failure;
mod connect_options;
mod credentials;
mod handshake;
mod link;
mod owners;
mod servers;
mod servers_url;
mod settings;
mod store;

pub use credentials::Credentials;
pub use handshake::tls_failure;
pub use servers_url::{PORT, SCHEME, SCHEME_TLS};
pub use settings::{ClientDeps, Settings};
pub use store::RemoteStore;

/// Returns whether a URL names servers.
#[must_use]
pub fn is_url(url: &str) -> bool {
    matches!(url.split(':').next(), Some(SCHEME | SCHEME_TLS))
}

/// The examples of the README, tested as examples of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
