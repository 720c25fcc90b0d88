//! Recovery of a store in doubt, through any server of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmint_coord::error::chain;
use snowmint_coord::recovery::{Recovery, RecoveryRequest};
use snowmint_coord::spec::SourceSpec;
use snowmint_coord::{FastForward, StoreIdentity};
use snowmint_core::{Rfc3339, UnixMillis};
use snowmint_wire::error::Code;

use super::state::Service;
use crate::access::Right;
use crate::error::Error;

/// A request for a recovery.
#[derive(Debug)]
pub(crate) struct RecoveryCall {
    /// Target of the move; or the mistake in it, which only callers with the right learn.
    pub(crate) request: Result<RecoveryRequest, Error>,
    /// Whether to move nothing.
    pub(crate) dry_run: bool,
    /// Secondary store to recover; `None`: the node's own.
    pub(crate) secondary: Option<String>,
    /// Whether to accept the server that has the store now, and to move nothing.
    pub(crate) other_server: bool,
}

/// Reports on a store, and what a recovery moved or would move.
#[derive(Debug)]
pub(crate) struct RecoveryOutcome {
    pub(crate) recovery: Recovery,
    pub(crate) forward: FastForward,
    /// Identity of the store afterwards; `None` when nothing was moved.
    pub(crate) after: Option<StoreIdentity>,
    /// Reason why it cannot be moved yet.
    pub(crate) unsaid: Option<String>,
    /// Sources that could not be defined.
    pub(crate) undefined: Vec<String>,
}

impl Service {
    /// Sets the sources of the configuration: they decide readiness, and a recovery defines those
    /// that the store has lost.
    pub fn set_configured(&self, sources: BTreeMap<String, SourceSpec>) {
        self.node.set_configured(sources.keys().cloned());
        self.configured.store(Arc::new(sources));
    }

    /// Returns the reports on the store, and the target of a recovery; unless the request is a dry
    /// run, moves it there, and ends the doubt. A store that is not in doubt is moved only to values
    /// that the request names. With `other_server` it accepts the server that has
    /// the store now, puts the store in doubt, and moves nothing.
    ///
    /// # Errors
    /// Without the admin right over all sources; for an invalid request; `StoreRolledBack` while
    /// journals are missing, except for a dry run; errors of
    /// [`recover`](snowmint_coord::Node::recover).
    pub(crate) async fn recover(&self, call: RecoveryCall) -> Result<RecoveryOutcome, Error> {
        let dry_run = call.dry_run;
        let recovered = self.try_recover(call).await;
        recovered.inspect_err(|error| {
            if !dry_run {
                self.audit_rejection("store not recovered", error);
            }
        })
    }

    async fn try_recover(&self, call: RecoveryCall) -> Result<RecoveryOutcome, Error> {
        self.caller().may_over_all(Right::Admin)?;
        let service = self.clone();
        // Runs to its end, and into the audit trail, even if the caller leaves.
        let recovering = tokio::spawn(async move { service.recover_now(call).await });
        recovering.await.map_err(|error| {
            let message = format!("internal error: recovery ended: {error}; please report it");
            Error::new(Code::Internal, message)
        })?
    }

    async fn recover_now(&self, call: RecoveryCall) -> Result<RecoveryOutcome, Error> {
        let RecoveryCall { request, dry_run, secondary, other_server } = call;
        let moves = request.as_ref().map_or(true, |it| *it != RecoveryRequest::default());
        if other_server && (dry_run || moves) {
            let message = "other_server puts the store in doubt and moves nothing; leave out \
                           dry_run and the values";
            return Err(Error::bad_request(message));
        }
        let request = request?;
        let which = || secondary.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        // The recovery of the node's own store determines the secondary stores.
        let (node, configured) = match &secondary {
            None => (self.node.clone(), self.configured.load_full()),
            Some(name) => (self.node.secondary(name).await?, Arc::default()),
        };
        let look = async || -> Result<(Recovery, FastForward), Error> {
            let recovery = node.recovery(&configured, &request.without).await?;
            if let Some(error) = recovery.unlisted() {
                return Err(error.clone().into());
            }
            let forward = recovery.plan(&request)?;
            Ok((recovery, forward))
        };
        if other_server {
            node.accept_other_server().await?;
            // Leaves its line whatever follows.
            self.audit_store_move(&format!("{}present database server accepted", which()));
        }
        let (mut recovery, mut forward) = look().await?;
        let is_asked = recovery.doubt().is_some() || request.has_values();
        if dry_run || other_server || !is_asked {
            let (after, unsaid, undefined) = (None, recovery.unsaid(&request), Vec::new());
            return Ok(RecoveryOutcome { recovery, forward, after, unsaid, undefined });
        }
        if recovery.doubt().is_some() && recovery.unsaid(&request).is_none() {
            node.noticed_doubt().await?;
            // A member may have reported meanwhile.
            (recovery, forward) = look().await?;
        }
        if let Some(unsaid) = recovery.unsaid(&request) {
            return Err(Error::new(Code::StoreRolledBack, unsaid));
        }
        let after = node.recover(&forward).await?;
        let how = if forward.values_only { "raised" } else { "recovered" };
        let moved = moved_to(&forward, &request);
        self.audit_store_move(&format!("{}{how}: {moved}", which()));
        let undefined = match recovery.lacks_sources() {
            true => self.define_lost(&recovery, &configured).await,
            false => Vec::new(),
        };
        let after = Some(after);
        Ok(RecoveryOutcome { recovery, forward, after, unsaid: None, undefined })
    }

    /// Defines the sources that the configuration has and the store lacked. Returns the failed
    /// definitions.
    async fn define_lost(
        &self,
        recovery: &Recovery,
        sources: &BTreeMap<String, SourceSpec>,
    ) -> Vec<String> {
        let refused = |name: &str, error: &str| {
            tracing::error!(
                source = name,
                error,
                "failed to define a source that the store had lost"
            );
        };
        if let Err(error) = self.node.define_builtin().await {
            refused("default, numbers, counters", &chain(&error).to_string());
        }
        let mut left = Vec::new();
        for (name, spec) in sources.iter().filter(|(name, _)| recovery.lacks(name)) {
            if let Err(error) = self.define(name, spec).await {
                refused(name, error.message());
                left.push(name.clone());
            }
        }
        left
    }
}

/// Describes the target of a store's move, and for what the operator vouches, for the audit trail.
#[must_use]
pub fn moved_to(forward: &FastForward, request: &RecoveryRequest) -> String {
    let marks = forward.raised_marks().map(|mark| Rfc3339(mark.unix_millis()));
    let marks = marks.map(|mark| format!("worker marks at least {mark}"));
    let numbers = forward.segments.iter().map(|(name, next)| format!("{name}={}", next.get()));
    let numbers: Vec<_> = numbers.collect();
    let numbers = (!numbers.is_empty()).then(|| format!("numbers at least {}", numbers.join(" ")));
    let counters = request.counters_above.map(|above| format!("counters above {above}"));
    let vouched = request.no_ids_ahead.then(|| "no IDs ahead".to_owned());
    let all = marks.into_iter().chain(numbers).chain(counters).chain(vouched);
    all.collect::<Vec<_>>().join(", ")
}

/// Parses the mark of a recovery.
///
/// # Errors
/// When it is not a time.
pub(crate) fn recovery_mark(text: Option<String>) -> Result<Option<UnixMillis>, Error> {
    let time = |text: String| match text.parse() {
        Ok(Rfc3339(time)) => Ok(time),
        Err(error) => Err(Error::bad_request(format!("mark {text:?} is not a time: {error}"))),
    };
    text.map(time).transpose()
}

#[cfg(test)]
mod tests {
    use snowmint_coord::Mark;

    use super::*;

    #[test]
    fn audit_line_of_a_move_names_only_raised_values() {
        let segments = vec![("a".to_owned(), Mark::new(7)), ("b".to_owned(), Mark::new(9))];
        let numbers = FastForward { segments, values_only: true, ..FastForward::default() };
        let moved_to = |forward: &FastForward| moved_to(forward, &RecoveryRequest::default());
        assert_eq!(moved_to(&numbers), "numbers at least a=7 b=9");
        let marks_at_least = Mark::new(1_795_952_102_485);
        let both = FastForward { marks_at_least, ..numbers.clone() };
        let marks = "worker marks at least 2026-11-29T11:35:02.485Z";
        assert_eq!(moved_to(&both), format!("{marks}, numbers at least a=7 b=9"));
        assert_eq!(moved_to(&FastForward { segments: Vec::new(), ..both }), marks);
        let counters_above = Some(9);
        let vouched = RecoveryRequest { no_ids_ahead: true, counters_above, ..Default::default() };
        let text = "numbers at least a=7 b=9, counters above 9, no IDs ahead";
        assert_eq!(super::moved_to(&numbers, &vouched), text);
    }
}
