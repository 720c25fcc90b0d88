//! A token: the caller that shows it, and the rights of this caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use serde::Deserialize;
use snowmint_coord::Timer;
use snowmint_coord::catalog::check_name;
use snowmint_core::{Clock as _, SystemClock, UnixMillis};
use snowmint_wire::error::Code;

use super::certificate;
use super::logins::KnownAddresses;
use super::rate::{Deed, Rates};
use super::right::{Grant, Named, Right};
use super::secret::TokenHash;
use crate::error::{Error, shown};

/// A token as configured, without its name, which is its key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenSettings {
    /// Hashes of its secrets: two during a rotation.
    pub hashes: Vec<String>,
    /// Names of certificates that map to it: `URI=…`, `DNS=…`, `EMAIL=…`, `CN=orders-service`.
    pub certificates: Vec<String>,
    /// Its rights: `mint,reserve orders-*`.
    pub grants: Vec<String>,
    /// Its rates: `1000/s orders-*`.
    pub rates: Vec<String>,
    /// Expiry, such as `2027-01-01T00:00:00Z`; `None`: it never expires.
    pub expires: Option<String>,
}

/// A token of one namespace.
#[derive(Debug)]
pub(crate) struct Token {
    name: String,
    /// Configured settings, for the detection of changes.
    settings: TokenSettings,
    grants: Vec<Grant>,
    rates: Rates,
    /// Expiry, if any.
    expires: Option<UnixMillis>,
    /// Addresses from which its secrets were shown.
    places: Arc<KnownAddresses>,
    /// Whether tokens were reloaded since.
    is_past: AtomicBool,
}

impl Token {
    pub(super) fn new(
        name: &str,
        settings: &TokenSettings,
        namespace: &str,
        before: Option<&Self>,
        timer: &Arc<dyn Timer>,
    ) -> Result<Self, String> {
        check_name("token", name).map_err(|kind| kind.to_string())?;
        if settings.hashes.is_empty() && settings.certificates.is_empty() {
            let message = "no hash and no certificate given; add one (`snowmint token new` makes a \
                           hash)";
            return Err(message.to_owned());
        }
        let grants = settings.grants.iter().map(|text| text.parse());
        let mut grants = grants.collect::<Result<Vec<Grant>, _>>()?;
        grants.retain(|grant| grant.is_for(namespace));
        let rates =
            Rates::new(&settings.rates, namespace, before.map(|token| &token.rates), timer)?;
        let expires = settings.expires.as_deref().map(time).transpose()?;
        let is_past = AtomicBool::new(false);
        let places = before.map(|token| Arc::clone(&token.places)).unwrap_or_default();
        let (name, settings) = (name.to_owned(), settings.clone());
        Ok(Self { name, settings, grants, rates, expires, places, is_past })
    }

    pub(super) fn hashes(&self) -> Result<Vec<TokenHash>, String> {
        self.settings.hashes.iter().map(|text| text.parse()).collect()
    }

    /// Returns the comparison forms of the certificate names that map to it.
    pub(super) fn certificates(&self) -> Result<Vec<Arc<str>>, String> {
        self.settings.certificates.iter().map(|text| certificate::name(text)).collect()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn settings(&self) -> &TokenSettings {
        &self.settings
    }

    pub(super) const fn expires(&self) -> Option<UnixMillis> {
        self.expires
    }

    /// Returns whether it has expired.
    pub(super) fn has_expired(&self) -> bool {
        self.expires.is_some_and(|expires| SystemClock.unix_ms() >= expires)
    }

    pub(super) fn places(&self) -> &KnownAddresses {
        &self.places
    }

    pub(super) fn is_past(&self) -> bool {
        self.is_past.load(Ordering::Relaxed)
    }

    pub(super) fn is_now_past(&self) {
        self.is_past.store(true, Ordering::Relaxed);
    }

    pub(super) fn has(&self, right: Right, source: &str) -> bool {
        self.grants.iter().any(|grant| grant.has(right, source))
    }

    /// Returns whether it has any right over a source.
    pub(super) fn concerns(&self, source: &str) -> bool {
        self.grants.iter().any(|grant| grant.concerns(source))
    }

    pub(super) fn has_somewhere(&self, right: Right) -> bool {
        self.grants.iter().any(|grant| grant.has_somewhere(right))
    }

    /// Returns whether it has any right, over any source.
    pub(super) fn has_some_right(&self) -> bool {
        self.grants.iter().any(Grant::is_over_sources)
    }

    pub(super) fn has_over_all(&self, right: Right) -> bool {
        self.grants.iter().any(|grant| grant.has_over_all(right))
    }

    /// Returns whether its definitions may name this.
    pub(super) fn has_named(&self, named: &Named) -> bool {
        self.grants.iter().any(|grant| grant.has_named(named))
    }

    pub(super) fn is_limited(&self) -> bool {
        !self.rates.is_empty()
    }

    pub(super) fn at_once(&self, source: &str) -> Option<u64> {
        self.rates.at_once(source)
    }

    pub(super) fn spend(&self, source: &str, count: u64) -> Result<(), Error> {
        self.rates.spend(&self.name, source, count)
    }

    pub(super) fn count(&self, deed: Deed) -> Result<(), Error> {
        self.rates.count(&self.name, deed)
    }

    /// Returns the error for a missing right.
    pub(super) fn rejection(&self, right: Right, over: &str) -> Error {
        let name = &self.name;
        let message = format!("token {name} has no right to {right} over {over}; grant it");
        Error::new(Code::Forbidden, message)
    }

    /// Returns the error for a definition that may not name this.
    pub(super) fn rejection_to_name(&self, named: &Named) -> Error {
        let (name, key) = (&self.name, named.key());
        let message = format!(
            "token {name} has no right to name {named} ({key}) in a definition; grant it \"admin \
             {named}\" in tokens.file"
        );
        Error::new(Code::Forbidden, message)
    }
}

/// Parses the time at which a token expires.
fn time(text: &str) -> Result<UnixMillis, String> {
    let time = text.parse::<Timestamp>().ok();
    let ms = time.and_then(|time| u64::try_from(time.as_millisecond()).ok());
    ms.map(UnixMillis::new).ok_or_else(|| {
        format!(
            "expires = {} is not a time; write one such as \"2027-01-01T00:00:00Z\"",
            shown(text)
        )
    })
}

/// Returns a source's name in errors.
pub(super) fn source_of(name: &str) -> String {
    format!("source {}", shown(name))
}
