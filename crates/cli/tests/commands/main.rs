//! The commands of the real binary, one file a subject, in one test program that is linked once.
#![allow(clippy::unwrap_used, reason = "a test reports by a panic")]
#![allow(clippy::disallowed_methods, reason = "real servers are waited for in real time")]

mod bench;
#[path = "../common/mod.rs"]
mod common;
mod config;
mod deploy;
mod explain;
#[path = "../common/http.rs"]
mod http;
mod import;
mod kubernetes;
mod labels;
mod mint;
mod multi_store;
mod operations;
mod operator;
mod reading;
mod reclaim;
mod recoveries;
mod serve;
#[path = "../common/server.rs"]
mod server;
mod several;
mod shells;
mod sources;
mod stripes;
mod terminal;
mod upgrade;
mod verify;
