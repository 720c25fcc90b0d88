//! From a configuration to a store and a node.

pub(crate) mod clock;
pub(crate) mod node;
pub(crate) mod store;
pub(crate) mod upstreams;
