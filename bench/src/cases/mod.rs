//! All measured cases.

pub mod counters;
pub mod floors;
pub mod ours;
pub mod rivals;
pub mod segments;
pub mod text;
