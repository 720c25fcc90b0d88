//! Directory and names of mark files.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use snowmint_core::Layout;
use snowmint_core::layout::Field;

use snowmint_coord::{Error, Result};

/// Returns the default directory of the workers' marks: `snowmint` in the user's state directory,
/// which is `$XDG_STATE_HOME` or `~/.local/state`.
///
/// # Errors
/// `Invalid` when neither `XDG_STATE_HOME` nor `HOME` is an absolute path.
pub fn default_dir() -> Result<PathBuf> {
    dir_from(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"))
}

fn dir_from(state: Option<OsString>, home: Option<OsString>) -> Result<PathBuf> {
    // The XDG specification says that relative paths are to be ignored.
    let absolute =
        |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(state) = absolute(state) {
        return Ok(state.join("snowmint"));
    }
    if let Some(home) = absolute(home) {
        return Ok(home.join(".local/state/snowmint"));
    }
    Err(Error::invalid(
        "no directory for the worker's mark file; set XDG_STATE_HOME or HOME to an absolute path, \
         or name a data directory",
    ))
}

/// Returns the name of a worker's files, made of everything that distinguishes its IDs from those
/// of another worker. The split of a worker for display has no effect on IDs and is left out.
pub(super) fn key(layout: &Layout, worker: u64) -> String {
    let mut fields = [Field::Time, Field::Clock, Field::Worker, Field::Sequence];
    fields.sort_by_key(|field| std::cmp::Reverse((layout.shift(*field), layout.bits(*field))));
    let mut key = format!("worker-{worker}");
    for field in fields {
        let bits = layout.bits(field);
        if bits > 0 {
            // Writing to a string does not fail.
            let _ = write!(key, "-{}{bits}", field.name());
        }
    }
    let _ = write!(key, "-{}ms-{}", layout.unit_ms(), layout.epoch().get());
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmint_core::UnixMillis;

    #[test]
    fn state_directory_follows_xdg() {
        let some = |path: &str| Some(OsString::from(path));
        let dir = |state, home| dir_from(state, home).map(|dir| dir.display().to_string());
        assert_eq!(dir(some("/s"), some("/h")).unwrap(), "/s/snowmint");
        assert_eq!(dir(None, some("/h")).unwrap(), "/h/.local/state/snowmint");
        assert_eq!(dir(some("relative"), some("/h")).unwrap(), "/h/.local/state/snowmint");
        assert_eq!(dir(some(""), some("/h")).unwrap(), "/h/.local/state/snowmint");
        assert_eq!(dir(None, None).unwrap_err().kind().code(), "invalid");
    }

    #[test]
    fn the_key_has_all_that_makes_ids_different_and_no_more() {
        let layout = Layout::TWITTER;
        assert_eq!(key(&layout, 7), "worker-7-time41-worker10-sequence12-1ms-1288834974657");
        assert_eq!(key(&Layout::TWITTER_DC, 7), key(&layout, 7));
        let other_order =
            Layout::from_fields(&[(Field::Time, 41), (Field::Sequence, 12), (Field::Worker, 10)])
                .unwrap();
        let others = [
            key(&layout, 8),
            key(&layout.with_unit_ms(2).unwrap(), 7),
            key(&layout.with_epoch(UnixMillis::ZERO).unwrap(), 7),
            key(&other_order.with_epoch(layout.epoch()).unwrap(), 7),
            key(&Layout::CLOCK_SEQUENCE, 7),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(*other, key(&layout, 7));
            assert!(!others[..index].contains(other), "{other}");
        }
    }
}
