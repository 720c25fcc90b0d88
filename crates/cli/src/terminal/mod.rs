//! Input, output and exit of a command.

pub(crate) mod exit;
pub(crate) mod foreign_id;
pub(crate) mod id;
pub(crate) mod input;
pub(crate) mod output;
pub(crate) mod shards;
pub(crate) mod when;
