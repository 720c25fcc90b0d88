//! The file of tokens, and the token that servers show each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmint_coord::BootTimer;
use snowmint_server::{Access, Secret, TokenSettings, Tokens};

use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::secret;

/// Tokens, and where they come from.
#[derive(Debug)]
pub(super) struct TokensFile {
    path: String,
    peers: String,
    open_metrics: bool,
    access: Access,
    /// What was read last, usable or not: what does not change is not told again.
    seen: Result<Contents, String>,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Contents {
    tokens: Secret,
    peers: Secret,
}

impl TokensFile {
    /// The tokens of a configuration; none where it names no file.
    pub(super) fn load(config: &Config) -> Outcome<Option<Self>> {
        let (path, peers) = (config.tokens.file.clone(), config.peers.token.clone());
        if path.is_empty() {
            return Ok(None);
        }
        let open_metrics = config.tokens.open_metrics;
        let contents = read(&path, &peers).map_err(Failure::usage)?;
        let tokens = parsed(&path, &contents, open_metrics).map_err(Failure::usage)?;
        if tokens.tokens.is_empty() {
            tracing::warn!("tokens.file = {path:?} has no tokens: nobody is let in");
        }
        let by_certificate = tokens.tokens.values().any(|token| !token.certificates.is_empty());
        if by_certificate && config.tls.client_ca.is_empty() {
            tracing::warn!(
                "tokens.file = {path:?} names certificates, and without tls.client_ca no client shows one"
            );
        }
        let access = Access::new(&config.store.namespace, &tokens, Arc::new(BootTimer))
            .map_err(|why| Failure::usage(refused(&path, &why)))?;
        Ok(Some(Self { path, peers, open_metrics, access, seen: Ok(contents) }))
    }

    pub(super) fn access(&self) -> Access {
        self.access.clone()
    }

    /// Reads the files anew, and uses them if they have changed and can be used.
    pub(super) fn look(&mut self) {
        let now = read(&self.path, &self.peers);
        if now == self.seen {
            return;
        }
        let used = now.clone().and_then(|contents| {
            let tokens = parsed(&self.path, &contents, self.open_metrics)?;
            self.access.replace(&tokens).map_err(|why| refused(&self.path, &why))
        });
        self.seen = now;
        match used {
            Ok(changes) => {
                for change in changes {
                    let who = &self.path;
                    tracing::info!(target: "audit", who, "{change}");
                }
            }
            Err(why) => tracing::error!("{why}; the tokens of before stay"),
        }
    }
}

fn read(path: &str, peers: &str) -> Result<Contents, String> {
    let tokens = std::fs::read_to_string(path)
        .map_err(|error| format!("tokens.file = {path:?} cannot be read: {error}"))?;
    let peers = match peers {
        "" => String::new(),
        place => secret::at(place).map_err(|why| format!("peers.token = {place:?}: {why}"))?,
    };
    Ok(Contents { tokens: Secret::new(tokens), peers: Secret::new(peers) })
}

fn parsed(path: &str, contents: &Contents, open_metrics: bool) -> Result<Tokens, String> {
    let text = contents.tokens.text();
    let tokens: BTreeMap<String, TokenSettings> = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.lines().count().max(1);
        // What stands there is not shown: it may be a token in the place of a hash.
        format!("{path}, line {line}: this is no token: each is [NAME] with hashes, certificates, grants and rates, which are lists of texts")
    })?;
    let lines = contents.peers.text().lines().map(str::trim);
    let peers = lines.filter(|line| !line.is_empty()).map(Secret::new).collect();
    Ok(Tokens { tokens, peers, open_metrics })
}

fn refused(path: &str, why: &str) -> String {
    format!("tokens.file = {path:?}: {why}")
}
