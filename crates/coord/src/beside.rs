//! Stores that a process uses beside its own, for sources whose numbers several stores hand out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::catalog::check_name;
use crate::error::{Error, ErrorKind, Result};
use crate::store::Store;

/// Where a store is. It is opened when a source needs it, again and again until it answers: that it is
/// away at the start is no reason not to start.
#[async_trait]
pub trait Place: fmt::Debug + Send + Sync {
    /// Opens the store.
    ///
    /// # Errors
    /// As the store says.
    async fn open(&self) -> Result<Arc<dyn Store>>;
}

/// Where stores are, by the name that sources call them by.
pub type Places = BTreeMap<String, Arc<dyn Place>>;

/// The fewest stores, and the most, that hand out the numbers of one source.
const STORES: std::ops::RangeInclusive<usize> = 2..=64;

/// The stores of a source, as its key `stores` names them: `a,b,c`.
pub(crate) fn names(text: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if !STORES.contains(&names.len()) {
        let (least, most) = (STORES.start(), STORES.end());
        return Err(format!("name {least} to {most} stores, with commas between them"));
    }
    for (index, name) in names.iter().enumerate() {
        check_name("store", name).map_err(|kind| kind.to_string())?;
        if names.iter().take(index).any(|before| before == name) {
            return Err(format!("{name} is named twice"));
        }
    }
    Ok(names)
}

/// Refuses a source that this process would serve from fewer stores than it has.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn check_known(places: &Places, source: &str, stores: &[String]) -> Result<()> {
    match stores.iter().find(|name| !places.contains_key(*name)) {
        None => Ok(()),
        Some(name) => {
            let what = format!(
                "source {source} has numbers from the store {name:?}, which this process does not know: name \
                 it under [stores]"
            );
            Err(Error::new("open source", ErrorKind::Unsupported { what }))
        }
    }
}
