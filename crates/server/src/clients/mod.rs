//! Clients: what each may hold of a common limit, and their connections.

pub(crate) mod share;
pub(crate) mod tracker;
