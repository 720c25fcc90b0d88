//! A handle for a source of UUIDs, ULIDs or serials.

use snowmint_coord::{Decoded, IdBatch, Source};

use super::context::StoreContext;
use snowmint_coord::{Error, Result};

/// Makes the UUIDs, ULIDs or serials of a source in the store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TextSource {
    source: Source,
    ctx: StoreContext,
}

impl TextSource {
    pub(crate) fn new(source: Source, ctx: StoreContext) -> Self {
        Self { source, ctx }
    }

    /// Returns the next text.
    ///
    /// # Errors
    /// `Invalid` when the source's UUID version needs a name (see [`next_for`](Self::next_for));
    /// `Disabled`.
    pub async fn next(&self) -> Result<String> {
        self.one(None).await
    }

    /// Returns the UUID of `name`: versions 3 and 5 hash the name, version 8 uses it as data.
    ///
    /// # Errors
    /// `Invalid` when the source takes no name.
    pub async fn next_for(&self, name: &str) -> Result<String> {
        self.one(Some(name)).await
    }

    /// Returns exactly `count` texts.
    ///
    /// # Errors
    /// Same as [`next`](Self::next).
    pub async fn take(&self, count: u32) -> Result<Vec<String>> {
        self.mint(count, None).await
    }

    /// Returns the version and the time in an ID.
    ///
    /// # Errors
    /// `Invalid`, with the fault of the text.
    pub fn decode(&self, text: &str) -> Result<Decoded> {
        self.source.decode(text, None)
    }

    /// Returns the source behind the handle.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    async fn one(&self, key: Option<&str>) -> Result<String> {
        self.mint(1, key).await?.pop().ok_or_else(not_texts)
    }

    async fn mint(&self, count: u32, key: Option<&str>) -> Result<Vec<String>> {
        match self.source.mint(count, key, self.ctx.wait_max_ms).await? {
            IdBatch::Texts(texts) => Ok(texts),
            IdBatch::Numbers(_) => Err(not_texts()),
        }
    }
}

fn not_texts() -> Error {
    Error::internal("internal error: source of texts returned numbers; please report it")
}
