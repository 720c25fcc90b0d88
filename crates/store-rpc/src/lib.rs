//! The codec of `snowmint.store.v1`, by which embedded clients call the store of a server.
//!
//! A codec in two halves, one in the client and one in the server, drifts: a field that one half
//! learns is lost in the other, and no compiler says so. Here each message stands once, and both
//! directions come from the same row: [`Codec::write`] and [`Codec::read`]. Each
//! [`StoreRequest`] names its verb, its path, the arguments of the call and the reply.
//!
//! The crate checks the form of messages: parts that are there, values that this version knows,
//! lists and names that are not too long. It decides nothing: rights, limits of a caller, and the
//! names under which a server knows its callers' members are the server's.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod codec;
mod definitions;
mod describe;
mod error;
mod malformed;
mod members;
mod method;
mod segments;
mod slots;
mod whole_store;

pub use codec::Codec;
pub use describe::Description;
pub use error::store_error;
pub use malformed::Malformed;
pub use members::Joined;
pub use method::{
    AT_MOST_ONCE, IDEMPOTENT, SendsRequests, StoreRequest, StoreResponse, send, verb_of,
};
pub use whole_store::BothClocks;

/// The examples of the README, tested as examples of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
