//! Sources and keys that commands name.

use snowmint_wire::resp::Command;

use super::spec::Spec;
use crate::error::Error;
use crate::resp::session::{IdTarget, Session};

/// Returns the source that a command names, and the key in it; `None` for a command without a
/// source.
pub(in crate::resp) fn target_of(
    spec: &Spec,
    command: &Command<'_>,
    session: &Session,
) -> Option<Result<IdTarget, Error>> {
    let arg = |index| command.arg(index).unwrap_or_default();
    spec.takes_source.then(|| match spec.name {
        "mint" => IdTarget::read(arg(1)),
        "hincrby" | "hget" => IdTarget::field(arg(1), arg(2)),
        _ => IdTarget::counter(arg(1), &session.state.settings.default_counter_source),
    })
}
