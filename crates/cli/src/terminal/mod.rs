//! What a command reads and writes, and how it exits.

pub(crate) mod exit;
pub(crate) mod id;
pub(crate) mod input;
pub(crate) mod output;
pub(crate) mod when;
