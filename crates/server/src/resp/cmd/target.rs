//! Sources and keys that commands name.

use snowmint_wire::resp::Command;

use super::spec::Spec;
use crate::error::Error;
use crate::resp::session::{IdTarget, Session};

/// Returns the source that a command names, and the key in it; `None` for a command without a
/// source. Of several keys it is the first.
pub(in crate::resp) fn target_of(
    spec: &Spec,
    command: &Command<'_>,
    session: &Session,
) -> Option<Result<IdTarget, Error>> {
    let arg = |index| command.arg(index).unwrap_or_default();
    spec.takes_source.then(|| match spec.name {
        "mint" => IdTarget::read(arg(1)),
        "hincrby" | "hget" => IdTarget::field(arg(1), arg(2)),
        _ => key(session, arg(1)),
    })
}

/// Returns all that a command names; `None` for a command without a source.
pub(super) fn targets_of(
    spec: &Spec,
    command: &Command<'_>,
    session: &Session,
) -> Option<Result<Vec<IdTarget>, Error>> {
    if spec.takes_source && spec.has_many_keys() {
        return Some(command.args().skip(1).map(|arg| key(session, arg)).collect());
    }
    Some(target_of(spec, command, session)?.map(|target| vec![target]))
}

/// Reads an argument as a key.
pub(super) fn key(session: &Session, arg: &[u8]) -> Result<IdTarget, Error> {
    IdTarget::counter(arg, &session.state.settings.default_counter_source)
}
