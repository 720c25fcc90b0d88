//! Input, output and exit of a command.

pub(crate) mod exit;
pub(crate) mod input;
pub(crate) mod output;
pub(crate) mod when;
