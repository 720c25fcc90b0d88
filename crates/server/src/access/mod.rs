//! Access control: tokens, their rights over sources, and their rates.
//!
//! The [`Service`](crate::Service) checks rights at the beginning of every use case, so no protocol
//! can forget to. Protocols only identify the [`Caller`]. Where no tokens are configured there is
//! no [`Access`] at all, and every caller is [`Caller::unrestricted`].

mod caller;
mod certificate;
mod control;
pub(crate) mod hosts;
mod logins;
mod party;
mod rate;
mod right;
mod secret;
mod token;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};

pub(crate) use caller::{AnonymousReason, Caller};
pub(crate) use certificate::CertificateNames;
pub use control::{Access, Tokens};
use control::{Credential, TokenHolder};
pub(crate) use logins::{KnownAddresses, Logins, too_many};
pub(crate) use rate::Deed;
pub use right::Right;
pub(crate) use right::{Named, fits};
pub(crate) use secret::ByToken;
pub use secret::{Secret, TokenHash};
pub(crate) use token::Token;
pub use token::TokenSettings;

use crate::clients::tracker::TrackedConnection;

impl Access {
    /// Identifies the caller that shows this token, at this address.
    pub(crate) fn caller(&self, token: &[u8], from: &Arc<TrackedConnection>) -> Caller {
        let hash = TokenHash::of(token);
        let table = self.0.table.load();
        let (caller, places) = match table.by_token.find(&hash) {
            Some(TokenHolder::Token(token)) => {
                let caller =
                    Caller::known(self.clone(), Credential::Token(hash), Arc::clone(token));
                (caller, (!token.has_expired()).then(|| token.places()))
            }
            Some(TokenHolder::Peer(places)) => (Caller::peer(), Some(&**places)),
            None => (Caller::anonymous(AnonymousReason::NoSuchToken), None),
        };
        self.looked_at(caller.over(from), places, from)
    }

    /// Returns the caller, if the login limit permits a check: of a token that was valid from these
    /// addresses before, or of a wrong one.
    fn looked_at(
        &self,
        caller: Caller,
        places: Option<&KnownAddresses>,
        from: &Arc<TrackedConnection>,
    ) -> Caller {
        let logins = &self.0.logins;
        let looked_at = match places {
            Some(places) => logins.right(places, from.peer.ip()),
            None => logins.wrong(from.peer.ip()),
        };
        match looked_at {
            Ok(()) if places.is_some() => caller,
            Ok(()) => {
                let has_expired = caller.name().is_some();
                logins.failed(
                    &caller,
                    if has_expired { "the token has expired" } else { "no such token" },
                );
                caller
            }
            Err(wait_ms) => {
                let anonymous =
                    Caller::anonymous(AnonymousReason::NotLookedAt { wait_ms }).over(from);
                logins.failed(&anonymous, "too many wrong tokens came from this address");
                anonymous
            }
        }
    }

    /// Identifies the caller that has a certificate with these names and shows no token, at this
    /// address.
    pub(crate) fn caller_named(
        &self,
        names: &CertificateNames,
        from: &Arc<TrackedConnection>,
    ) -> Caller {
        self.named(names).over(from)
    }

    fn named(&self, names: &CertificateNames) -> Caller {
        let table = self.0.table.load();
        match names.iter().find_map(|name| table.by_certificate.get_key_value(name)) {
            Some((name, token)) => {
                let shown = Credential::Certificate(Arc::clone(name));
                Caller::known(self.clone(), shown, Arc::clone(token))
            }
            None if names.is_empty() => Caller::anonymous(AnonymousReason::NothingShown),
            None => Caller::anonymous(AnonymousReason::NoSuchName(names.clone(), self.logins())),
        }
    }

    /// Identifies the caller that sends these headers and has a certificate with these names, at
    /// this address.
    pub(crate) fn caller_of(
        &self,
        headers: &HeaderMap,
        names: &CertificateNames,
        from: &Arc<TrackedConnection>,
    ) -> Caller {
        let Some(value) = headers.get(AUTHORIZATION) else {
            // A browser sends its certificate with the requests of any page.
            return if names.is_empty() || !is_of_another_site(headers) {
                self.caller_named(names, from)
            } else {
                Caller::anonymous(AnonymousReason::OtherSite).over(from)
            };
        };
        match value.as_bytes().split_at_checked(BEARER.len()) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case(BEARER) => {
                self.caller(token.trim_ascii(), from)
            }
            _ => self.looked_at(
                Caller::anonymous(AnonymousReason::NoSuchToken).over(from),
                None,
                from,
            ),
        }
    }
}

/// Scheme of an `Authorization` header.
const BEARER: &[u8] = b"Bearer ";
/// Header in which browsers name the site of the calling page; pages cannot set it.
pub(crate) const SITE: &str = "sec-fetch-site";

/// Returns whether a browser sent this for a page that is not this server's own.
pub(crate) fn is_of_another_site(headers: &HeaderMap) -> bool {
    let site = headers.get(SITE).map(HeaderValue::as_bytes);
    site.is_some_and(|site| !matches!(site, b"same-origin" | b"none"))
}
