//! The server over real sockets: bytes in, bytes out.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;
mod doors;
mod grpc;
mod grpc_streams;
mod hostile;
mod http;
mod live;
mod resp;
mod stop;
