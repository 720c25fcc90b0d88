//! `snowmint worker recover`: recovery of a store in doubt.

use clap::Args;
use snowmint_wire::http::{RecoveryBody, RecoveryRequest};

use super::fast_forward::{MoveOptions, MoveStep};
use super::recovered::{NOTHING_TO_RECOVER, Recovered, VALUES_ONLY};
use crate::client::{ApiClient, Method};
use crate::open::store;
use crate::terminal::exit::{Outcome, complain};

/// Move a store in doubt past everything that the journals of its servers have reported, while they
/// run.
///
/// A server that detects a store rollback does not mint, and records it in the store: then no
/// server mints. Each server reports what its journal knows. --dry-run lists the journals that have
/// reported, the missing journals, and what would move where. Without it, the command moves the
/// store, gives it a new history, and the servers continue by themselves. Start a missing server,
/// or give its journal. With --server, any server of the store does this for a caller that may
/// administer all sources: the store need not be reachable from here.
///
/// Stop a process before you leave it out (--without). If it knows more than the store when it
/// returns, it names the command that raises the store. On a store that is not in doubt, --segment
/// and --mark raise these values alone, which is not a recovery.
///
/// After a failover, or a restart of a Redis with persistence=any, no server mints, and the store
/// is not in doubt: run the command once with --other-server, and then without it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint worker recover --dry-run
  snowmint worker recover --config /etc/snowmint.toml
  snowmint worker recover --server https://ids.example:7700 --dry-run
  snowmint worker recover --server https://ids.example:7700 --other-server
  snowmint worker recover --without 5f0c3a1b9d2e4f60718293a4b5c6d7e8 --segment invoices=500000 \\
      --counters-above 90000")]
pub(crate) struct Recover {
    #[command(flatten)]
    how: MoveOptions,
    /// Running server that does it: http://host:port, or several as snowmint://host:port,host:port.
    /// Without it, the store of the configuration is moved from here.
    #[arg(long, value_name = "URL", conflicts_with_all = ["journal", "journal_is_complete", "config", "data_dir", "store", "namespace"])]
    server: Option<String>,
    /// Recover this store of [stores] instead of the server's primary store.
    #[arg(long, value_name = "NAME", requires = "server", conflicts_with_all = ["journal", "journal_is_complete", "config", "data_dir", "store", "namespace"])]
    secondary: Option<String>,
    /// Accept the database server that has the store now (a promoted replica, a restarted Redis),
    /// put the store in doubt, and move nothing. Only after the former one takes no more writes.
    #[arg(long, conflicts_with_all = ["dry_run", "mark", "far_ahead", "no_ids_ahead", "counters_above", "segment", "journal", "journal_is_complete", "without"])]
    other_server: bool,
}

impl Recover {
    pub(crate) fn run(self) -> Outcome {
        match &self.server {
            Some(server) => self.through(&ApiClient::new(server)?),
            None => self.directly(),
        }
    }

    fn directly(&self) -> Outcome {
        let config = self.how.config_args.load(Vec::new())?;
        if !self.how.config_args.has_file() {
            store::check_file(&config)?;
        }
        // The servers run, and use their data directories.
        let command =
            if self.other_server { "worker recover --other-server" } else { "worker recover" };
        let step =
            MoveStep { command, other_server: self.other_server, new_identity: false, lock: None };
        self.how.move_forward(&config, None, &step)
    }

    fn through(&self, server: &ApiClient) -> Outcome {
        let (secondary, other_server) = (self.secondary.clone(), self.other_server);
        let request = RecoveryRequest { secondary, other_server, ..self.how.recovery_request()? };
        let body: RecoveryBody = server.call(&Method::POST, "/v1/recovery", Some(&request))?;
        if body.doubt.is_none() && request.mark.is_none() && request.segments.is_empty() {
            complain(NOTHING_TO_RECOVER);
            return Ok(());
        }
        if body.doubt.is_none() {
            complain(VALUES_ONLY);
        }
        let mut shown = Recovered::new(self.how.json);
        shown.plan(&body)?;
        if other_server {
            return shown.accepted(&body);
        }
        if request.dry_run {
            return shown.looked(&body);
        }
        shown.stored(&body)?;
        shown.done(&body, &[], None)
    }
}
