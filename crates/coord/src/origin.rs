//! Where the numbers of a segment source come from while another system hands out of the same ones.
//!
//! Two systems that count for themselves meet sooner or later. So while both serve, both draw from one
//! place: the other system's table, by its own step. What was drawn is ours alone; the store's mark is
//! then moved over it, as over any other reserve, so that the numbers of all our servers rise and what
//! was overtaken meanwhile is a gap. The source is cut over by a change of its identity that sets the
//! mark above everything the other system ever handed out
//! ([`Node::cut_over`](crate::Node::cut_over)).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;

use crate::catalog::check_name;
use crate::error::{Error, ErrorKind, Result};
use crate::segment::Within;

/// How often a draw is overtaken by those of other servers before it is given up.
pub(crate) const DRAWS_MAX: u32 = 16;

/// What numbers are drawn from.
#[async_trait]
pub trait Origin: fmt::Debug + Send + Sync {
    /// Takes the next `length` numbers of a key, which nobody else gets.
    ///
    /// Atomicity: one step of the other system. On retry: a repeat takes other numbers; the first ones,
    /// if there were any, are lost.
    ///
    /// # Errors
    /// `NotFound`, `Invalid` for what makes no sense, `Unavailable`.
    async fn draw(&self, key: &str, length: u64) -> Result<Within>;
}

/// What numbers are drawn from, by the name that sources call it by.
pub type Origins = BTreeMap<String, Arc<dyn Origin>>;

/// Which key of which origin a source draws from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginPlan {
    /// The origin's name.
    pub name: String,
    /// What the other system calls the source.
    pub key: String,
}

impl FromStr for OriginPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, key) = text.split_once(':').ok_or("write NAME:KEY")?;
        check_name("origin", name).map_err(|kind| kind.to_string())?;
        if key.is_empty() || key.len() > 255 {
            return Err("the key has 1 to 255 bytes".into());
        }
        Ok(Self { name: name.into(), key: key.into() })
    }
}

impl fmt::Display for OriginPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.key)
    }
}

/// The origin that a source draws from.
///
/// # Errors
/// `Unsupported` when this process does not know it: taking numbers without it could repeat them.
pub(crate) fn origin_of(
    origins: &Origins,
    source: &str,
    plan: &OriginPlan,
) -> Result<Arc<dyn Origin>> {
    origins.get(&plan.name).cloned().ok_or_else(|| {
        let what = format!(
            "source {source} draws its numbers from the origin {:?}, which this process does not know: name \
             it under [origins]",
            plan.name
        );
        Error::new("open source", ErrorKind::Unsupported { what })
    })
}
