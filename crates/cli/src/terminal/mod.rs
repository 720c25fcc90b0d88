//! Input, output and exit of a command.

pub(crate) mod exit;
pub(crate) mod input;
pub(crate) mod near;
pub(crate) mod output;
pub(crate) mod plural;
pub(crate) mod table;
pub(crate) mod when;
