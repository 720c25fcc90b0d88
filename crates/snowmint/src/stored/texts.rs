//! A handle for a source of UUIDs, ULIDs or serials.

use snowmint_coord::{Decoded, Source, Values};

use super::Shared;
use crate::{Error, Result};

/// Makes UUIDs, ULIDs or serials as a source in the store says. A cheap clone.
#[derive(Clone, Debug)]
pub struct Texts {
    source: Source,
    shared: Shared,
}

impl Texts {
    pub(crate) fn new(source: Source, shared: Shared) -> Self {
        Self { source, shared }
    }

    /// The next one.
    ///
    /// # Errors
    /// `Invalid` when the source's UUID version needs a name: [`next_for`](Self::next_for);
    /// `Disabled`.
    pub async fn next(&self) -> Result<String> {
        self.one(None).await
    }

    /// The UUID of `name`, for versions 3 and 5, which hash it, and 8, whose data it is.
    ///
    /// # Errors
    /// `Invalid` when the source takes no name.
    pub async fn next_for(&self, name: &str) -> Result<String> {
        self.one(Some(name)).await
    }

    /// Exactly `count` of them.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn take(&self, count: u32) -> Result<Vec<String>> {
        self.mint(count, None).await
    }

    /// What an ID says: version and time.
    ///
    /// # Errors
    /// `Invalid`, which says what is wrong with the text.
    pub fn decode(&self, text: &str) -> Result<Decoded> {
        self.source.decode(text, None)
    }

    /// The source behind the handle.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    async fn one(&self, key: Option<&str>) -> Result<String> {
        self.mint(1, key).await?.pop().ok_or_else(not_texts)
    }

    async fn mint(&self, count: u32, key: Option<&str>) -> Result<Vec<String>> {
        match self.source.mint(count, key, self.shared.wait_max_ms).await? {
            Values::Texts(texts) => Ok(texts),
            Values::Numbers(_) => Err(not_texts()),
        }
    }
}

fn not_texts() -> Error {
    Error::internal("mint", "a source of texts answered with something else")
}
