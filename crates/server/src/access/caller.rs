//! The caller of a request, and its rights.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use snowmint_wire::error::Code;

use super::certificate::CertificateNames;
use super::control::{Access, Credential};
use super::logins::{Logins, too_many};
use super::rate::Deed;
use super::right::{Named, Right};
use super::token::{Token, source_of};
use crate::clients::share::Client;
use crate::clients::tracker::TrackedConnection;
use crate::error::Error;

/// The identity of a caller, and its connection. Each check decides rights again, so that the
/// removal of a token ends streams and connections, too.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    identity: Identity,
    from: Option<Arc<TrackedConnection>>,
}

#[derive(Clone, Debug)]
enum Identity {
    /// Tokens are not required.
    Unrestricted,
    /// Anonymous.
    Anonymous(AnonymousReason),
    /// Identified by a token, or by a certificate that maps to one.
    Token(TokenCaller),
    /// A peer.
    Peer,
    /// The server's own configuration.
    Configuration,
    /// Admitted by the compatibility API of another system, by its own tokens.
    CompatApi(&'static str),
}

/// Reason why a caller is anonymous.
#[derive(Clone, Debug)]
pub(crate) enum AnonymousReason {
    /// The caller showed no credential.
    NothingShown,
    /// The token does not exist.
    NoSuchToken,
    /// The address sent too many wrong tokens. The next check is possible in this many
    /// milliseconds.
    NotLookedAt { wait_ms: u64 },
    /// The certificate has these names, and no token lists one of them.
    NoSuchName(CertificateNames, Arc<Logins>),
    /// A browser sent the certificate for the page of another site, perhaps unknown to its user.
    OtherSite,
}

/// A token that existed when the caller was identified.
#[derive(Clone, Debug)]
struct TokenCaller {
    access: Access,
    shown: Credential,
    token: Arc<Token>,
}

impl TokenCaller {
    /// Returns the current token; `None` when it was removed.
    fn now(&self) -> Option<Arc<Token>> {
        let token = if self.token.is_past() {
            self.access.token(&self.shown)?
        } else {
            Arc::clone(&self.token)
        };
        (!token.has_expired()).then_some(token)
    }
}

impl Caller {
    const fn new(identity: Identity) -> Self {
        Self { identity, from: None }
    }

    /// Returns the caller of a server that requires no tokens.
    pub(crate) const fn unrestricted() -> Self {
        Self::new(Identity::Unrestricted)
    }

    /// Returns an anonymous caller.
    pub(crate) const fn anonymous(reason: AnonymousReason) -> Self {
        Self::new(Identity::Anonymous(reason))
    }

    /// Returns a peer.
    pub(crate) const fn peer() -> Self {
        Self::new(Identity::Peer)
    }

    /// Returns the server's own configuration: it may do everything, and needs no token.
    pub(crate) const fn configuration() -> Self {
        Self::new(Identity::Configuration)
    }

    /// Returns a caller that a compatibility API has admitted by its own tokens, to get numbers.
    pub(crate) const fn compat_api(api: &'static str) -> Self {
        Self::new(Identity::CompatApi(api))
    }

    pub(super) const fn known(access: Access, shown: Credential, token: Arc<Token>) -> Self {
        Self::new(Identity::Token(TokenCaller { access, shown, token }))
    }

    /// Returns the same caller, over this connection.
    pub(crate) fn over(self, from: &Arc<TrackedConnection>) -> Self {
        Self { from: Some(Arc::clone(from)), ..self }
    }

    /// Returns the same caller, over the connection of `other`.
    pub(crate) fn of_same_connection(self, other: &Self) -> Self {
        Self { from: other.from.clone(), ..self }
    }

    /// Returns the connection, if the caller has one.
    pub(crate) const fn connection(&self) -> Option<&Arc<TrackedConnection>> {
        self.from.as_ref()
    }

    /// Returns whether the caller has shown a token or a certificate, valid or not.
    pub(crate) const fn has_shown_something(&self) -> bool {
        !matches!(
            self.identity,
            Identity::Unrestricted | Identity::Anonymous(AnonymousReason::NothingShown)
        )
    }

    /// Returns whether the caller has shown a valid token, including one of another system.
    pub(crate) fn has_a_token(&self) -> bool {
        match &self.identity {
            Identity::Unrestricted | Identity::Anonymous(_) => false,
            Identity::Token(known) => known.now().is_some(),
            Identity::Peer | Identity::Configuration | Identity::CompatApi(_) => true,
        }
    }

    /// Returns the client whose share of a limit the caller uses.
    pub(crate) fn client(&self) -> Client {
        match (&self.identity, &self.from) {
            (Identity::Token(known), _) => Client::token(known.token.name()),
            (_, Some(from)) => Client::at(from.peer.ip()),
            (_, None) => Client::Own,
        }
    }

    /// Returns the address of the caller.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.from.as_ref().map(|from| from.peer)
    }

    /// Returns the name and network of the caller, without the port, which differs for each
    /// connection. The owner of one machine in an IPv6 network has all of its addresses, so they
    /// count as one.
    pub(crate) fn at_network(&self) -> String {
        let identity = Self { identity: self.identity.clone(), from: None };
        match &self.from {
            Some(from) => format!("{identity} at {}", Client::at(from.peer.ip())),
            None => identity.to_string(),
        }
    }

    /// Returns whether every caller may do everything, within the limits.
    #[inline]
    pub(crate) const fn is_unrestricted(&self) -> bool {
        matches!(self.identity, Identity::Unrestricted)
    }

    /// Returns whether the caller showed a token that exists.
    pub(crate) fn is_known(&self) -> bool {
        self.token().is_ok()
    }

    /// Returns whether the caller showed a token itself, which has priority over its certificate.
    pub(crate) const fn has_shown(&self) -> bool {
        matches!(
            self.identity,
            Identity::Peer | Identity::Token(TokenCaller { shown: Credential::Token(_), .. })
        )
    }

    /// Returns the token that identified the caller, if one did.
    const fn by_token(&self) -> Option<&TokenCaller> {
        match &self.identity {
            Identity::Token(known) => Some(known),
            _ => None,
        }
    }

    /// Returns the token's name.
    pub(crate) fn name(&self) -> Option<&str> {
        self.by_token().map(|known| known.token.name())
    }

    /// Returns the certificate name that identified the caller, if one did.
    pub(crate) const fn certificate(&self) -> Option<&Arc<str>> {
        match &self.identity {
            Identity::Token(TokenCaller { shown: Credential::Certificate(name), .. }) => Some(name),
            _ => None,
        }
    }

    /// Returns the token; `None` for callers with every right.
    fn token(&self) -> Result<Option<Arc<Token>>, Error> {
        match &self.identity {
            Identity::Unrestricted | Identity::Peer | Identity::Configuration => Ok(None),
            Identity::CompatApi(api) => {
                let message = format!("{api} permits taking numbers only; use another interface");
                Err(Error::new(Code::Forbidden, message))
            }
            Identity::Anonymous(reason) => Err(reason.rejection()),
            Identity::Token(known) => {
                known.now().map(Some).ok_or_else(|| AnonymousReason::NoSuchToken.rejection())
            }
        }
    }

    /// Returns the same for a request. A rejected certificate counts as a failed login.
    pub(crate) fn admitted(&self) -> Result<Option<Arc<Token>>, Error> {
        let token = self.token();
        if let (Err(_), Identity::Anonymous(AnonymousReason::NoSuchName(names, logins))) =
            (&token, &self.identity)
        {
            logins.failed(self, &format!("no token has a name of the certificate ({names})"));
        }
        token
    }

    /// # Errors
    /// `Unauthenticated` without a token, else `Forbidden` without the right over the source.
    pub(crate) fn may(&self, right: Right, source: &str) -> Result<(), Error> {
        if matches!((&self.identity, right), (Identity::CompatApi(_), Right::Mint | Right::Reserve))
        {
            return Ok(());
        }
        match self.admitted()? {
            Some(token) if !token.has(right, source) => {
                Err(token.rejection(right, &source_of(source)))
            }
            _ => Ok(()),
        }
    }

    /// Checks as [`Caller::may`], over at least one source.
    pub(crate) fn may_somewhere(&self, right: Right) -> Result<(), Error> {
        match self.admitted()? {
            Some(token) if !token.has_somewhere(right) => Err(token.rejection(right, "any source")),
            _ => Ok(()),
        }
    }

    /// Checks as [`Caller::may`], over every source.
    pub(crate) fn may_over_all(&self, right: Right) -> Result<(), Error> {
        match self.admitted()? {
            Some(token) if !token.has_over_all(right) => Err(token.rejection(right, "all sources")),
            _ => Ok(()),
        }
    }

    /// Checks whether definitions of the caller may name this.
    pub(crate) fn may_name(&self, named: &Named) -> Result<(), Error> {
        match self.token()? {
            Some(token) if !token.has_named(named) => Err(token.rejection_to_name(named)),
            _ => Ok(()),
        }
    }

    /// Checks as [`Caller::may`], with any right.
    pub(crate) fn may_see(&self, source: &str) -> Result<(), Error> {
        if matches!(self.identity, Identity::CompatApi(_)) {
            return Ok(());
        }
        match self.admitted()? {
            Some(token) if !token.concerns(source) => {
                let (name, source) = (token.name(), source_of(source));
                let message = format!("token {name} has no right over {source}; grant one");
                Err(Error::new(Code::Forbidden, message))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the caller has any right at all.
    pub(crate) fn has_some_right(&self) -> bool {
        self.token().is_ok_and(|token| token.is_none_or(|token| token.has_some_right()))
    }

    /// Returns whether the caller may read the details of errors: addresses, URLs and paths. A peer
    /// may not, since it sends an error on to a caller of its own.
    pub(crate) fn sees_details(&self) -> bool {
        match &self.identity {
            Identity::Unrestricted | Identity::Configuration => true,
            Identity::Token(known) => {
                known.now().is_some_and(|token| token.has_over_all(Right::Admin))
            }
            Identity::Anonymous(_) | Identity::Peer | Identity::CompatApi(_) => false,
        }
    }

    /// Rejects anonymous callers where tokens are required.
    pub(crate) fn must_be_known(&self) -> Result<(), Error> {
        self.admitted().map(drop)
    }

    /// Rejects all but peers where tokens are required.
    pub(crate) fn must_be_a_server(&self) -> Result<(), Error> {
        match self.admitted()? {
            None => Ok(()),
            Some(token) => {
                let message =
                    format!("token {} is not that of a server (peers.token)", token.name());
                Err(Error::new(Code::Forbidden, message))
            }
        }
    }

    /// Returns whether the caller is exempt from the limits of one request.
    pub(crate) fn may_beyond_limits(&self, source: &str) -> bool {
        let current = self.by_token().and_then(TokenCaller::now);
        matches!(self.identity, Identity::Peer)
            || current.is_some_and(|token| token.has(Right::Admin, source))
    }

    /// Returns whether the IDs that the caller takes count toward a rate.
    pub(crate) fn is_limited(&self) -> bool {
        self.by_token().is_some_and(|known| known.now().is_none_or(|token| token.is_limited()))
    }

    /// Returns the most IDs of a source that the caller's rate, if any, permits at once.
    pub(crate) fn at_once(&self, source: &str) -> Result<Option<u64>, Error> {
        Ok(self.token()?.and_then(|token| token.at_once(source)))
    }

    /// Takes `count` of a source from the caller's rate.
    pub(crate) fn spend(&self, source: &str, count: u64) -> Result<(), Error> {
        match self.token()? {
            Some(token) => token.spend(source, count),
            None => Ok(()),
        }
    }
}

impl Caller {
    /// Counts a single action toward the caller's rate.
    pub(crate) fn count(&self, deed: Deed) -> Result<(), Error> {
        match &self.identity {
            Identity::Token(_) => self.token()?.map_or(Ok(()), |token| token.count(deed)),
            _ => Ok(()),
        }
    }

    /// Returns whether the caller gets only a share of a limit: it has a token without the right
    /// over all sources.
    pub(crate) fn has_a_share(&self) -> bool {
        self.by_token().is_some() && self.may_over_all(Right::Admin).is_err()
    }

    /// Returns whether the caller is a part of the servers: their configuration, or a peer that
    /// shows its token.
    pub(crate) const fn is_of_servers(&self) -> bool {
        matches!(self.identity, Identity::Peer | Identity::Configuration)
    }

    /// Returns whether the caller is the server's own configuration.
    pub(crate) const fn is_configuration(&self) -> bool {
        matches!(self.identity, Identity::Configuration)
    }
}

impl fmt::Display for Caller {
    /// Writes the caller's name in the audit trail.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.identity {
            Identity::Unrestricted => f.write_str("anyone")?,
            Identity::Anonymous(_) => f.write_str("nobody")?,
            Identity::Token(known) => {
                write!(f, "token {}", known.token.name())?;
                if let Some(name) = self.certificate() {
                    write!(f, " (by certificate {name:?})")?;
                }
            }
            Identity::Peer => f.write_str("another server")?,
            Identity::Configuration => f.write_str("the configuration")?,
            Identity::CompatApi(api) => f.write_str(api)?,
        }
        match &self.from {
            Some(from) => write!(f, " at {}", from.peer),
            None => Ok(()),
        }
    }
}

impl AnonymousReason {
    fn rejection(&self) -> Error {
        const SHOW: &str = "send Authorization: Bearer TOKEN, or AUTH NAME TOKEN in RESP";
        let message = match self {
            Self::NothingShown => format!("token required, none presented; {SHOW}"),
            Self::NoSuchToken => {
                "token is unknown, was removed, or has expired; present a valid one".to_owned()
            }
            Self::NotLookedAt { wait_ms } => return too_many(*wait_ms),
            Self::NoSuchName(names, _) => format!(
                "no token has a name of the certificate ({names}); {SHOW}, or add a name to a \
                 token's certificates in tokens.file"
            ),
            Self::OtherSite => format!(
                "request from a page of another site needs a token, not a certificate; {SHOW}"
            ),
        };
        Error::new(Code::Unauthenticated, message)
    }
}
