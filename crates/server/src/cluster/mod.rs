//! The other servers of the namespace.

pub(crate) mod peers;
pub(crate) mod remote_peer;
