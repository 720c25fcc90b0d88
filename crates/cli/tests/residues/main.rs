//! One source that several stores serve, each its own residue of the numbers or under its own worker number:
//! real servers, of which one after the other is away.
#![allow(clippy::disallowed_methods, reason = "it waits in real time for real servers")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

#[path = "../common/mod.rs"]
mod common;
mod ground;
#[path = "../common/http.rs"]
mod http;
mod minted;
mod numbers;
mod serials;
#[path = "../common/server.rs"]
mod server;
mod through;
