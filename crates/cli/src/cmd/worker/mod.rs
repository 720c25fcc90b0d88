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
use crate::terminal::output::print;
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
        print(self.json, &workers, |out| out.table(&table(&workers)))
    }
}

fn table(workers: &[WorkerBody]) -> Table {
    let mut table = Table::new([
        Column::Text("POOL"),
        Column::Number("NUMBER"),
        Column::Text("STATE"),
        Column::Text("OWNER"),
        Column::Text("HOST"),
        Column::Number("PROCESS"),
        Column::Number("TERM"),
        Column::Whole("MARK"),
        Column::Whole("LAUNCHED"),
        Column::Whole("HELD SINCE"),
        Column::Whole("LAST RENEWED"),
    ])
    .keeping("MARK");
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
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_is_whole_on_a_terminal_of_80_columns() {
        let worker = WorkerBody {
            pool: "workers-10".into(),
            number: 1_023,
            owner: Some("ids-1.production.example.com".into()),
            host: Some("ids-1-6d4cf56db6-x2vkq".into()),
            process: Some(4_194_304),
            launched: Some("2026-11-29T09:12:00.000Z".into()),
            term: 4_294_967_297,
            mark: "2026-11-29T10:42:47.123Z".into(),
            held_since: None,
            last_renewed: None,
            live: true,
            own: false,
            excluded: false,
            external: false,
        };
        let (_, rows) = table(&[worker]).lines(Some(80));
        assert!(rows[0].ends_with(" 2026-11-29T10:42:47.123Z"), "{rows:?}");
        assert!(rows[0].starts_with("workers-10    1023  held   ids-1.product"), "{rows:?}");
    }
}
