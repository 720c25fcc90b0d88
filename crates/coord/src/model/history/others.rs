//! Other namespaces of a store that are in doubt.

use std::fmt;

use crate::error::label::Visible;

/// Names of the other namespaces that share a store's identity and are in doubt. While there is
/// one, all processes of the store take slower steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OthersInDoubt {
    names: Vec<String>,
    has_more: bool,
}

impl OthersInDoubt {
    /// Maximum number of names.
    pub const NAMED_MAX: usize = 16;

    /// Keeps the first names; a longer list has more.
    #[must_use]
    pub fn of(mut names: Vec<String>) -> Self {
        let has_more = names.len() > Self::NAMED_MAX;
        names.truncate(Self::NAMED_MAX);
        Self { names, has_more }
    }

    /// Returns whether no other namespace is in doubt.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

impl fmt::Display for OthersInDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, name) in self.names.iter().enumerate() {
            f.write_str(if number > 0 { ", " } else { "" })?;
            Visible(name).fmt(f)?;
        }
        f.write_str(if self.has_more { " and more" } else { "" })
    }
}
