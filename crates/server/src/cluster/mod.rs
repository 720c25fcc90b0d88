//! The other servers of the namespace.

pub(crate) mod peers;
