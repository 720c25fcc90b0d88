//! The file of tokens, and the token of servers among peers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use snowmint_coord::BootTimer;
use snowmint_coord::private::read_trusted;
use snowmint_server::{Access, Secret, TokenSettings, Tokens};

use super::settled::Settled;
use crate::config::Config;
use crate::system::secret::{self, Hidden};
use crate::terminal::exit::{Failure, Outcome};

/// Tokens, and their file.
pub(super) struct TokensFile {
    sources: TokenSources,
    access: Access,
    /// Last content, usable or not: an unchanged content is not logged again.
    seen: Settled<Result<Contents, String>>,
}

/// Places of the tokens, and settings of the rest of the configuration for them.
struct TokenSources {
    path: String,
    peers: Hidden,
    open_metrics: bool,
    /// Whether clients present certificates.
    asks_for_certificates: bool,
}

/// Content of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Contents {
    tokens: Secret,
    peers: Secret,
}

impl TokensFile {
    /// Loads the tokens of a configuration; `None` if it names no file.
    pub(super) fn load(config: &Config) -> Outcome<Option<Self>> {
        let sources = TokenSources {
            path: config.tokens.file.clone(),
            peers: config.peers.token.clone(),
            open_metrics: config.tokens.open_metrics,
            asks_for_certificates: !config.tls.client_ca.is_empty(),
        };
        if sources.path.is_empty() {
            return Ok(None);
        }
        let contents = sources.read().map_err(Failure::usage)?;
        let tokens = sources.parsed(&contents).map_err(Failure::usage)?;
        if tokens.tokens.is_empty() {
            tracing::warn!(
                "tokens.file = {:?} has no tokens; every caller is rejected",
                sources.path
            );
        }
        let access = Access::new(&config.store.namespace, &tokens, Arc::new(BootTimer))
            .map_err(|error| Failure::usage(sources.refused(&error)))?;
        Ok(Some(Self { sources, access, seen: Settled::new(Ok(contents)) }))
    }

    pub(super) fn access(&self) -> Access {
        self.access.clone()
    }

    /// Reads the files again, and uses them if they have changed and are usable.
    pub(super) fn poll(&mut self) {
        let Some(now) = self.seen.read(self.sources.read()) else { return };
        let used = now.and_then(|contents| {
            let tokens = self.sources.parsed(&contents)?;
            self.access.replace(&tokens).map_err(|error| self.sources.refused(&error))
        });
        match used {
            Ok(changes) => {
                for change in changes {
                    let who = &self.sources.path;
                    tracing::info!(target: "audit", who, "{change}");
                }
            }
            Err(error) => tracing::error!("{error}; keeping the current tokens"),
        }
    }
}

impl TokenSources {
    fn read(&self) -> Result<Contents, String> {
        let Self { path, peers, .. } = self;
        let name = format!("tokens.file {path:?}");
        let tokens = String::from_utf8(read_trusted(&name, Path::new(path))?)
            .map_err(|_| format!("{name} is not UTF-8; write it as text"))?;
        let peers = match peers.is_empty() {
            true => String::new(),
            false => secret::at("peers.token", peers)?,
        };
        Ok(Contents { tokens: Secret::new(tokens), peers: Secret::new(peers) })
    }

    fn parsed(&self, contents: &Contents) -> Result<Tokens, String> {
        let text = contents.tokens.text();
        let tokens: BTreeMap<String, TokenSettings> = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let (path, line) = (&self.path, before.lines().count().max(1));
            // The text is not shown: it may be a token in the place of a hash.
            format!(
                "{path}, line {line}: invalid token; write [NAME] with hashes, certificates, \
                 grants and rates as lists of texts, and expires as a text"
            )
        })?;
        let certified = tokens.iter().find(|(_, token)| !token.certificates.is_empty());
        if let Some((name, _)) = certified.filter(|_| !self.asks_for_certificates) {
            return Err(self.refused(&format!(
                "token {name:?} has certificates, but the server requests none; set tls.client_ca \
                 or remove them"
            )));
        }
        let lines = contents.peers.text().lines().map(str::trim);
        let peers = lines.filter(|line| !line.is_empty()).map(Secret::new).collect();
        Ok(Tokens { tokens, peers, open_metrics: self.open_metrics })
    }

    fn refused(&self, error: &str) -> String {
        format!("tokens.file {:?}: {error}", self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Given;

    /// A file that is written in place is half-written for a moment.
    #[test]
    fn a_file_that_is_half_written_takes_no_token_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.toml");
        let entry = |name: &str| {
            format!("[{name}]\nhashes = [\"sha256:{}\"]\n", "0123456789abcdef".repeat(4))
        };
        let whole = entry("a");
        std::fs::write(&path, &whole).unwrap();
        let given = Given::flag("tokens.file", "tokens.file", path.to_str().unwrap());
        let config = Config::load(None, vec![given]).unwrap();
        let mut file = TokensFile::load(&config).unwrap().unwrap();
        // Returns the changes from the present tokens to those of the whole file.
        let changes = |file: &TokensFile| {
            let contents = Contents { tokens: Secret::new(&*whole), peers: Secret::new("") };
            let tokens = file.sources.parsed(&contents).unwrap();
            file.access.replace(&tokens).unwrap()
        };
        for half in ["", "[a]\n", "[b"] {
            std::fs::write(&path, half).unwrap();
            file.poll();
            assert_eq!(changes(&file), Vec::<String>::new(), "{half:?}");
            std::fs::write(&path, &whole).unwrap();
            file.poll();
            file.poll();
            assert_eq!(changes(&file), Vec::<String>::new(), "{half:?}");
        }
        // A lasting content is intended.
        std::fs::write(&path, "").unwrap();
        file.poll();
        file.poll();
        assert_eq!(changes(&file).len(), 1);
    }
}
