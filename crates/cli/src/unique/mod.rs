//! Check that IDs are all different: keys of fixed length, and a sorter with bounded memory.

mod key;
mod sorter;

pub(crate) use key::{NumberKey, SortKey, TextKey, WideKey};
pub(crate) use sorter::Sorter;
