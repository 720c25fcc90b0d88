//! The wire formats of Snowmint: RESP frames, HTTP bodies, gRPC messages, error codes.
//!
//! The problem: bytes from a socket are an attack until proven otherwise. Three protocols that each
//! invent their own error names drift apart.
//!
//! The solution: parsers without I/O that check every length before they use it, bodies as plain
//! data, and one table of errors ([`error`]). Every protocol takes its form of an error from this
//! table.
//!
//! The limit: no sockets, no clocks, no decisions. `snowmint-server` responds; this crate only
//! defines the form of responses.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod error;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod http;
mod lines;
pub mod report;
pub mod resp;

/// The examples of the README, tested together with those of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
