//! Owners of the keys of one command. A client of a cluster can follow one owner only.

use snowmint_wire::error::Code;

use crate::access::Right;
use crate::error::Error;
use crate::resp::session::{IdTarget, Session};
use crate::service::Route;

/// Servers that have the keys of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOwners {
    /// This server has all of them, or calls their owners.
    Here,
    /// No server has all of them.
    Several,
}

/// Keys that a command may name.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyCheck {
    /// Right that the command needs; `None`: any right over the source.
    pub(super) right: Option<Right>,
    pub(super) route: Route,
    /// Whether a key of an unknown source is one without numbers, and no error.
    pub(super) takes_unknown: bool,
}

impl KeyCheck {
    /// Finds out which servers have these keys, taking nothing.
    ///
    /// # Errors
    /// The first error, if it is no redirect; or the redirect, when another server has all keys.
    pub(super) async fn run(
        self,
        session: &Session,
        targets: &[IdTarget],
    ) -> Result<KeyOwners, Error> {
        let mut is_here = false;
        let mut elsewhere: Option<Error> = None;
        for IdTarget { source, key } in targets {
            let checked =
                session.service.check_request(self.right, source, key.as_deref(), self.route);
            match (checked.await, &elsewhere) {
                (Ok(()), _) => is_here |= key.is_some(),
                (Err(error), _) if self.takes_unknown && error.code() == Code::UnknownSource => {}
                (Err(error), None) if error.code() == Code::NotOwner => elsewhere = Some(error),
                (Err(error), Some(first)) if error.code() == Code::NotOwner => {
                    if !has_same_owner(&error, first) {
                        return Ok(KeyOwners::Several);
                    }
                }
                (Err(error), _) => return Err(error),
            }
        }
        match elsewhere {
            None => Ok(KeyOwners::Here),
            Some(_) if is_here => Ok(KeyOwners::Several),
            Some(error) => Err(error),
        }
    }
}

fn has_same_owner(one: &Error, other: &Error) -> bool {
    let addresses = |error: &Error| error.owner().map(|owner| owner.advertised_addrs.clone());
    addresses(one) == addresses(other)
}
