//! Faults on real processes and real stores, after which no ID comes twice.
//!
//! Each test causes one kind of fault, on every store where it applies and on all of them at once.
//! The processes are this test binary, started again as [`holder`]s. Each holder mints from a
//! snowflake and a segment source without pause, and reports the store's grants before it uses
//! them. One [`checker`] gets all reports.
//!
//! `SNOWMINT_FAULTS_ROUNDS=N` causes each fault N times as often; with `-- --nocapture` every test
//! prints its rows of the table in docs/evidence/faults.md.
#![allow(clippy::unwrap_used, reason = "these are tests")]
#![allow(clippy::disallowed_methods, reason = "they wait in real time for real processes")]
#![allow(clippy::print_stdout, reason = "rows of a table")]

mod checker;
mod clients;
mod cluster;
mod ground;
mod holder;
#[path = "../common/http.rs"]
mod http;
#[path = "../end_to_end/server.rs"]
#[allow(dead_code, reason = "another test uses the rest")]
mod server;
mod shared;

mod data;
mod network;
mod order;
mod processes;
mod restarts;
mod restored;
mod segments;
mod servers;
mod slow;
