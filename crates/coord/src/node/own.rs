//! Own sources of a node: those of its configuration. They alone decide whether it is ready. Others
//! of the catalog were defined at run time, by anyone with a token for their names.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError};

use snowmint_core::{Rfc3339, UnixMillis};

use super::builtin::BUILTIN;
use super::own_sources::OwnSources;
use super::reason::Reason;
use super::state::{Node, NodeState};
use crate::error::{Error, ErrorKind, Result};
use crate::model::catalog::SourceState;
use crate::model::pool::pool_of;
use crate::sources::{SourceInner, StoreStatus};
use crate::spec::{Order, Plan, SourceSpec};

impl NodeState {
    /// Returns whether a source decides readiness.
    pub(super) fn is_own(&self, source: &str) -> bool {
        let own = self.own.own.load();
        own.as_ref().is_none_or(|own| own.has(source))
    }

    /// Returns the reasons of the own sources that the driver does not know.
    pub(super) fn own_reasons(&self) -> Vec<Reason> {
        let mut own = self.known_sources();
        own.retain(|source| self.is_own(&source.name) && is_enabled(source));
        let spent = own.iter().filter_map(|source| self.without_years(source));
        own.iter().filter_map(|source| without_stores(source)).chain(spent).collect()
    }

    /// Returns the reasons of the own sources whose first opening is not over.
    pub(super) fn opening_reasons(&self) -> Vec<Reason> {
        let opening = self.own.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = |name: &String| match self.known(name) {
            Some(source) => self.not_minting(&source),
            None => Some(Reason::new("not_claimed", format!("source {name} is not opened yet"))),
        };
        opening.iter().filter_map(reason).collect()
    }

    /// Returns the reason why a source cannot mint here, if any. It names the source.
    pub(super) fn not_minting(&self, source: &SourceInner) -> Option<Reason> {
        let reason = || {
            without_stores(source)
                .or_else(|| self.without_years(source))
                .or_else(|| self.without_window(source))
        };
        is_enabled(source).then(reason).flatten()
    }

    fn without_years(&self, source: &SourceInner) -> Option<Reason> {
        let defined = source.defined.load();
        let Plan::Snowflake(plan) = &defined.plan else { return None };
        let end = plan.layout.end();
        if self.ctx.clock.unix_ms() < end {
            return None;
        }
        let message = format!(
            "the layout of source {} ended at {} and has no IDs left: define another source, and \
             disable this one",
            source.name,
            Rfc3339(end)
        );
        Some(Reason::new("epoch_spent", message))
    }

    fn without_window(&self, source: &SourceInner) -> Option<Reason> {
        let defined = source.defined.load();
        let backing = source.backing.as_snowflake()?;
        let Plan::Snowflake(plan) = &defined.plan else { return None };
        if plan.order == Order::Global {
            return None;
        }
        let (name, pool) = (&source.name, pool_of(&plan.layout, self.settings.reuse).name);
        if backing.generators().is_some() {
            let until = backing.mark();
            let end = if until == UnixMillis::ZERO {
                "is not open yet".to_owned()
            } else {
                format!("ends at {}", Rfc3339(until))
            };
            let message = || format!("the window of source {name} in pool {pool} {end}");
            let is_spent = until <= self.ctx.clock.unix_ms();
            return is_spent.then(|| Reason::new("window_spent", message()));
        }
        let error = backing.error();
        let code = error.as_ref().map_or("not_claimed", |error| error.kind().code());
        let reason = error.as_ref().map_or(Cow::Borrowed("not claimed yet"), Error::message);
        let message = format!("source {name} has no worker number of pool {pool}: {reason}");
        Some(Reason::new(code, message).with_detail_of(error.as_ref()))
    }
}

fn is_enabled(source: &SourceInner) -> bool {
    source.defined.load().state == SourceState::Enabled
}

/// Returns the reason why no store of a multi-store source serves.
fn without_stores(source: &SourceInner) -> Option<Reason> {
    let stores = source.backing.as_multi_store()?.store_status();
    if stores.iter().any(|store| store.serving) {
        return None;
    }
    let (mut errors, mut details) = (Vec::new(), Vec::new());
    for status in stores {
        let StoreStatus { store, error, error_detail, .. } = status;
        details.extend(error_detail.map(|detail| format!("{store} {detail}")));
        errors.push(format!("{store}: {}", error.as_deref().unwrap_or("not called yet")));
    }
    let message = format!("no store of source {} serves ({})", source.name, errors.join("; "));
    let detail = (!details.is_empty()).then(|| details.join("; "));
    Some(Reason { detail, ..Reason::new("unavailable", message) })
}

impl Node {
    /// Defines the built-in sources, if the settings ask for them. [`Node::open`] calls this; if
    /// the node waits for a recovery, the caller of `open` must call it later.
    ///
    /// # Errors
    /// Any error of the store.
    pub async fn define_builtin(&self) -> Result<()> {
        if !self.core().settings.builtin {
            return Ok(());
        }
        for (name, kind) in BUILTIN {
            match self.define(name, &SourceSpec::of(kind)).await {
                // An operator has redefined or deleted it: the operator's definition stands.
                Err(error) if matches!(error.kind(), ErrorKind::Conflict) => {}
                // An earlier process has defined them.
                Err(error) if self.core().does_without(&error) => return Ok(()),
                defined => drop(defined?),
            }
        }
        Ok(())
    }

    /// Sets the sources of the configuration. They and the built-in ones, if the settings have
    /// these, become the node's own sources. Without this call every opened source is its own.
    pub fn set_configured(&self, names: impl IntoIterator<Item = String>) {
        let core = self.core();
        let own = OwnSources::new(names, core.settings.builtin);
        core.ctx.journal_budget.set_own(own.names.clone());
        core.own.own.store(Some(Arc::new(own)));
    }

    /// Announces that the own sources will be opened. While one of them is not open, the node is
    /// not ready, until [`Node::opening_of`] leaves it out.
    pub fn begin_opening(&self) {
        let core = self.core();
        let names = core.own.own.load().as_ref().map(|own| own.names.clone());
        self.opening_of(names.unwrap_or_default());
    }

    /// Sets the own sources whose first opening is not over; none once all were tried. Others
    /// decide readiness only from their opening on.
    pub fn opening_of(&self, names: impl IntoIterator<Item = String>) {
        let opening = &self.core().own.opening;
        *opening.lock().unwrap_or_else(PoisonError::into_inner) = names.into_iter().collect();
    }

    /// Returns whether a source decides this node's readiness.
    #[must_use]
    pub fn is_own(&self, source: &str) -> bool {
        self.core().is_own(source)
    }

    /// Returns the reasons of opened sources that are not the node's own and cannot mint here: at
    /// most `max`, each of a source that `is_shown`.
    #[must_use]
    pub fn not_minting_sources(&self, is_shown: impl Fn(&str) -> bool, max: usize) -> Vec<Reason> {
        let core = self.core();
        let others = core.known_sources().into_iter().filter(|source| !core.is_own(&source.name));
        let shown =
            |source: Arc<SourceInner>| core.not_minting(&source).filter(|_| is_shown(&source.name));
        others.filter_map(shown).take(max).collect()
    }

    /// Checks that a definition lets marks lead the clock by at most a window more than the own
    /// sources and the version `before` do. After a crash and after a recovery, all servers of the
    /// store may have to wait for the clock that long.
    ///
    /// # Errors
    /// `LimitExceeded`.
    pub fn check_reach(&self, before: Option<&SourceSpec>, after: &SourceSpec) -> Result<()> {
        let core = self.core();
        let (settings, clock) = (&core.settings, core.ctx.store.capabilities().clock);
        let Some(plan) = after.snowflake() else { return Ok(()) };
        let mut own = core.known_sources();
        own.retain(|source| core.is_own(&source.name));
        let own = own.iter().filter_map(|source| match &source.defined.load().plan {
            Plan::Snowflake(plan) => Some(plan.clone()),
            _ => None,
        });
        let own: Vec<_> = own.chain(SourceSpec::default().snowflake()).collect();
        let limit_ms = settings.reach_ms(&own, clock).saturating_add(settings.window_ms);
        let before = before.and_then(SourceSpec::snowflake);
        let before_ms = before.map(|plan| settings.reach_ms([&plan], clock));
        let limit_ms = limit_ms.max(before_ms.unwrap_or(0));
        let reach_ms = settings.reach_ms([&plan], clock);
        if reach_ms <= limit_ms {
            return Ok(());
        }
        Err(Error::limit_exceeded(format!(
            "definition lets worker marks lead the clock by {reach_ms} ms (unit of the layout, \
             lead_max), limit {limit_ms} ms (worker.window more than the configuration's sources); \
             shorten them, or use a token with \"admin *\""
        )))
    }
}
