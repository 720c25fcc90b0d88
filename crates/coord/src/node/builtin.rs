//! Built-in sources.

use crate::spec::Kind;

/// Name of the built-in snowflake source.
pub const BUILTIN_DEFAULT: &str = "default";
/// Name of the built-in segment source.
pub const BUILTIN_NUMBERS: &str = "numbers";
/// Name of the built-in counter source.
pub const BUILTIN_COUNTERS: &str = "counters";
/// Built-in sources, each with its kind.
pub(super) const BUILTIN: [(&str, Kind); 3] = [
    (BUILTIN_DEFAULT, Kind::Snowflake),
    (BUILTIN_NUMBERS, Kind::Segment),
    (BUILTIN_COUNTERS, Kind::Counter),
];
