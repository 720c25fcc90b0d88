//! The server that has the tables. It detects a promoted replica and tables moved to another
//! server, which may lack acknowledged writes.
//!
//! The store's row has it as `SYSTEM/HISTORY`. Both parts must match for any write, until an
//! operator accepts the server or moves the store forward. If the URL declares failovers lossless
//! ([`Failover::Synchronous`]), an equal system is enough, and the new value is stored from then
//! on. A server that does not report its identity is not compared. A standby, which repeats the
//! writes of its primary, is rejected in every case.

use snowmint_coord::verbs::Access;
use snowmint_coord::{Error, Result};

use super::parameters;

/// The URL's statement on the server's replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failover {
    /// A promoted replica may lack acknowledged writes.
    Lossy,
    /// A promoted replica has all acknowledged writes.
    Synchronous,
}

/// History of a server that repeats the writes of another.
pub(crate) const STANDBY: &str = "standby";

/// Name of the URL parameter.
const PARAMETER: &str = "failover";
const SYNCHRONOUS: &str = "synchronous";

impl Failover {
    /// Removes the parameter from a URL.
    ///
    /// # Errors
    /// `Invalid` for an unknown value.
    pub(crate) fn of_url(url: &str, label: &str) -> Result<(Self, String)> {
        let (value, url) = parameters::remove(url, PARAMETER);
        let failover = match value.as_deref() {
            None => Self::Lossy,
            Some(SYNCHRONOUS) => Self::Synchronous,
            // The value is not checked yet, and may be the end of a password.
            Some(_) => {
                return Err(Error::invalid(format!(
                    "{label}: value of URL parameter {PARAMETER} is unknown; write {SYNCHRONOUS} \
                     or leave it out"
                )));
            }
        };
        Ok((failover, url))
    }
}

/// The server by the tables and by its own report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerIdentity {
    /// Server last accepted as the one with the newest marks; none before the first that reported
    /// its identity.
    pub(crate) kept: Option<String>,
    /// Present server; none if it does not report its identity.
    pub(crate) found: Option<String>,
}

impl ServerIdentity {
    /// Checks that the tables may be written, and returns the server to store instead, if any.
    ///
    /// # Errors
    /// `StoreMismatch`.
    pub(crate) fn check(
        self,
        access: Access,
        failover: Failover,
        label: &str,
    ) -> Result<Option<String>> {
        let Some(found) = self.found else { return Ok(None) };
        if history(&found) == STANDBY {
            return Err(Error::store_mismatch(format!(
                "{label} is server {found}, which may lack acknowledged writes; name the primary \
                 in the URL"
            )));
        }
        match self.kept {
            None => Ok(Some(found)),
            Some(kept) if kept == found => Ok(None),
            Some(_) if access == Access::Forward => Ok(Some(found)),
            Some(kept) if failover == Failover::Synchronous && system(&kept) == system(&found) => {
                Ok(Some(found))
            }
            Some(kept) => Err(Error::store_mismatch(format!(
                "{label} is server {found}, but its data belongs to server {kept}; accept it (snowmint \
                 worker recover --other-server), or move it forward while no server runs (snowmint \
                 worker fast-forward)"
            ))),
        }
    }
}

/// Returns the warning for a server that does not report its identity.
#[cfg(feature = "postgres")]
pub(crate) fn mute(label: &str, reason: &str) -> String {
    format!(
        "{label} does not say which system and timeline it is, so a promoted replica or a restored \
         copy cannot be distinguished from it: {reason}"
    )
}

fn system(server: &str) -> &str {
    server.split('/').next().unwrap_or_default()
}

fn history(server: &str) -> &str {
    server.split('/').nth(1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(kept: Option<&str>, found: Option<&str>) -> ServerIdentity {
        ServerIdentity { kept: kept.map(Into::into), found: found.map(Into::into) }
    }

    #[test]
    fn server_identity_decides_writes() {
        use Access::{Forward, Write};
        use Failover::{Lossy, Synchronous};
        let keep = |server: &str| Ok(Some(server.to_owned()));
        for (kept, found, access, failover, expected) in [
            (Some("7/1"), Some("7/1"), Write, Lossy, Ok(None)),
            // Nothing is stored yet, or the server reports nothing.
            (None, Some("7/1"), Write, Lossy, keep("7/1")),
            (Some("7/1"), None, Write, Lossy, Ok(None)),
            (None, None, Forward, Lossy, Ok(None)),
            // A promoted replica.
            (Some("7/1"), Some("7/2"), Write, Lossy, Err("store_mismatch")),
            (Some("7/1"), Some("7/2"), Write, Synchronous, keep("7/2")),
            (Some("7/1"), Some("7/2"), Forward, Lossy, keep("7/2")),
            // Back to the old primary, which lacks the new primary's acknowledged writes.
            (Some("7/2"), Some("7/1"), Write, Lossy, Err("store_mismatch")),
            // Another server, to which the tables were moved.
            (Some("7/1"), Some("8/1"), Write, Lossy, Err("store_mismatch")),
            (Some("7/1"), Some("8/1"), Write, Synchronous, Err("store_mismatch")),
            (Some("7/1"), Some("8/1"), Forward, Synchronous, keep("8/1")),
            // A standby is never the one with the newest marks.
            (Some("7/1"), Some("7/standby"), Write, Lossy, Err("store_mismatch")),
            (Some("7/1"), Some("7/standby"), Write, Synchronous, Err("store_mismatch")),
            (Some("7/1"), Some("7/standby"), Forward, Lossy, Err("store_mismatch")),
            (None, Some("7/standby"), Write, Lossy, Err("store_mismatch")),
        ] {
            let checked = server(kept, found).check(access, failover, "the store");
            let checked = checked.map_err(|error| error.kind().code());
            assert_eq!(checked, expected, "{kept:?} {found:?} {access:?} {failover:?}");
        }
    }

    #[test]
    fn parameter_is_removed_from_the_url() {
        for (url, failover, rest) in [
            ("mysql://a@b/c", Failover::Lossy, "mysql://a@b/c"),
            ("mysql://a@b/c?ssl-mode=REQUIRED", Failover::Lossy, "mysql://a@b/c?ssl-mode=REQUIRED"),
            ("mysql://a@b/c?failover=synchronous", Failover::Synchronous, "mysql://a@b/c"),
            (
                "postgres://b/c?x=1&failover=synchronous&y",
                Failover::Synchronous,
                "postgres://b/c?x=1&y",
            ),
        ] {
            assert_eq!(Failover::of_url(url, "it").unwrap(), (failover, rest.to_owned()));
        }
        let refused = Failover::of_url("mysql://b/c?failover=never", "it").unwrap_err();
        assert_eq!(refused.kind().code(), "invalid");
    }
}
