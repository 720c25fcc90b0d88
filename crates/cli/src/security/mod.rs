//! Access control and encryption, read from files that are followed while the server runs.

mod certificates;
mod files;
mod public;
mod settled;
mod tokens;

use snowmint_coord::{BootTimer, Timer as _};
use snowmint_server::{Access, Tls};
use tokio::signal::unix::Signal;

use crate::config::Config;
use crate::terminal::exit::Outcome;
use certificates::Certificates;
pub(crate) use files::warnings;
pub(crate) use public::{check as check_public, check_texts as check_public_texts};
use tokens::TokensFile;

/// Interval of file checks. SIGHUP causes one at once.
const POLL_MS: u64 = 1_000;
/// Time after SIGHUP of a second check: content counts only when read twice.
const POLL_AGAIN_MS: u64 = 100;

/// All files that are followed.
pub(crate) struct Security {
    tokens: Option<TokensFile>,
    certificates: Option<Certificates>,
}

impl Security {
    /// Loads the files of the configuration in their current state.
    pub(crate) fn load(config: &Config) -> Outcome<Self> {
        let (tokens, certificates) = (TokensFile::load(config)?, Certificates::load(config)?);
        Ok(Self { tokens, certificates })
    }

    /// Returns the permissions.
    pub(crate) fn access(&self) -> Option<Access> {
        self.tokens.as_ref().map(TokensFile::access)
    }

    /// Returns the encryption of connections.
    pub(crate) fn tls(&self) -> Option<Tls> {
        self.certificates.as_ref().map(Certificates::tls)
    }

    /// Follows the files, for ever. An unusable file is logged, and the previous content stays.
    pub(crate) async fn follow(mut self, mut hangups: Signal) {
        if self.tokens.is_none() && self.certificates.is_none() {
            return;
        }
        loop {
            let requested = tokio::select! {
                _ = hangups.recv() => true,
                () = BootTimer.sleep_ms(POLL_MS) => false,
            };
            self.poll();
            if requested {
                BootTimer.sleep_ms(POLL_AGAIN_MS).await;
                self.poll();
                tracing::info!("token and certificate files reloaded");
            }
        }
    }

    fn poll(&mut self) {
        if let Some(tokens) = &mut self.tokens {
            tokens.poll();
        }
        if let Some(certificates) = &mut self.certificates {
            certificates.poll();
        }
    }
}
