//! Tests of the server over real sockets: bytes in, bytes out.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod access;
mod alone;
mod batched;
mod browsers;
mod common;
mod compat;
mod connections;
mod described;
mod ends;
mod grpc;
mod grpc_streams;
mod half;
mod hostile;
mod http;
mod invalid;
mod live;
mod log_lines;
mod names;
mod owners;
mod paused;
mod per_request;
mod places;
mod recovery;
mod redirects;
mod reset;
mod resp;
mod same_content;
mod shares;
mod slow_store;
mod stop;
mod store_client;
mod strings;
mod transactions;
mod unread;
mod watches;
