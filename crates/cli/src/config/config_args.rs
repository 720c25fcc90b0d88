//! Options by which a command finds its configuration.

use std::path::PathBuf;

use clap::Args;

use super::{Config, Given};
use crate::system::secret::Hidden;
use crate::terminal::exit::{Outcome, complain};

/// Location of the configuration, and options that override it.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Configuration file; without it, defaults and the environment.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of the lock, the journal and the default store.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Store: sqlite:PATH, postgres://…, mysql://…, redis://…, etcd://…, zookeeper://…, memory:
    /// (which forgets everything), or the store of servers: snowmint://HOST:PORT,HOST:PORT, with
    /// TLS snowmints://.
    #[arg(long, value_name = "URL")]
    store: Option<Hidden>,
    /// Namespace; isolates deployments that share a store.
    #[arg(long, value_name = "NS")]
    namespace: Option<String>,
}

impl ConfigArgs {
    /// Returns whether no option was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.config.is_none()
            && self.data_dir.is_none()
            && self.store.is_none()
            && self.namespace.is_none()
    }

    /// Returns whether a file was given.
    pub(crate) const fn has_file(&self) -> bool {
        self.config.is_some()
    }

    /// Returns the data directory, if it was given.
    pub(crate) fn data_dir(&self) -> Option<&str> {
        self.data_dir.as_deref()
    }

    /// Loads the configuration, overridden by these and `more` options.
    pub(crate) fn load(&self, more: Vec<Given>) -> Outcome<Config> {
        if let Some(url) = &self.store {
            let instead = "give the URL as SNOWMINT_STORE__URL, or as store.url in a file";
            warn_of_secret(url.text(), "--store", instead);
        }
        let own = [
            ("server.data_dir", "--data-dir", self.data_dir.as_deref()),
            ("store.url", "--store", self.store.as_ref().map(Hidden::text)),
            ("store.namespace", "--namespace", self.namespace.as_deref()),
        ];
        let mut flags: Vec<Given> = own
            .into_iter()
            .filter_map(|(key, name, text)| Some(Given::flag(key, name, text?)))
            .collect();
        flags.extend(more);
        Config::load(self.config.as_deref(), flags)
    }
}

/// Warns of a password in the URL of an option, with an alternative.
pub(crate) fn warn_of_secret(url: &str, option: &str, instead: &str) {
    if has_secret(url) {
        complain(format_args!(
            "other users of this machine can read the password in {option} while this command runs: {instead}"
        ));
    }
}

/// Returns whether a URL contains a password: after a colon before the last @ of the host part, or
/// in a parameter. For servers, the text before the @ is a token.
pub(super) fn has_secret(url: &str) -> bool {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let (_, parameters) = rest.split_once('?').unwrap_or_default();
    let password =
        |parameter: &str| parameter.strip_prefix("password=").is_some_and(|it| !it.is_empty());
    if parameters.split('&').any(password) {
        return true;
    }
    let hosts = rest.split('/').next().unwrap_or_default();
    let (user, _) = hosts.rsplit_once('@').unwrap_or_default();
    if snowmint_client::is_url(url) {
        return !user.is_empty();
    }
    user.split_once(':').is_some_and(|(_, password)| !password.is_empty())
}

#[cfg(test)]
mod tests {
    #[test]
    fn passwords_of_urls() {
        for url in [
            "postgres://u:p@h/d",
            "postgres://h/d?sslmode=require&password=p",
            "redis://:p@h",
            "etcd://u:p@a:1,b:2/x",
            "snowmints://t@h",
        ] {
            assert!(super::has_secret(url), "{url}");
        }
        for url in [
            "sqlite:a@b:c",
            "postgres://u@h:5432/d",
            "mysql://h:3306/a:b@c",
            "postgres://h/d?password=&sslmode=require",
            "redis://u:@h",
            "memory:",
            "snowmint://h:7700,i:7700",
        ] {
            assert!(!super::has_secret(url), "{url}");
        }
    }
}
