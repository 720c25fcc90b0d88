//! `snowmint worker`: worker numbers, their holders and their ends.

mod accept_lead;
mod fast_forward;
mod other_journals;
mod reclaim;
mod recover;
mod recovered;

use clap::{Args, Subcommand};
use snowmint_coord::external::is_external;
use snowmint_wire::http::{WorkerBody, WorkersBody};

use crate::client::{ApiClient, DEFAULT_SERVER};
use crate::terminal::exit::Outcome;
use crate::terminal::output::{Output, print};
use crate::terminal::table::{Column, Table};

/// Show the holder of each worker number and the end of its lease; recover stores and pools.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint worker list
  snowmint worker list --server http://ids.example:7700 --json
  snowmint worker recover --dry-run
  snowmint worker fast-forward --data-dir /var/lib/snowmint
  snowmint worker accept-lead --until 2026-08-01T12:00:00Z
  snowmint worker reclaim workers-10 3 17")]
pub(crate) struct Worker {
    #[command(subcommand)]
    action: WorkerCommand,
}

#[derive(Debug, Subcommand)]
enum WorkerCommand {
    /// List all worker numbers that were ever held. A number is held by the called server (own), by
    /// another member (held), by no running process (free), or by a client's external lease up to
    /// its mark (external). Numbers that are never assigned (excluded) are listed, too. Each has
    /// owner, host (in a container, its name), process, mark, and the times of the process's
    /// launch, of the claim and of the last renewal.
    List(List),
    Recover(recover::Recover),
    FastForward(fast_forward::FastForward),
    AcceptLead(accept_lead::AcceptLead),
    Reclaim(reclaim::Reclaim),
}

#[derive(Debug, Args)]
struct List {
    /// Running server: http://host:port, or several as snowmint://host:port,host:port.
    #[arg(long, value_name = "URL", default_value = DEFAULT_SERVER)]
    server: String,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

impl Worker {
    pub(crate) fn run(self) -> Outcome {
        match self.action {
            WorkerCommand::List(list) => list.run(),
            WorkerCommand::Recover(recover) => recover.run(),
            WorkerCommand::FastForward(forward) => forward.run(),
            WorkerCommand::AcceptLead(accept) => accept.run(),
            WorkerCommand::Reclaim(reclaim) => reclaim.run(),
        }
    }
}

impl List {
    fn run(self) -> Outcome {
        let WorkersBody { workers } = ApiClient::new(&self.server)?.get("/v1/workers")?;
        print(self.json, &workers, |out| table(&workers, out))
    }
}

fn table(workers: &[WorkerBody], out: &mut Output) -> Outcome {
    let mut table = Table::new([
        Column::Text("POOL"),
        Column::Number("NUMBER"),
        Column::Text("STATE"),
        Column::Text("OWNER"),
        Column::Text("HOST"),
        Column::Number("PROCESS"),
        Column::Number("TERM"),
        Column::Text("MARK"),
        Column::Text("LAUNCHED"),
        Column::Text("HELD SINCE"),
        Column::Text("LAST RENEWED"),
    ]);
    for worker in workers {
        let state = match worker {
            WorkerBody { live: true, own: true, .. } => "own",
            WorkerBody { live: true, .. } => "held",
            WorkerBody { excluded: true, .. } => "excluded",
            WorkerBody { pool, .. } if is_external(pool) => "external",
            _ => "free",
        };
        let process = worker.process.map_or_else(|| "-".to_owned(), |process| process.to_string());
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let mark = if worker.excluded { "never" } else { &worker.mark };
        table.row([
            worker.pool.clone(),
            worker.number.to_string(),
            state.to_owned(),
            shown(&worker.owner),
            shown(&worker.host),
            process,
            worker.term.to_string(),
            mark.to_owned(),
            shown(&worker.launched),
            shown(&worker.held_since),
            shown(&worker.last_renewed),
        ]);
    }
    out.table(&table)
}
