//! What is said between Snowmint and its callers: RESP frames, HTTP bodies, gRPC messages, error codes.
//!
//! The problem: bytes from a socket are an attack until proven otherwise, and three protocols that
//! each invent their own error names drift apart. What this crate does: parsers without I/O that
//! check every length before they believe it, bodies as plain data, and one table ([`error`]) from
//! which every protocol takes its form of the same error.
//!
//! What it does not do: no sockets, no clocks, no decisions. `snowmint-server` answers; this crate
//! only knows how answers look.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod error;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod http;
mod lines;
pub mod resp;

/// The examples of the README, which are tested as those of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
