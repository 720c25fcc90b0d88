//! What a command needs of its machine.

pub(crate) mod descriptors;
pub(crate) mod ntp;
pub(crate) mod secret;
