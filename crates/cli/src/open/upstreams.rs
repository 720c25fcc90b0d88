//! The tables of other systems that sources allocate from: `[upstreams]`.

use std::collections::BTreeMap;
#[cfg(feature = "import")]
use std::sync::Arc;

use snowmint_coord::Upstreams;
#[cfg(feature = "import")]
use snowmint_stores::legacy::UpstreamTable;

#[cfg(feature = "import")]
use crate::system::secret;
use crate::system::secret::Hidden;
use crate::terminal::exit::{Failure, Outcome};

/// Returns the tables of `[upstreams]`.
#[cfg(feature = "import")]
pub(crate) fn all(named: &BTreeMap<String, Hidden>) -> Outcome<Upstreams> {
    let mut upstreams = Upstreams::new();
    for (name, place) in named {
        upstreams.insert(name.clone(), Arc::new(table(name, place)?) as _);
    }
    Ok(upstreams)
}

/// Rejects a configuration with upstreams, which this program cannot read.
#[cfg(not(feature = "import"))]
pub(crate) fn all(named: &BTreeMap<String, Hidden>) -> Outcome<Upstreams> {
    match named.keys().next() {
        None => Ok(Upstreams::new()),
        Some(name) => {
            Err(Failure::usage(format!("upstreams.{name} needs feature `import`; build with it")))
        }
    }
}

/// Opens an upstream by name, at this `SYSTEM+URL` or at the one in this place.
#[cfg(feature = "import")]
pub(crate) fn table(name: &str, place: &Hidden) -> Outcome<UpstreamTable> {
    let text = match place.is_place() {
        true => secret::at(&format!("upstreams.{name}"), place).map_err(Failure::usage)?,
        false => place.text().to_owned(),
    };
    UpstreamTable::named(text.trim())
        .map_err(|error| Failure::usage(format!("upstreams.{name}: {}", error.full_message())))
}
