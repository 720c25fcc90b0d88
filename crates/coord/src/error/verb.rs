//! A verb of a store, as errors, metrics, spans and the audit trail name it.

use std::fmt;

/// Verb of a store. The table of [`Store`](crate::Store) has a row for each, and defines its
/// constant here.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Verb(&'static VerbRow);

/// Kind of a verb: what its callers get, and what it may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerbKind {
    /// Reads, and changes nothing.
    Read,
    /// Gives a caller something that a store without this write would give again.
    Grant,
    /// Any other write: a store without it would give nothing again.
    Write,
    /// A change of the whole store, or of its worker numbers, by an operator.
    Operate,
}

/// Row of a verb: its names and its kind.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct VerbRow {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) span_name: &'static str,
    pub(crate) kind: VerbKind,
}

impl Verb {
    /// Creates the verb of a row.
    pub(crate) const fn of(row: &'static VerbRow) -> Self {
        Self(row)
    }

    /// Returns the name of the verb's call, and of its method.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the name of the verb in errors, metrics and the audit trail.
    #[must_use]
    pub const fn label(self) -> &'static str {
        self.0.label
    }

    /// Returns the name of a call's span.
    #[must_use]
    pub const fn span_name(self) -> &'static str {
        self.0.span_name
    }

    /// Returns the kind of the verb.
    #[must_use]
    pub const fn kind(self) -> VerbKind {
        self.0.kind
    }
}

impl fmt::Debug for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
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
            assert_eq!(label.replace('_', ""), verb.name().to_lowercase());
            assert_eq!(verb.span_name(), format!("store {label}"));
        }
    }
}
