//! Tests of the server over real sockets: bytes in, bytes out.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod access;
mod alone;
mod asked;
mod batched;
mod browsers;
mod common;
mod connections;
mod described;
mod doors;
mod ends;
mod grpc;
mod grpc_streams;
mod half;
mod held;
mod hostile;
mod http;
mod invalid;
mod live;
mod names;
mod places;
mod recovery;
mod reset;
mod resp;
mod shares;
mod stop;
mod told;
mod transactions;
mod unread;
mod watches;
