//! The three tables of the view.

use super::state::{Focus, State};
use super::table::Table;
use super::{errors, servers, sources};

/// Makes a table.
pub(super) fn table(state: &State, focus: Focus) -> Table {
    match focus {
        Focus::Servers => servers::table(state),
        Focus::Sources => sources::table(state),
        Focus::Errors => errors::table(state),
    }
}
