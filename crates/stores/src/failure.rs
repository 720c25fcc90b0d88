//! Sentences for the failures that all products have.

use std::fmt;
use std::ops::Deref;

use snowmint_coord::verbs::StoreInfo;
use snowmint_coord::{Capabilities, Error};

/// Name of a store or a legacy database in messages. Its text is the product alone, since any
/// caller may read a message; the address is for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    product: &'static str,
    /// The detail of an error: the URL, without secrets.
    address: String,
}

impl Label {
    /// Returns the label of the product at a URL.
    pub(crate) fn of(product: &'static str, url: &str) -> Self {
        Self { product, address: at(&crate::opening::shown(url)) }
    }

    /// Returns what a store with this label is.
    pub(crate) fn info<'a>(
        &'a self,
        capabilities: Capabilities,
        namespace: &'a str,
    ) -> StoreInfo<'a> {
        let (label, address) = (self.product, Some(&*self.address));
        StoreInfo { capabilities, namespace, label, address }
    }

    /// Returns the product and its address.
    #[cfg(feature = "legacy")]
    pub(crate) fn full(&self) -> String {
        format!("{self} {}", self.address)
    }

    /// Adds the address to an error.
    pub(crate) fn locate(&self, error: Error) -> Error {
        error.with_detail(&self.address)
    }
}

/// Returns an address as the detail of an error.
pub(crate) fn at(shown: &str) -> String {
    format!("at {shown}")
}

impl Deref for Label {
    type Target = str;

    fn deref(&self) -> &str {
        self.product
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.product)
    }
}

/// Class of a product's error. Each product maps its own codes to classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// No response, or a condition that passes.
    Unavailable,
    StorageFull,
    ReadOnly,
    PermissionDenied,
    /// Damaged data, or a value of an unexpected type.
    Corrupt,
    /// Wrong user or password.
    Credentials,
    NoDatabase,
    /// A URL that the driver rejects; the text is the right form.
    BadUrl(&'static str),
    Closed,
    /// A condition that only a bug can cause.
    Internal,
}

/// Either `Class::of_store` or `Class::of_legacy`.
pub(crate) type Sentence = fn(Class, &str) -> Error;

impl Class {
    /// Returns the error of a store.
    pub(crate) fn of_store(self, label: &str) -> Error {
        match self {
            Self::Unavailable => Error::unavailable(format!(
                "{label} is unavailable; check that it runs and is reachable"
            )),
            Self::StorageFull => Error::storage_full(format!(
                "no space left for {label}; free space (acknowledged data is safe)"
            )),
            Self::ReadOnly => Error::store_read_only(format!(
                "{label} is read-only; check owner, permissions, mount and role"
            )),
            Self::PermissionDenied => Error::store_permission_denied(format!(
                "user of {label} lacks a permission; grant those in docs/reference/stores.md or \
                 name another user in the URL"
            )),
            Self::Corrupt => Error::corrupt(format!(
                "{label} is damaged; restore it, then move it forward (snowmint worker \
                 fast-forward)"
            )),
            Self::Credentials => {
                Error::invalid(format!("{label} rejected this user or password; correct the URL"))
            }
            Self::NoDatabase => {
                Error::invalid(format!("database of {label} does not exist; create it"))
            }
            Self::BadUrl(form) => {
                Error::invalid(format!("{label} cannot be reached as the URL says; write {form}"))
            }
            Self::Closed => Error::closed(format!("{label} is closed; open it again")),
            Self::Internal => Error::internal(format!(
                "internal error: {label} rejected a request; please report it"
            )),
        }
    }

    /// Returns the error of another ID system's database, for which the remedies of a store are
    /// wrong.
    #[cfg(feature = "legacy")]
    pub(crate) fn of_legacy(self, label: &str) -> Error {
        let legacy = format!("legacy database {label}");
        match self {
            Self::StorageFull => {
                Error::storage_full(format!("{legacy} is out of space; free space there"))
            }
            Self::ReadOnly => {
                Error::store_read_only(format!("{legacy} is read-only; name its primary"))
            }
            Self::PermissionDenied => Error::store_permission_denied(format!(
                "user of {legacy} lacks a permission; grant it, or name another user in the URL"
            )),
            Self::Corrupt => Error::corrupt(format!(
                "{legacy} has a value of an unexpected type; check its tables"
            )),
            Self::NoDatabase => Error::invalid(format!("{legacy} does not exist; correct the URL")),
            Self::Unavailable
            | Self::Credentials
            | Self::BadUrl(_)
            | Self::Closed
            | Self::Internal => self.of_store(&legacy),
        }
    }
}

#[cfg(all(test, feature = "legacy"))]
mod tests {
    use super::Class;

    #[test]
    fn legacy_database_gets_no_remedy_of_a_store() {
        for class in [
            Class::Unavailable,
            Class::StorageFull,
            Class::ReadOnly,
            Class::PermissionDenied,
            Class::Corrupt,
            Class::Credentials,
            Class::NoDatabase,
            Class::BadUrl("x://HOST"),
            Class::Closed,
            Class::Internal,
        ] {
            let (store, legacy) = (class.of_store("it"), class.of_legacy("it"));
            assert_eq!(store.kind(), legacy.kind());
            let text = legacy.message();
            assert!(text.contains("legacy database it"), "{text}");
            assert!(!text.contains("snowmint") && !text.contains("docs/"), "{text}");
        }
    }
}
