//! Audit lines of use cases.

use std::fmt::{self, Display};
use std::sync::Arc;

use serde_json::Value;
use snowmint_coord::{SourceInfo, Verb, VerbKind};
use snowmint_wire::error::Code;

use super::state::Service;
use crate::access::Logins;
use crate::error::{Error, shown};
use crate::trail::{About, AuditLine};

impl Service {
    /// Returns the logins, for every place that checks secrets.
    pub(crate) fn logins(&self) -> Arc<Logins> {
        Arc::clone(&self.logins)
    }

    /// Leaves a line about an action of the caller.
    pub(crate) fn audit(&self, about: About, line: impl FnOnce() -> AuditLine) {
        self.logins.trail().leave(about, self.caller(), line);
    }

    /// Leaves a line about a rejected change.
    pub(crate) fn audit_rejection(&self, what: impl Display, why: impl Display) {
        self.audit(About::Refused, || AuditLine {
            what: what.to_string(),
            why: Some(why.to_string()),
            ..AuditLine::default()
        });
    }

    /// Leaves a line about a program's call that was rejected before it reached the store: without
    /// the right, beyond a bound or a rate, or in a state that permits no change.
    pub(crate) fn audit_client_rejection(&self, verb: Option<Verb>, code: Code, why: &str) {
        if is_rejection(verb, code) {
            let verb = verb.map_or("describe", Verb::label);
            self.audit_rejection(format_args!("program not allowed to {verb}"), why);
        }
    }

    /// Leaves a line about a move of the whole store, through this server.
    pub(crate) fn audit_store_move(&self, how: &str) {
        self.audit(About::Change, || AuditLine {
            what: format!("store {how}"),
            ..AuditLine::default()
        });
    }

    /// Leaves a line in the audit trail, and notifies the peers. A repeated equal definition
    /// changes nothing.
    pub(super) fn record_change(
        &self,
        how: &str,
        name: &str,
        before: Option<&SourceInfo>,
        after: Option<&SourceInfo>,
    ) {
        let (before, after) = (AuditDefinition(before), AuditDefinition(after));
        if before.differs_from(after) {
            self.audit(About::Change, || AuditLine {
                what: format!("source {name} {how}"),
                before: Some(before.to_string()),
                after: Some(after.to_string()),
                why: None,
            });
        }
        self.notify_peers();
    }

    /// Leaves a line about raised numbers: all numbers of the section continue above them. The key
    /// may be a person's name, and is omitted.
    pub(super) fn audit_raise(
        &self,
        (name, section): (&str, Option<u16>),
        before: Option<u64>,
        after: u64,
    ) {
        self.audit(About::Change, || {
            let section =
                section.map_or_else(String::new, |section| format!(" (section {section})"));
            let before =
                before.map_or_else(|| "not known here".to_owned(), |bound| bound.to_string());
            AuditLine {
                what: format!("counter of source {name}{section} raised"),
                before: Some(before),
                after: Some(after.to_string()),
                why: None,
            }
        });
    }

    /// Leaves a line about a change of a source that failed.
    pub(super) fn audit_source_rejection(&self, what: &str, name: &str, error: &Error) {
        self.audit_rejection(format_args!("source {} not {what}", shown(name)), error);
    }

    /// Leaves a line if a change of a source failed. Another server that decides a change writes
    /// its line.
    pub(super) fn audit_failure<T>(
        &self,
        what: &str,
        name: &str,
        result: Result<T, Error>,
    ) -> Result<T, Error> {
        result.inspect_err(|error| {
            if error.code() != Code::NotOwner {
                self.audit_source_rejection(what, name, error);
            }
        })
    }
}

/// Returns whether an error of a program's call leaves a line. Reads and reservations over a rate
/// are usual, and would hide the changes.
fn is_rejection(verb: Option<Verb>, code: Code) -> bool {
    match code {
        Code::Forbidden | Code::BadRequest | Code::LimitExceeded | Code::Conflict => true,
        Code::RateLimited | Code::Overloaded | Code::StoreRolledBack => verb.is_some_and(changes),
        _ => false,
    }
}

/// Returns whether a verb, done for a program, leaves a line: all but reads, renewals and numbers.
fn changes(verb: Verb) -> bool {
    verb.kind() != VerbKind::Read && !matches!(verb, Verb::Renew | Verb::Reserve | Verb::GiveBack)
}

/// A definition, or its absence, in the form of the audit trail. It contains texts that callers
/// chose, with their control characters: the writer of the line escapes these.
#[derive(Clone, Copy, Debug)]
pub struct AuditDefinition<'a>(pub Option<&'a SourceInfo>);

impl AuditDefinition<'_> {
    /// Returns whether the version is another one. A repeated equal definition keeps it.
    #[must_use]
    pub fn differs_from(self, other: Self) -> bool {
        let version = |definition: Self| definition.0.map(|info| info.version);
        version(self) != version(other)
    }
}

impl Display for AuditDefinition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(info) => {
                write!(f, "version {} {}", info.version, Value::Object(info.spec.to_json()))
            }
            None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rejected_change_by_a_program_leaves_a_line() {
        let of_state = [Code::RateLimited, Code::Overloaded, Code::StoreRolledBack];
        for code in of_state {
            for verb in [Verb::Join, Verb::Claim, Verb::Define, Verb::FastForward] {
                assert!(is_rejection(Some(verb), code), "{verb} {code}");
            }
            for verb in [Verb::Reserve, Verb::Renew, Verb::Members] {
                assert!(!is_rejection(Some(verb), code), "{verb} {code}");
            }
            assert!(!is_rejection(None, code), "{code}");
        }
        for verb in [None, Some(Verb::Reserve), Some(Verb::Join)] {
            assert!(is_rejection(verb, Code::Forbidden), "{verb:?}");
            assert!(!is_rejection(verb, Code::Closed), "{verb:?}");
        }
    }
}
