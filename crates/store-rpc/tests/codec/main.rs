//! The codec of the store's messages: its bytes, and that both directions agree.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

mod frames;
mod malformed;
mod round_trip;
mod values;

use std::collections::BTreeSet;
use std::fmt::Debug;

use prost::Message;
use snowmint_coord::Verb;
use snowmint_store_rpc::{Codec, verb_of};

/// Returns the names of the verbs that a method calls: each has a recorded message and a property.
fn verbs_with_a_method() -> BTreeSet<String> {
    let all = Verb::ALL.iter().map(|verb| format!("{verb:?}"));
    all.filter(|verb| verb_of(&format!("/{verb}")).is_some()).collect()
}

/// Returns the bytes of a value.
fn bytes<M: Message, T: Codec<M>>(value: T) -> Vec<u8> {
    value.write().encode_to_vec()
}

/// Returns the value of these bytes, as text: errors of a store have no equality.
fn shown<M: Message + Default, T: Codec<M> + Debug>(bytes: &[u8]) -> String {
    format!("{:?}", T::read(M::decode(bytes).unwrap()).unwrap())
}
