//! The verbs of a store, by name.

use std::fmt;

/// Defines the enum, and what depends on a verb, from one row for each verb.
macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident = $label:literal;)*) => {
        /// Verb of a store. Errors, metrics, spans and the audit trail name a call by it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Verb {
            $($(#[$doc])* $verb,)*
        }

        impl Verb {
            /// All verbs, each once.
            pub const ALL: &'static [Self] = &[$(Self::$verb),*];

            /// Returns the name of the verb in errors, metrics and the audit trail.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$verb => $label,)*
                }
            }

            /// Returns the name of a call's span.
            #[must_use]
            pub const fn span_name(self) -> &'static str {
                match self {
                    $(Self::$verb => concat!("store ", $label),)*
                }
            }
        }
    };
}

verbs! {
    /// Reads the store's clock.
    Now = "now";
    /// Reads the store's identity.
    Identity = "identity";
    /// Compares the store with the state that a caller has seen.
    Recall = "recall";
    /// Puts the store in doubt.
    Doubt = "doubt";
    /// Records what a journal knows.
    Report = "report";
    /// Reads the doubt and the reports.
    Standing = "standing";
    /// Adds a member.
    Join = "join";
    /// Renews a member's presence.
    Renew = "renew";
    /// Writes a member's status.
    Announce = "announce";
    /// Removes a member.
    Leave = "leave";
    /// Lists the members.
    Members = "members";
    /// Claims worker slots.
    Claim = "claim";
    /// Moves marks forward.
    Extend = "extend";
    /// Releases a worker slot.
    Release = "release";
    /// Acquires exclusive slots.
    Acquire = "acquire";
    /// Relinquishes slots.
    Relinquish = "relinquish";
    /// Excludes worker numbers.
    Exclude = "exclude";
    /// Lowers the marks of free worker numbers.
    Reclaim = "reclaim";
    /// Lists the worker slots.
    Workers = "workers";
    /// Reserves numbers of a source.
    Reserve = "reserve";
    /// Returns reserved numbers.
    GiveBack = "give_back";
    /// Defines a source.
    Define = "define";
    /// Changes a definition.
    Alter = "alter";
    /// Changes the stripe of a source.
    Restripe = "restripe";
    /// Enables, disables or deletes a source.
    SetState = "set_state";
    /// Reads one definition.
    Get = "get";
    /// Reads the catalog.
    List = "list";
    /// Moves the whole store forward.
    FastForward = "fast_forward";
    /// Accepts marks ahead of the clock.
    AcceptLead = "accept_lead";
    /// Reads the defaults for slots without a row.
    Ground = "ground";
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Verb;

    #[test]
    fn each_verb_has_one_label_in_snake_case() {
        let labels: BTreeSet<_> = Verb::ALL.iter().map(|verb| verb.label()).collect();
        assert_eq!(labels.len(), Verb::ALL.len());
        for verb in Verb::ALL {
            let label = verb.label();
            assert!(label.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{label}");
            assert_eq!(verb.span_name(), format!("store {label}"));
        }
    }
}
