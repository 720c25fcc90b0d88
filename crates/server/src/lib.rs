//! The server of Snowmint: one service, and thin adapters that speak HTTP, gRPC and RESP.
//!
//! The problem: everything in a deployment calls an ID server, all the time, and some callers are
//! hostile. Each protocol tempts its adapter to grow rules of its own, and each socket to grow a
//! queue.
//!
//! This crate's way: [`service`] holds every use case as a plain function on domain types; `http`,
//! `grpc` and `resp` only translate. Every length, count, wait and number of connections has a
//! limit, which is checked before the work is done. An idle connection holds no buffers.
//!
//! Its bounds: it knows no store and no configuration file. [`start`] takes listeners and a node
//! that is already open, and closes neither the node nor the process.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod access;
mod advertised_addrs;
mod clients;
mod cluster;
mod config;
mod error;
mod grpc;
mod handle;
mod http;
mod net;
mod observe;
mod port;
mod requests;
mod resp;
pub mod service;
mod trail;

/// IDs whose source and layout are unknown.
pub mod decoding {
    pub use crate::service::decoding::{
        Age, Dce, ForeignId, FormReading, Id, LayoutReading, UuidFacts, layout_to_read, misplaced,
        plausible_by_form, read, read_ulid, readings, unix_ms,
    };
}

/// Sentences about how evenly `id % N` spreads IDs over N shards.
pub mod shards {
    pub use crate::service::shards::{of_layout, of_source};
}

pub use access::{Access, Right, Secret, TokenHash, TokenSettings, Tokens};
pub use advertised_addrs::AdvertisedAddrs;
pub use config::{
    CompatSettings, CosIdSettings, Documented, HttpSettings, KeySources, LeafSettings, Limits,
    RespSettings, SettingRow, SettingValues, Settings, TinyidSettings,
};
pub use handle::{Handle, ServerDeps, start};
pub use http::bodies::{recovery_body, source_body};
pub use http::decoded::{form_reading_body, reading_body};
pub use net::tls::{Pems, Tls, certificate_names};
pub use observe::trace::Traces;
pub use service::layout_advice::cannot_mint;
pub use service::{AuditDefinition, Error, Service, moved_to};

/// Examples of the README, tested as those of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
