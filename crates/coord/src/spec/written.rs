//! Definitions as the catalog stores them: the text and identity derived from a source's keys.

use crate::error::{Error, Result};
use crate::model::catalog::differences::Differences;
use crate::model::catalog::{NewDefinition, check_new};
use crate::spec::error::SpecError;
use crate::spec::source_spec::SourceSpec;

impl NewDefinition {
    /// Returns the definition with these keys, every default written out, and the identity derived
    /// from them.
    ///
    /// # Errors
    /// As [`SourceSpec::check`].
    pub fn of(name: &str, spec: &SourceSpec) -> Result<Self, SpecError> {
        let mut canonical = spec.canonical()?;
        // The catalog keeps the enabled state separately.
        canonical.enabled = None;
        let identity = canonical.identity()?;
        let text = canonical.to_stored();
        Ok(Self { name: name.into(), spec: text, identity, enabled: spec.enabled })
    }

    /// Returns the definition as the catalog stores it, with the keys as this version writes them.
    /// The input is untrusted. Returns `None` if this version cannot read the keys.
    ///
    /// # Errors
    /// `Invalid` for a bad name, an over-long text, or an identity that does not match the keys. A
    /// client that could choose the identity could alter what must never change, and cause
    /// duplicate IDs.
    pub fn kept(&self) -> Result<Option<Self>> {
        check_new(self)?;
        let spec = SourceSpec::from_stored(&self.spec);
        let Ok(kept) = spec.and_then(|spec| Self::of(&self.name, &spec)) else { return Ok(None) };
        if kept.identity == self.identity {
            return Ok(Some(Self { enabled: self.enabled, ..kept }));
        }
        let Differences { stored: keys, wanted: sent, .. } =
            Differences::between(&kept.identity, &self.identity);
        Err(Error::invalid(format!(
            "identity of source {:?} is {sent}, its keys give {keys}; send the identity of the \
             keys or update the program",
            self.name
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> NewDefinition {
        NewDefinition::of("orders", &SourceSpec::from_json(json).unwrap()).unwrap()
    }

    #[test]
    fn definition_of_a_server_is_stored_unchanged() {
        for json in [
            "{}",
            r#"{"unique":"namespace","disguise":{"mode":"full","version":2,"check":"0123456789abcdef"}}"#,
            r#"{"mint":"store","stores":"a=1,b=2"}"#,
            r#"{"kind":"segment","offset":2,"increment":3,"first":50,"first_at":9,"until":900}"#,
            r#"{"kind":"segment","stores":"a,b"}"#,
            r#"{"kind":"segment","upstream":"leaf:orders"}"#,
            r#"{"kind":"segment","serial":{"prefix":"INV-","date":"yyyyMMdd"}}"#,
            r#"{"kind":"counter"}"#,
            r#"{"kind":"uuid"}"#,
            r#"{"kind":"ulid"}"#,
        ] {
            for enabled in [None, Some(true), Some(false)] {
                let new = NewDefinition { enabled, ..of(json) };
                assert_eq!(new.kept().unwrap(), Some(new.clone()), "{json}");
            }
        }
    }

    #[test]
    fn identity_that_contradicts_the_keys_is_rejected() {
        let odd = of(r#"{"kind":"segment","increment":2}"#);
        let all = of(r#"{"kind":"segment"}"#);
        for identity in ["", "{}", all.identity.as_str(), "no object"] {
            let odd = NewDefinition { identity: identity.into(), ..odd.clone() };
            let error = odd.kept().unwrap_err();
            assert_eq!(error.kind().code(), "invalid", "{error}");
            assert!(error.message().contains("identity of source \"orders\""), "{error}");
        }
    }

    #[test]
    fn length_of_stored_definition_is_bounded() {
        let plain = of(r#"{"kind":"segment"}"#);
        let padded =
            NewDefinition { spec: format!("{}{}", plain.spec, " ".repeat(500)), ..plain.clone() };
        assert_eq!(padded.kept().unwrap(), Some(plain.clone()));
        let spec = format!("{}{}", plain.spec, " ".repeat(crate::model::catalog::SPEC_BYTES_MAX));
        let error = NewDefinition { spec, ..plain }.kept().unwrap_err();
        assert_eq!(error.kind().code(), "invalid", "{error}");
        // The longest possible definition: 64 stores with the longest names and distinct numbers.
        let stores = (0..64).map(|n| format!("{n:0>63}={}", n + 900)).collect::<Vec<_>>().join(",");
        let most = of(&format!(r#"{{"mint":"store","stores":"{stores}"}}"#));
        assert_eq!(most.kept().unwrap(), Some(most.clone()));
    }

    #[test]
    fn unreadable_keys_are_not_written_out() {
        for spec in [r#"{"kind":"segment","colour":"blue"}"#, r#"{"increment":2}"#, "x"] {
            let new = NewDefinition { spec: spec.into(), ..of("{}") };
            assert_eq!(new.kept().unwrap(), None, "{spec}");
        }
    }
}
