//! The key `upstream`: a table of another ID system that a source allocates its numbers from.

use std::fmt;
use std::str::FromStr;

use crate::model::name::check_name;

/// Upstream and key that a source allocates from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamPlan {
    /// Name of the upstream.
    pub name: String,
    /// Name of the source in the other system.
    pub key: String,
}

impl FromStr for UpstreamPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, key) = text.split_once(':').ok_or("write NAME:KEY")?;
        check_name("upstream", name).map_err(|error| error.to_string())?;
        if key.is_empty() || key.len() > 255 {
            return Err("the key has 1 to 255 bytes".into());
        }
        Ok(Self { name: name.into(), key: key.into() })
    }
}

impl fmt::Display for UpstreamPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.key)
    }
}
