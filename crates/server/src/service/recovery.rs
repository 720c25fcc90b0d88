//! Recovery of a store in doubt, through any server of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmint_coord::error::chain;
use snowmint_coord::recovery::{Recovery, RecoveryRequest};
use snowmint_coord::spec::SourceSpec;
use snowmint_coord::{FastForward, Mark, StoreIdentity};
use snowmint_core::{Rfc3339, UnixMillis};
use snowmint_wire::error::Code;
use snowmint_wire::http;

use super::state::Service;
use crate::access::Right;
use crate::error::Error;

impl Service {
    /// Sets the sources of the configuration: they decide readiness, and a recovery defines those
    /// that the store has lost.
    pub fn set_configured(&self, sources: BTreeMap<String, SourceSpec>) {
        self.node.set_configured(sources.keys().cloned());
        self.configured.store(Arc::new(sources));
    }

    /// Returns the reports on the store, and the target of a recovery; unless the request is a dry
    /// run, moves it there, and ends the doubt. With `other_server` it accepts the server that has
    /// the store now, puts the store in doubt, and moves nothing.
    ///
    /// # Errors
    /// Without the admin right over all sources; for an invalid request; `StoreRolledBack` while
    /// journals are missing, except for a dry run; errors of
    /// [`recover`](snowmint_coord::Node::recover).
    pub(crate) async fn recover(
        &self,
        request: http::RecoveryRequest,
    ) -> Result<http::RecoveryBody, Error> {
        let dry_run = request.dry_run;
        let recovered = self.try_recover(request).await;
        recovered.inspect_err(|error| {
            if !dry_run {
                self.audit_rejection("store not recovered", error);
            }
        })
    }

    async fn try_recover(
        &self,
        request: http::RecoveryRequest,
    ) -> Result<http::RecoveryBody, Error> {
        self.caller().may_over_all(Right::Admin)?;
        let service = self.clone();
        // Runs to its end, and into the audit trail, even if the caller leaves.
        let recovering = tokio::spawn(async move { service.recover_now(request).await });
        recovering.await.map_err(|error| {
            let message = format!("internal error: recovery ended: {error}; please report it");
            Error::new(Code::Internal, message)
        })?
    }

    async fn recover_now(
        &self,
        request: http::RecoveryRequest,
    ) -> Result<http::RecoveryBody, Error> {
        let (dry_run, other_server) = (request.dry_run, request.other_server);
        let secondary = request.secondary.clone();
        let request = understood(request)?;
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
        if dry_run || other_server || recovery.doubt().is_none() {
            return Ok(recovery_body(&recovery, &forward, None));
        }
        if recovery.unsaid().is_none() {
            node.noticed_doubt().await?;
            // A member may have reported meanwhile.
            (recovery, forward) = look().await?;
        }
        if let Some(unsaid) = recovery.unsaid() {
            return Err(Error::new(Code::StoreRolledBack, unsaid));
        }
        let after = node.recover(&forward).await?;
        let mut body = recovery_body(&recovery, &forward, Some(&after));
        self.audit_store_move(&format!("{}recovered: {}", which(), moved_to(&body)));
        if recovery.lacks_sources() {
            let refused = self.define_lost(&recovery, &configured).await;
            body.undefined.extend(refused);
        }
        Ok(body)
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

/// Describes the target of a store's move, for the audit trail.
#[must_use]
pub fn moved_to(body: &http::RecoveryBody) -> String {
    let numbers: Vec<_> =
        body.segments.iter().map(|(name, next)| format!("{name}={next}")).collect();
    format!("worker marks at least {}, numbers {}", body.marks_at_least, numbers.join(" "))
}

fn understood(request: http::RecoveryRequest) -> Result<RecoveryRequest, Error> {
    let http::RecoveryRequest { dry_run, mark, far_ahead, segments, without, other_server, .. } =
        request;
    let moves = mark.is_some() || far_ahead || !segments.is_empty() || !without.is_empty();
    if other_server && (dry_run || moves) {
        let message = "other_server puts the store in doubt and moves nothing; leave out dry_run, \
                       mark, far_ahead, segments and without";
        return Err(Error::bad_request(message));
    }
    let time = |text: String| match text.parse() {
        Ok(Rfc3339(time)) => Ok(time),
        Err(error) => Err(Error::bad_request(format!("mark {text:?} is not a time: {error}"))),
    };
    let number = |(name, text): (String, String)| match http::number_in(&text) {
        Some(number) => Ok((name, Mark::new(number))),
        None => Err(Error::bad_request(format!(
            "number {text:?} of segment {name:?} is not a whole number below 2^64; correct it"
        ))),
    };
    Ok(RecoveryRequest {
        mark: mark.map(time).transpose()?,
        far_ahead,
        segments: segments.into_iter().map(number).collect::<Result<_, _>>()?,
        without,
    })
}

/// Returns the reports on a store, the target of its move, and its identity `after` the recovery.
#[must_use]
pub fn recovery_body(
    recovery: &Recovery,
    forward: &FastForward,
    after: Option<&StoreIdentity>,
) -> http::RecoveryBody {
    let time = |time: UnixMillis| Rfc3339(time).to_string();
    let journals = recovery.journals().map(|(journal, state)| http::JournalBody {
        id: journal.id.clone(),
        owner: journal.owner.clone(),
        host: journal.host.clone(),
        last_seen: time(UnixMillis::new(journal.seen_at_ms)),
        state: state.to_string(),
    });
    let next = |(name, mark): &(String, Mark)| (name.clone(), mark.get().to_string());
    http::RecoveryBody {
        doubt: recovery.doubt().map(|doubt| doubt.clone().into_error().to_string()),
        journals: journals.collect(),
        unsaid: recovery.unsaid(),
        marks_at_least: time(forward.marks_at_least.unix_millis()),
        segments: forward.segments.iter().map(next).collect(),
        undefined: recovery.undefined(forward).map(|(name, _)| name.clone()).collect(),
        writes_at_least: forward.writes_at_least.to_string(),
        done: after.is_some(),
        store: after.map(|identity| http::RecoveredBody {
            id: identity.store(),
            writes: identity.writes.to_string(),
        }),
    }
}
