//! Recovery by an operator of a store that is in doubt, or was replaced: collects everything known
//! of it, and moves it past all of that.
//!
//! Nothing here changes a store: [`Recovery::plan`] computes how far to move it, and
//! [`Store::fast_forward`] moves it.

mod compare_journal;
mod confirmed;
mod continue_at;
mod copies;
mod journals;
mod plan;
mod reports;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use snowmint_core::{Rfc3339, UnixMillis};

use crate::error::{Error, ErrorKind, Result};
use crate::ids::Mark;
use crate::journal::Inspected;
use crate::model::fast_forward::FastForward;
use crate::model::history::{Doubt, Evidence, Known, Standing};
use crate::model::stripe::Stripe;
use crate::node::builtin::{BUILTIN_COUNTERS, BUILTIN_DEFAULT, BUILTIN_NUMBERS};
use crate::node::settings::NodeSettings;
use crate::sources::Keyrings;
use crate::spec::{MinterPlan, Plan, SnowflakePlan, SourceSpec};
use crate::store::Store;
use crate::store::capability::ClockOf;
pub use compare_journal::compare_journal;
pub use continue_at::ContinueAt;
use continue_at::{DAY_MS, Target};
pub use journals::JournalState;
use plan::Going;
pub use reports::Reports;

/// Values that an operator adds to what is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryRequest {
    /// Time to which worker marks go at least.
    pub mark: Option<UnixMillis>,
    /// Whether that time is intended though it is more than a day ahead of the clock; and numbers
    /// that skip most of a source, or days of serials.
    pub far_ahead: bool,
    /// Whether no ID in use has reached `mark`, which is needed: marks of journals more than a day
    /// ahead of the clock are left out.
    pub no_ids_ahead: bool,
    /// Number that no counter has exceeded, counted from 1 whatever its start; all counters
    /// continue above it. Needed where the count of earlier recoveries may be lost.
    pub counters_above: Option<u64>,
    /// Segment sources, each with the value from which it continues at least.
    pub segments: Vec<(String, ContinueAt)>,
    /// IDs of the journals that are lost.
    pub without: Vec<String>,
    /// Whether the read journals have all that their processes knew, though they may be copies.
    pub journals_are_complete: bool,
}

impl RecoveryRequest {
    /// Returns whether it names values to move to.
    #[must_use]
    pub const fn has_values(&self) -> bool {
        self.mark.is_some() || !self.segments.is_empty()
    }
}

/// Sources of a configuration, and the settings of the nodes that mint from them.
#[derive(Clone, Copy, Debug)]
pub struct Configured<'a> {
    /// Sources by name, without the built-in ones.
    pub sources: &'a BTreeMap<String, SourceSpec>,
    /// Settings of the nodes.
    pub settings: &'a NodeSettings,
    /// Namespace, a part of what disguises depend on.
    pub namespace: &'a str,
}

/// Knowledge about a store before it is moved.
#[derive(Debug)]
pub struct Recovery {
    /// State from the store, with the reports that count and the journals that the read journals
    /// name.
    standing: Standing,
    /// Whether the store's servers may run: they report what they know while the store is in doubt,
    /// and nothing that they know is lost while it is not.
    runs: bool,
    /// State from the store alone, with all of its reports; `None` without a store.
    planned_on: Option<Standing>,
    /// Journals that were read from files.
    read: Vec<Inspected>,
    /// IDs of the lost journals, as named by an operator.
    without: Vec<String>,
    /// IDs of journals that an earlier recovery has set aside.
    set_aside: Vec<String>,
    now: UnixMillis,
    /// Time up to which nodes of this configuration may have windows by now.
    reached: UnixMillis,
    /// Properties of sources by the definitions that stay in force.
    going: Going,
    /// All sources of the store, deleted ones included; `None` if they could not be read.
    stored: Option<BTreeSet<String>>,
    /// Error of reading them.
    unlisted: Option<Error>,
    /// Sources that a start with this configuration defines.
    configured: BTreeSet<String>,
    namespace: String,
    /// Whether the store has counters: a secondary store has none.
    has_counters: bool,
    keyrings: Keyrings,
}

impl Recovery {
    /// Reads a store, if it exists, and takes its `reports` and the `read` journals of it; changes
    /// nothing. `now` is the caller's clock.
    ///
    /// # Errors
    /// The store's error when its state cannot be read; `Invalid` when a journal to leave out is
    /// unknown. `Invalid`, too, when a read journal knows more than a store that is not in doubt,
    /// and its servers may run, or is of another store that this one cannot replace.
    pub async fn look(
        store: Option<&dyn Store>,
        reports: Reports,
        read: Vec<Inspected>,
        without: &[String],
        configured: Configured<'_>,
        now: UnixMillis,
    ) -> Result<Self> {
        let mut found = Self {
            standing: reports.counted,
            runs: reports.runs,
            planned_on: reports.stored,
            read,
            without: without.to_vec(),
            set_aside: Vec::new(),
            now,
            reached: now,
            going: Going::default(),
            stored: Some(BTreeSet::new()),
            unlisted: None,
            configured: configured.names().map(str::to_owned).collect(),
            namespace: configured.namespace.to_owned(),
            has_counters: configured.settings.secondary.is_none(),
            keyrings: configured.settings.keyrings.clone(),
        };
        let mut plans = configured.plans();
        let mut clock = ClockOf::Caller;
        if let Some(store) = store {
            clock = store.capabilities().clock;
            plans.extend(found.list(store).await?);
            if let Some(theirs) = store.now().await? {
                found.now = now.max(theirs);
            }
        }
        found.reached = found.now.saturating_add(configured.settings.reach_ms(&plans, clock));
        found.add_configured(configured);
        found.record_named_journals()?;
        found.record_of_others()?;
        if let Some(store) = store.filter(|_| found.is_whole()) {
            found.compare_read(store).await?;
        }
        Ok(found)
    }

    /// Reads what is left of the store's sources. Damaged rows are left to the configuration.
    async fn list(&mut self, store: &dyn Store) -> Result<Vec<SnowflakePlan>> {
        let catalog = match store.list().await {
            Ok(catalog) => catalog,
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt) => {
                (self.stored, self.unlisted) = (None, Some(error));
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let mut plans = Vec::new();
        for stored in &catalog.definitions {
            if let Some(stripe) = Stripe::of_text(&stored.spec) {
                self.going.stripes.insert(stored.name.clone(), stripe);
            }
            let spec = SourceSpec::from_stored(&stored.spec).ok();
            let plan = spec.and_then(|spec| spec.check().ok());
            self.going.numbers.insert(stored.name.clone(), plan.as_ref().is_none_or(has_numbers));
            let plan = match plan {
                Some(Plan::Snowflake(plan)) => plan,
                Some(Plan::Segment(plan)) => {
                    self.going.segments.insert(stored.name.clone(), plan);
                    continue;
                }
                _ => continue,
            };
            if matches!(plan.minter_plan, MinterPlan::Store { .. }) {
                self.going.minting.push((stored.name.clone(), plan.layout));
            }
            plans.push(plan);
        }
        self.stored = Some(catalog.definitions.into_iter().map(|stored| stored.name).collect());
        Ok(plans)
    }

    /// Sources that are not defined yet go past the same time, with their own stripes.
    fn add_configured(&mut self, configured: Configured<'_>) {
        if configured.settings.builtin {
            self.going.numbers.entry(BUILTIN_NUMBERS.to_owned()).or_insert(true);
        }
        for (name, spec) in configured.sources {
            if self.stored.as_ref().is_none_or(|stored| stored.contains(name)) {
                continue;
            }
            let plan = spec.check().ok();
            self.going.numbers.insert(name.clone(), plan.as_ref().is_none_or(has_numbers));
            match plan {
                Some(Plan::Snowflake(SnowflakePlan {
                    minter_plan: MinterPlan::Store { .. },
                    layout,
                    ..
                })) => {
                    self.going.minting.push((name.clone(), layout));
                }
                Some(Plan::Segment(plan)) => {
                    if plan.stores.is_empty() {
                        self.going.stripes.insert(name.clone(), plan.stripe);
                    }
                    self.going.segments.insert(name.clone(), plan);
                }
                _ => {}
            }
        }
    }

    /// Returns the later of the caller's clock and the store's.
    #[must_use]
    pub const fn now(&self) -> UnixMillis {
        self.now
    }

    /// Returns how far ahead of the clock, in milliseconds, nodes with these settings can have
    /// minted, from the configuration's sources and the store's.
    #[must_use]
    pub const fn reach_ms(&self) -> u64 {
        self.reached.since(self.now)
    }

    /// Returns why the store is in doubt; `None` when it is not.
    #[must_use]
    pub const fn doubt(&self) -> Option<&Doubt> {
        self.standing.doubt.as_ref()
    }

    /// Returns whether the store has all that its servers know, which may run.
    const fn is_whole(&self) -> bool {
        self.runs && self.standing.doubt.is_none()
    }

    /// Returns why the store's sources could not be read, so that the configuration's count; `None`
    /// when they were read.
    #[must_use]
    pub const fn unlisted(&self) -> Option<&Error> {
        self.unlisted.as_ref()
    }

    /// Returns the merged knowledge of all reports and read journals.
    #[must_use]
    pub fn known(&self) -> Known {
        let mut known = self.standing.known.clone();
        self.read.iter().for_each(|read| known.merge(&read.record.known()));
        known
    }

    /// Plans how far the store is moved. Nothing is moved back. A store that is not in doubt, and
    /// whose servers may run, has all that they know: it is moved to the requested values alone.
    ///
    /// # Errors
    /// `Invalid` for an unconfirmed time more than a day ahead, and for a value from which a source
    /// cannot mint or that counters cannot pass. `Invalid`, too, when a store that is not in doubt
    /// is to forget a journal or move its counters. `NotFound` for an unknown source: a misspelled
    /// name would leave the intended source unmoved.
    pub fn plan(&self, request: &RecoveryRequest) -> Result<FastForward> {
        check_near(request, self.now)?;
        self.check_left_out(request)?;
        self.check_confirmed(request)?;
        self.check_named(&request.segments)?;
        let next = |(name, value): &(String, ContinueAt)| {
            let (plan, far_ahead) = (self.going.segments.get(name), request.far_ahead);
            let (namespace, keyrings, now) = (&*self.namespace, &self.keyrings, self.now);
            let target = Target { namespace, name, plan, keyrings, now, far_ahead };
            Ok((name.clone(), target.next(value)?))
        };
        let segments: Vec<_> = request.segments.iter().map(next).collect::<Result<_>>()?;
        let mark = request.mark;
        // No journal is forgotten unless the store moves past all that it knows.
        let forward = if self.is_whole() {
            let marks_at_least = mark.map_or(Mark::ZERO, Mark::from);
            FastForward { marks_at_least, segments, values_only: true, ..FastForward::default() }
        } else {
            let forget_journals = [&*self.without, &*self.set_aside].concat();
            let known = self.counted(request);
            let forward = plan::plan(&known, mark, &segments, &self.going, self.reached);
            FastForward { forget_journals, ..forward }
        };
        let (planned_on, same_server) = (self.planned_on.clone(), self.runs);
        Ok(FastForward { planned_on, same_server, ..forward })
    }

    fn check_named(&self, named: &[(String, ContinueAt)]) -> Result<()> {
        let known = self.known();
        let is_seen = |name: &String| known.ends.contains_key(name) || self.has(name);
        match named.iter().find(|(name, _)| !is_seen(name)) {
            None => Ok(()),
            Some((name, value)) => Err(Error::not_found(format!(
                "source {name:?} (to continue at {value}) is in no store, configuration or journal; \
                 define it in a file as it was ([sources.{name}])"
            ))),
        }
    }

    /// Returns the moved sources that have no definition, with their next numbers. Each name is
    /// kept like that of a deleted source. When it is defined again (as before, with the same
    /// first, offset and increment), it continues there.
    pub fn undefined<'a>(
        &'a self,
        forward: &'a FastForward,
    ) -> impl Iterator<Item = &'a (String, Mark)> {
        forward.segments.iter().filter(|(name, _)| !self.has(name))
    }

    /// Returns whether the store has a source, or the configuration defines it.
    fn has(&self, name: &String) -> bool {
        let is_stored = self.stored.as_ref().is_none_or(|stored| stored.contains(name));
        is_stored || self.configured.contains(name)
    }

    /// Returns whether the configuration defines a source that the store does not have.
    #[must_use]
    pub fn lacks_sources(&self) -> bool {
        self.configured.iter().any(|name| self.lacks(name))
    }

    /// Returns whether the store lacks a source.
    #[must_use]
    pub fn lacks(&self, name: &str) -> bool {
        self.stored.as_ref().is_some_and(|stored| !stored.contains(name))
    }
}

/// Accepts the server that has a store now, in the place of the one that wrote it: a promoted
/// replica, or a run of Redis that may lack something. Puts the store in doubt in the same step, so
/// that its servers report, and a recovery can move it. Changes nothing where the server is the one
/// that wrote the store. An operator vouches that the former server takes no more writes.
///
/// # Errors
/// Those of [`Store::standing`] and [`Store::doubt`].
pub async fn accept_other_server(store: &dyn Store) -> Result<()> {
    let id = store.standing().await?.id;
    store.doubt(&Doubt::of_other_server(0), &Evidence::of_operator(id)).await
}

impl<'a> Configured<'a> {
    fn names(self) -> impl Iterator<Item = &'a str> {
        let builtin: &[&str] = if self.settings.builtin {
            &[BUILTIN_DEFAULT, BUILTIN_NUMBERS, BUILTIN_COUNTERS]
        } else {
            &[]
        };
        builtin.iter().copied().chain(self.sources.keys().map(String::as_str))
    }

    /// Returns the snowflake sources of the configuration.
    fn plans(self) -> Vec<SnowflakePlan> {
        let builtin = SourceSpec::default();
        let builtin = self.settings.builtin.then_some(&builtin);
        self.sources.values().chain(builtin).filter_map(SourceSpec::snowflake).collect()
    }
}

/// Returns whether a source has numbers in its own store.
const fn has_numbers(plan: &Plan) -> bool {
    matches!(plan, Plan::Segment(plan) if plan.stores.is_empty())
}

/// Returns by how many days a mark lies ahead of the clock, if by more than one. An operator may
/// have mistyped the year, and nothing lowers a mark again.
#[must_use]
pub const fn days_too_far_ahead(mark: UnixMillis, now: UnixMillis) -> Option<u64> {
    let ahead_ms = mark.since(now);
    if ahead_ms > DAY_MS { Some(ahead_ms / DAY_MS) } else { None }
}

/// Rejects a mistyped year.
fn check_near(request: &RecoveryRequest, now: UnixMillis) -> Result<()> {
    let Some(mark) = request.mark.filter(|_| !request.far_ahead) else { return Ok(()) };
    let Some(days) = days_too_far_ahead(mark, now) else { return Ok(()) };
    let mark = Rfc3339(mark);
    Err(Error::invalid(format!(
        "mark {mark} is {days} days ahead of this clock, maximum 1; correct the clock or the time, \
         or confirm it (--far-ahead, \"far_ahead\": true): nothing lowers a mark"
    )))
}
