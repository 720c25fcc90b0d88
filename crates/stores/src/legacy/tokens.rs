//! Tinyid's tokens and the business type that each may use.

use std::fmt;

use snowmint_coord::Result;

use super::tables::LegacyStep;

/// A row of `tiny_id_token`: permission of a token to use a business type.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenGrant {
    /// The token itself, which is never shown.
    pub token: String,
    /// The business type.
    pub key: String,
}

impl fmt::Debug for TokenGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("key", &self.key).finish_non_exhaustive()
    }
}

pub(super) async fn read(step: &mut LegacyStep<'_>) -> Result<Vec<TokenGrant>> {
    let rows = step.select("tiny_id_token", &["token", "biz_type"], None).await?;
    let grant = |row: Vec<Option<String>>| {
        let mut row = row.into_iter();
        Some(TokenGrant { token: row.next()??, key: row.next()?? })
    };
    Ok(rows.into_iter().filter_map(grant).collect())
}
