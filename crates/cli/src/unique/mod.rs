//! Are these IDs all different? Keys of fixed length, and a sorter that keeps its memory bounded.

mod key;
mod sorter;

pub(crate) use key::{Key, NumberKey, TextKey, WideKey};
pub(crate) use sorter::Sorter;
