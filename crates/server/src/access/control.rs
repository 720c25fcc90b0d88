//! The table of tokens, and its replacement while the server runs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use snowmint_coord::Timer;
use snowmint_core::UnixMillis;

use super::logins::{KnownAddresses, Logins};
use super::secret::{ByToken, Secret, TokenHash};
use super::token::{Token, TokenSettings};
use crate::error::shown;

/// All configured secrets at one moment.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// Tokens by name.
    pub tokens: BTreeMap<String, TokenSettings>,
    /// Secrets that peers show each other: the first is sent, each is accepted.
    pub peers: Vec<Secret>,
    /// Whether `/metrics` needs no token.
    pub open_metrics: bool,
}

/// Tokens and their rights. Clones share them; they can be replaced while the server runs.
#[derive(Clone)]
pub struct Access(pub(super) Arc<AccessInner>);

pub(super) struct AccessInner {
    namespace: String,
    timer: Arc<dyn Timer>,
    pub(super) logins: Arc<Logins>,
    pub(super) table: ArcSwap<TokenTable>,
    /// Number of replacements.
    generation: AtomicU64,
}

/// All tokens of one moment.
#[derive(Debug, Default)]
pub(super) struct TokenTable {
    by_name: BTreeMap<String, Arc<Token>>,
    pub(super) by_token: ByToken<TokenHolder>,
    /// Tokens by the certificate names that map to them.
    pub(super) by_certificate: HashMap<Arc<str>, Arc<Token>>,
    peers: Vec<Secret>,
    /// Addresses from which peers showed their secrets.
    peer_places: Arc<KnownAddresses>,
    open_metrics: bool,
}

/// Holder of a token.
#[derive(Clone, Debug)]
pub(super) enum TokenHolder {
    Token(Arc<Token>),
    Peer(Arc<KnownAddresses>),
}

/// Credential that identified a caller.
#[derive(Clone, Debug)]
pub(super) enum Credential {
    /// Hash of the token.
    Token(TokenHash),
    /// Name in the certificate.
    Certificate(Arc<str>),
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("namespace", &self.0.namespace).finish_non_exhaustive()
    }
}

impl Access {
    /// Creates access control for the sources of a namespace.
    ///
    /// # Errors
    /// The token that is invalid, and why. Hashes and tokens are not shown.
    pub fn new(namespace: &str, tokens: &Tokens, timer: Arc<dyn Timer>) -> Result<Self, String> {
        let access = Self(Arc::new(AccessInner {
            namespace: namespace.to_owned(),
            logins: Arc::new(Logins::new(Arc::clone(&timer))),
            timer,
            table: ArcSwap::default(),
            generation: AtomicU64::new(0),
        }));
        access.replace(tokens)?;
        Ok(access)
    }

    /// Uses these tokens from now on. Returns the changes, a line for each token.
    ///
    /// # Errors
    /// Those of [`Access::new`]; nothing has changed then.
    pub fn replace(&self, tokens: &Tokens) -> Result<Vec<String>, String> {
        let before = self.0.table.load_full();
        let table = TokenTable::new(tokens, &before, &self.0)?;
        let changes = table.changes_since(&before);
        self.0.table.store(Arc::new(table));
        before.by_name.values().for_each(|token| token.is_now_past());
        self.0.generation.fetch_add(1, Ordering::Release);
        Ok(changes)
    }

    /// Returns the tokens that expire, with the time of each.
    #[must_use]
    pub fn expiring(&self) -> Vec<(String, UnixMillis)> {
        let table = self.0.table.load();
        let expiring = table.by_name.values();
        expiring.filter_map(|token| Some((token.name().to_owned(), token.expires()?))).collect()
    }

    /// Returns a number that changes whenever the tokens change.
    pub(crate) fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    /// Returns the logins, for every place that checks secrets.
    pub(crate) fn logins(&self) -> Arc<Logins> {
        Arc::clone(&self.0.logins)
    }

    /// Returns the token that a credential identifies.
    pub(super) fn token(&self, shown: &Credential) -> Option<Arc<Token>> {
        let table = self.0.table.load();
        match shown {
            Credential::Certificate(name) => table.by_certificate.get(&**name).cloned(),
            Credential::Token(hash) => match table.by_token.find(hash) {
                Some(TokenHolder::Token(token)) => Some(Arc::clone(token)),
                Some(TokenHolder::Peer(_)) | None => None,
            },
        }
    }

    /// Returns the secret that this server shows to peers.
    pub(crate) fn shown_to_peers(&self) -> Option<Secret> {
        self.0.table.load().peers.first().cloned()
    }

    pub(crate) fn has_open_metrics(&self) -> bool {
        self.0.table.load().open_metrics
    }
}

impl TokenTable {
    fn new(tokens: &Tokens, before: &Self, shared: &AccessInner) -> Result<Self, String> {
        let Tokens { tokens, peers, open_metrics } = tokens;
        let peer_places = Arc::clone(&before.peer_places);
        let mut table = Self {
            peers: peers.clone(),
            peer_places: Arc::clone(&peer_places),
            open_metrics: *open_metrics,
            ..Self::default()
        };
        for peer in peers {
            let hash =
                TokenHash::of_new(peer.text()).map_err(|error| format!("peers.token: {error}"))?;
            if !table.by_token.insert(hash, TokenHolder::Peer(Arc::clone(&peer_places))) {
                return Err("peers.token has a line twice; remove one".to_owned());
            }
        }
        for (name, settings) in tokens {
            let refused = |error| format!("token {}: {error}", shown(name));
            let old = before.by_name.get(name).map(AsRef::as_ref);
            let token = Token::new(name, settings, &shared.namespace, old, &shared.timer);
            let token = Arc::new(token.map_err(refused)?);
            for hash in token.hashes().map_err(refused)? {
                if !table.by_token.insert(hash, TokenHolder::Token(Arc::clone(&token))) {
                    return Err(refused(format!("hash {hash:?} is there twice; remove one")));
                }
            }
            for name in token.certificates().map_err(refused)? {
                let before = table.by_certificate.insert(Arc::clone(&name), Arc::clone(&token));
                if let Some(other) = before {
                    let other = other.name();
                    let message = format!("{name:?} is a certificate of token {other}; remove one");
                    return Err(refused(message));
                }
            }
            table.by_name.insert(name.clone(), token);
        }
        Ok(table)
    }

    /// Returns a line for each token that was added, removed or changed.
    fn changes_since(&self, before: &Self) -> Vec<String> {
        let names: BTreeSet<_> = self.by_name.keys().chain(before.by_name.keys()).collect();
        let changes = names.into_iter().filter_map(|name| {
            match (before.by_name.get(name), self.by_name.get(name)) {
                (None, Some(now)) => Some(format!("token {name} added: {}", summary(now))),
                (Some(old), None) => Some(format!("token {name} removed: {}", summary(old))),
                (Some(old), Some(now)) if old.settings() != now.settings() => Some(format!(
                    "token {name} changed: before {}, after {}",
                    summary(old),
                    summary(now)
                )),
                _ => None,
            }
        });
        let mut changes: Vec<_> = changes.collect();
        if self.peers != before.peers {
            let (old, now) = (before.peers.len(), self.peers.len());
            changes.push(format!("tokens of servers changed: before {old}, after {now}"));
        }
        changes
    }
}

/// Describes a token in the audit trail: a hash distinguishes two tokens and gives no access.
fn summary(token: &Token) -> String {
    let TokenSettings { certificates, grants, rates, expires, .. } = token.settings();
    let hashes = token.hashes().unwrap_or_default();
    let expires = expires.as_deref().map(|time| format!(" expires {time:?}")).unwrap_or_default();
    format!(
        "hashes {hashes:?} certificates {certificates:?} grants {grants:?} rates {rates:?}{expires}"
    )
}
