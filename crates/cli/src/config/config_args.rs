//! Options by which a command finds its configuration.

use std::path::PathBuf;

use clap::Args;

use super::given::Given;
use super::secrets::has_secret;
use super::sections::Config;
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
    #[arg(long, value_name = "URL", help = store_help())]
    store: Option<Hidden>,
    /// Namespace; isolates deployments that share a store.
    #[arg(long, value_name = "NS")]
    namespace: Option<String>,
}

/// Returns the help of `--store`.
fn store_help() -> String {
    format!(
        "Store: {}. The store memory: forgets everything. With servers as the store: \
         snowmint://HOST:PORT,HOST:PORT, with TLS snowmints://",
        snowmint_stores::url_forms()
    )
}

impl ConfigArgs {
    /// Keys with the options that override them.
    pub(crate) const KEYS: [(&str, &'static str); 3] = [
        ("server.data_dir", "--data-dir"),
        ("store.url", "--store"),
        ("store.namespace", "--namespace"),
    ];
    /// Likewise, the further options of `serve`.
    pub(crate) const SERVE_KEYS: [(&str, &'static str); 4] = [
        ("server.http", "--http"),
        ("server.resp", "--resp"),
        ("server.owner", "--owner"),
        ("server.insecure", "--insecure"),
    ];

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
        let texts = [
            self.data_dir.as_deref(),
            self.store.as_ref().map(Hidden::text),
            self.namespace.as_deref(),
        ];
        let mut flags: Vec<Given> = Self::KEYS
            .into_iter()
            .zip(texts)
            .filter_map(|((key, name), text)| Some(Given::flag(key, name, text?)))
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

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    #[test]
    fn help_of_store_has_the_form_of_every_store() {
        let command = ConfigArgs::augment_args(Command::new("serve"));
        let store = command.get_arguments().find(|argument| argument.get_id() == "store");
        let help = store.and_then(clap::Arg::get_help).map(ToString::to_string);
        let forms = snowmint_stores::url_forms();
        assert!(help.as_ref().is_some_and(|help| help.contains(&forms)), "{help:?}");
    }
}
