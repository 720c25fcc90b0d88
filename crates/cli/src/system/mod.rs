//! Facts and services of the machine that commands use.

pub(crate) mod descriptors;
pub(crate) mod ntp;
pub(crate) mod secret;
