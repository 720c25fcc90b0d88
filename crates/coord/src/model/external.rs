//! External leases: worker numbers leased to processes that mint themselves and are not members of
//! the store.
//!
//! An external client sends its name and, periodically, a sign of life. It does not know marks and
//! terms, so the mark alone is its lease. Until that time the number belongs to the client,
//! whichever process responded to it: no claim takes a slot with a mark ahead. The slot's row names
//! the client. So any process of the namespace can respond to the client next time, and no process
//! has to stay alive for it.
//!
//! When a client stops renewing, time passes its mark without further action. The client's use of
//! its own clock is not covered: a number sets no bounds on the ticks that are minted with it.

use snowmint_core::UnixMillis;

use crate::error::{Error, Result};
use crate::ids::Mark;
use crate::model::name::{LABEL_BYTES_MAX, check_label, check_name};
use crate::model::pool::{Pool, Reuse};
use crate::model::slot::SlotInfo;

/// Maximum time that a number is kept for a client that does not renew: 100 years, in milliseconds.
pub const KEEP_MS_MAX: u64 = 100 * 365 * 86_400_000;
/// Maximum width of a number of an external lease, in bits.
pub const WIDTH_MAX: u32 = 31;

/// Maximum length of the name of a scope, in bytes: it is part of the name of a pool, which has at
/// most 63 bytes.
const SCOPE_BYTES_MAX: usize = 50;

/// Prefix of the names of pools for external leases; their width and their scope follow.
const PREFIX: &str = "lent-";

/// A process that holds an external lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExternalClient {
    /// Scope in which numbers of each width are unique.
    pub scope: String,
    /// Name that the client gives itself. Two processes with one name count as one client.
    pub label: String,
}

/// A number leased to an external client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalLease {
    /// The number.
    pub number: u64,
    /// Time up to which earlier holders, earlier processes of this client included, may have
    /// minted.
    pub after: UnixMillis,
}

/// State of an external lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalLeaseStatus {
    /// The client holds the number, and the lease is renewed.
    Held,
    /// The client did not renew for too long, and another client has the number now.
    Lost,
    /// No number of this client is known.
    Unknown,
}

impl ExternalClient {
    /// Checks that a store can keep the label.
    ///
    /// # Errors
    /// `Invalid` for a label that is empty, over-long or has control characters.
    pub fn check(&self) -> Result<()> {
        let length = self.label.len();
        if length == 0 || length > LABEL_BYTES_MAX {
            return Err(Error::invalid(format!(
                "label of the external lease's client has {length} bytes, allowed are 1 to \
                 {LABEL_BYTES_MAX}; correct it"
            )));
        }
        check_label("external client's", &self.label, LABEL_BYTES_MAX)
    }

    /// Returns whether a slot belongs to this client, or did and was not leased since.
    pub(crate) fn had_last(&self, slot: &SlotInfo) -> bool {
        is_external_in(&slot.pool, &self.scope) && slot.owner == self.label && slot.mark < Mark::MAX
    }
}

/// Returns the pool of the external leases with numbers of `width` bits in a scope.
///
/// # Errors
/// `Invalid` for an invalid width or scope.
pub fn external_pool(scope: &str, width: u32) -> Result<Pool> {
    if width == 0 || width > WIDTH_MAX {
        return Err(Error::invalid(format!(
            "width of an external lease is {width} bits, allowed are 1 to {WIDTH_MAX}; correct it"
        )));
    }
    if scope.len() > SCOPE_BYTES_MAX || check_name("scope", scope).is_err() {
        return Err(Error::invalid(format!(
            "scope {scope:?} is not a valid name; use 1 to {SCOPE_BYTES_MAX} of A-Z a-z 0-9 _ . -"
        )));
    }
    let name = format!("{PREFIX}{width}-{scope}");
    Ok(Pool { name, slots: 1 << width, group: 1, reuse: Reuse::Recycle })
}

/// Checks that a pool for external leases matches its name.
///
/// # Errors
/// `Invalid` for any difference.
pub fn check_external(pool: &Pool) -> Result<()> {
    let parts = pool.name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    let (width, scope) = parts.unwrap_or_default();
    let right = external_pool(scope, width.parse().unwrap_or(0))?;
    if right == *pool {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "pool {:?} for external leases must have {} slots in groups of 1, reuse recycle; correct \
         the request",
        pool.name, right.slots
    )))
}

/// Returns whether a pool is for external leases.
#[must_use]
pub fn is_external(pool: &str) -> bool {
    scope_of(pool).is_some()
}

/// Returns whether a pool is for external leases of this scope.
pub(crate) fn is_external_in(pool: &str, scope: &str) -> bool {
    scope_of(pool) == Some(scope)
}

/// Returns the scope of a pool for external leases; `None` for other pools.
#[must_use]
pub fn scope_of(pool: &str) -> Option<&str> {
    let (width, scope) = pool.strip_prefix(PREFIX)?.split_once('-')?;
    width.parse::<u32>().is_ok().then_some(scope)
}

/// Returns the number of slots leased in a scope, and in the scopes that count with it.
pub(crate) fn external_count(
    scope: &str,
    all: &[SlotInfo],
    with: &(dyn Fn(&str) -> bool + Sync),
) -> u64 {
    let counts = |other: &str| other == scope || with(other);
    let leased = all.iter().filter(|slot| scope_of(&slot.pool).is_some_and(counts)).count();
    u64::try_from(leased).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_pool_name_has_scope_and_width() {
        let pool = external_pool("shop-1.eu", 10).unwrap();
        assert_eq!((pool.name.as_str(), pool.slots), ("lent-10-shop-1.eu", 1024));
        assert_eq!(scope_of(&pool.name), Some("shop-1.eu"));
        assert_eq!(external_pool("a", 31).unwrap().slots, 1 << 31);
        for (scope, width) in [("a", 0), ("a", 32), ("", 70), ("a b", 10), (&"a".repeat(51), 10)] {
            let error = external_pool(scope, width).unwrap_err();
            assert_eq!(error.kind().code(), "invalid", "{scope} {width}");
        }
        let longest = external_pool(&"a".repeat(SCOPE_BYTES_MAX), WIDTH_MAX).unwrap();
        check_name("pool", &longest.name).unwrap();
        let message = external_pool(&"a".repeat(60), 10).unwrap_err().to_string();
        assert!(message.contains("1 to 50"), "{message}");
        for other in ["workers-10", "sections", "lent-x-a", "lent-10", "lent"] {
            assert!(!is_external(other), "{other}");
        }
    }

    #[test]
    fn external_pool_matches_its_name() {
        let right = external_pool("shop", 10).unwrap();
        check_external(&right).unwrap();
        for wrong in [
            Pool { slots: 512, ..right.clone() },
            Pool { group: 2, ..right.clone() },
            Pool { reuse: Reuse::Never, ..right.clone() },
            Pool { name: "lent-010-shop".into(), ..right.clone() },
            Pool { name: "lent-99-shop".into(), ..right.clone() },
            Pool { name: "workers-10".into(), ..right },
        ] {
            assert_eq!(check_external(&wrong).unwrap_err().kind().code(), "invalid", "{wrong:?}");
        }
    }

    #[test]
    fn external_client_label_is_storable() {
        let called = |label: String| ExternalClient { scope: "a".into(), label }.check();
        assert!(called("x".into()).is_ok() && called("x".repeat(255)).is_ok());
        assert!(called(String::new()).is_err() && called("x".repeat(256)).is_err());
        let refused = called("a\u{1b}".into()).unwrap_err().to_string();
        assert!(refused.contains("client's label") && !refused.contains('\u{1b}'), "{refused}");
    }
}
