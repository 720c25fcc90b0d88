//! Options of every import, and the state of this deployment.

use std::collections::BTreeMap;

use clap::Args;
use snowmint_coord::spec::Plan;
use snowmint_coord::{Definition, ErrorKind, SlotInfo, SourceSpec, SourceState};
use snowmint_core::{Layout, UnixMillis};
use tokio::runtime::Runtime;

use crate::config::{Config, ConfigArgs, warn_of_secret};
use crate::open::store;
use crate::system::secret;
use crate::terminal::exit::Outcome;
use crate::terminal::when;

/// Options of every import.
#[derive(Debug, Args)]
pub(super) struct Common {
    #[command(flatten)]
    pub(super) config_args: ConfigArgs,
    /// Database of the other system: a URL, or the place of one (file:PATH or env:NAME) for a URL
    /// with a password, since other users can read command lines.
    #[arg(long, value_name = "URL", required = true, value_parser = url)]
    pub(super) from: Vec<String>,
    /// Show the plan only.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    pub(super) json: bool,
}

/// Returns the URL, or reads it from its file or variable.
fn url(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some(("file" | "env", _)) => Ok(secret::at("--from", &text.into())?.trim().to_owned()),
        _ => {
            warn_of_secret(text, "--from", "keep the URL at env:NAME or file:PATH, and say that");
            Ok(text.to_owned())
        }
    }
}

/// State of this deployment before the import.
pub(super) struct ImportContext {
    pub(super) config: Config,
    pub(super) runtime: Runtime,
    /// All sources, by name.
    pub(super) stored: BTreeMap<String, Definition>,
    /// All slots that were ever claimed or excluded.
    pub(super) slots: Vec<SlotInfo>,
    /// Later of this clock's and the store's time.
    pub(super) now: UnixMillis,
}

impl ImportContext {
    /// Reads the state and creates nothing.
    pub(super) fn read_state(common: &Common) -> Outcome<Self> {
        let config = common.config_args.load(Vec::new())?;
        let runtime = store::runtime()?;
        let mut ctx =
            Self { config, runtime, stored: BTreeMap::new(), slots: Vec::new(), now: when::now() };
        let Some(store) = ctx.runtime.block_on(store::existing(&ctx.config))? else {
            return Ok(ctx);
        };
        ctx.runtime.block_on(async {
            let by_name = |definition: Definition| (definition.name.clone(), definition);
            ctx.stored = store.list().await?.definitions.into_iter().map(by_name).collect();
            ctx.now = store.now().await?.unwrap_or(ctx.now).max(ctx.now);
            ctx.slots = store.workers(ctx.now).await?;
            store.close().await
        })?;
        Ok(ctx)
    }

    /// Returns the layouts of the sources with worker numbers, including sources that the next
    /// server defines.
    pub(super) fn layouts(&self) -> Vec<(String, Layout)> {
        let builtin = self.config.sources.builtin.then(|| {
            let name = snowmint_coord::node::BUILTIN_DEFAULT;
            (name.to_owned(), SourceSpec::default())
        });
        let defined = self.config.defined.iter();
        let defined = defined.map(|(name, defined)| (name.clone(), defined.spec.clone()));
        let stored = self.stored.values().filter_map(|stored| {
            let spec = SourceSpec::from_stored(&stored.spec).ok()?;
            (stored.state != SourceState::Deleted).then(|| (stored.name.clone(), spec))
        });
        // A stored definition replaces a built-in one of the same name.
        let builtin = builtin.filter(|(name, _)| !self.stored.contains_key(name));
        let all = builtin.into_iter().chain(defined).chain(stored);
        all.filter_map(|(name, spec)| match spec.check() {
            Ok(Plan::Snowflake(plan)) => Some((name, plan.layout)),
            _ => None,
        })
        .collect()
    }
}

/// Returns `None` where there is no such table.
pub(super) fn present<T>(read: snowmint_coord::Result<T>) -> Outcome<Option<T>> {
    match read {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(None),
        read => Ok(Some(read?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_can_be_read_from_a_file() {
        let plain = "mysql://db/leaf";
        assert_eq!(url(plain).unwrap(), plain);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "mysql://user:password@db/leaf\n").unwrap();
        let kept = url(&format!("file:{}", file.path().display()));
        assert_eq!(kept.unwrap(), "mysql://user:password@db/leaf");
        let missing = url("env:SNOWMINT_NO_SUCH_VARIABLE").unwrap_err();
        assert!(missing.contains("is not set"), "{missing}");
    }
}
