//! Output about a store that is or would be moved.

use std::path::{Path, PathBuf};

use serde_json::Value;
use snowmint_coord::recovery::JournalState;
use snowmint_wire::error::Code;
use snowmint_wire::http::{JournalBody, RecoveryBody};

use crate::terminal::exit::{Failure, Outcome, complain};
use crate::terminal::output::Output;
use crate::terminal::plural::counted;

pub(super) const NOTHING_TO_RECOVER: &str = "the store is not in doubt: nothing to recover. After a \
    restore, repeat this once a server is not ready. If servers reject the store after a failover, repeat this with \
    --other-server. If a server knows more than the store, its /readyz names the command for it";

/// Notice before values of a store are raised that is not in doubt.
pub(super) const VALUES_ONLY: &str = "the store is not in doubt: only the values that are named are raised, and no \
    journal is asked. This does not replace the recovery after a restore: run the command again once a server is not \
    ready";

/// Notice about a server that is left out, which may be frozen or cut off from the store.
const LEFT_OUT: &str = "a process that is left out must not run: stop it. One that still runs issues prefetched \
    numbers, which may come twice, until its next call of the store returns: within about 1 s (a third of \
    counters.lease). While it does not reach the store, it has them for about 10 s of its usual demand";

/// Output, for people as results come, for machines at the end.
pub(super) struct Recovered {
    out: Output,
    json: bool,
}

impl Recovered {
    pub(super) fn new(json: bool) -> Self {
        Self { out: Output::new(), json }
    }

    /// Prints the journals and the plan, before it is carried out.
    pub(super) fn plan(&mut self, body: &RecoveryBody) -> Outcome {
        for name in &body.undefined {
            let next = body.segments.get(name).map_or("there", String::as_str);
            complain(format_args!(
                "a journal has seen numbers of source {name:?}, which neither the store nor the configuration has. The \
                 store keeps its name, as of a deleted source. Defined again with the same first, offset and increment, \
                 it continues at {next}"
            ));
        }
        let left_out = JournalState::LeftOut.to_string();
        if body.journals.iter().any(|journal| journal.state.starts_with(&left_out)) {
            complain(LEFT_OUT);
        }
        if self.json {
            return Ok(());
        }
        for JournalBody { id, owner, host, last_seen, state } in &body.journals {
            let owner = if owner.is_empty() { "an unnamed owner" } else { owner };
            self.out.line(format_args!(
                "journal {id} of {owner} on {host}, last seen {last_seen}: {state}"
            ))?;
        }
        if let Some(mark) = &body.marks_at_least {
            self.out.line(format_args!("worker marks: at least {mark}"))?;
            self.out.line(format_args!("minting by worker numbers can begin at {mark}"))?;
        }
        for (name, next) in &body.segments {
            self.out.line(format_args!("next number of {name}: at least {next}"))?;
        }
        if let Some(writes) = &body.writes_at_least {
            self.out.line(format_args!("writes: at least {writes}"))?;
        }
        self.out.flush()
    }

    /// Ends a dry run: the result shows whether anything is missing.
    pub(super) fn looked(&mut self, body: &RecoveryBody) -> Outcome {
        complain("nothing was changed (--dry-run)");
        self.print(body, None)?;
        body.unsaid
            .as_ref()
            .map_or(Ok(()), |unsaid| Err(Failure::refused(Code::StoreRolledBack, unsaid)))
    }

    /// Ends the acceptance of another server, which is followed by reports.
    pub(super) fn accepted(&mut self, body: &RecoveryBody) -> Outcome {
        complain(
            "the server is accepted, the store is in doubt, and nothing was moved: its servers report now; \
             run the command again without --other-server",
        );
        self.print(body, None)
    }

    /// Prints the store after the move.
    pub(super) fn stored(&mut self, body: &RecoveryBody) -> Outcome {
        if let (false, Some(store)) = (self.json, &body.store) {
            self.out.line(format_args!(
                "store: {} with {}",
                store.id,
                counted(&store.writes, "write")
            ))?;
        }
        self.out.flush()
    }

    /// Ends the output, for machines with all of it.
    /// `own` is the one of the paths `aside` that this directory's journal has now.
    pub(super) fn done(
        &mut self,
        body: &RecoveryBody,
        aside: &[PathBuf],
        own: Option<&Path>,
    ) -> Outcome {
        for aside in aside.iter().filter(|_| !self.json) {
            self.out.line(format_args!("journal: set aside as {}", aside.display()))?;
        }
        self.print(body, own)
    }

    fn print(&mut self, body: &RecoveryBody, aside: Option<&Path>) -> Outcome {
        if self.json {
            let mut all = serde_json::to_value(body).map_err(|error| {
                Failure::internal(format_args!("result cannot be written: {error}"))
            })?;
            if let (Value::Object(all), Some(aside)) = (&mut all, aside) {
                all.insert("journal_set_aside".into(), aside.display().to_string().into());
            }
            self.out.json(&all)?;
        }
        self.out.flush()
    }
}
