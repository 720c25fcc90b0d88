//! What an operator does with a store that is in doubt, or was replaced: collects what is known of it, and moves it past
//! all of that.
//!
//! Nothing here changes a store: [`Recovery::plan`] says how far it is to be moved, and [`Store::fast_forward`] moves it.

mod journals;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use snowmint_core::{Rfc3339, UnixMillis};

use crate::capability::ClockOf;
use crate::error::{Error, ErrorKind, Result};
use crate::history::{Doubt, Known, Standing};
use crate::journal::Record;
use crate::lease::Mark;
use crate::node::{BUILTIN_COUNTERS, BUILTIN_DEFAULT, BUILTIN_NUMBERS, NodeSettings};
use crate::spec::{Minted, Plan, SegmentPlan, SnowflakePlan, SourceSpec, Stripe};
use crate::store::{FastForward, Store};
pub use journals::JournalState;
use plan::Going;

/// So far ahead of the clock a mark is named without more ado.
const DAY_MS: u64 = 86_400_000;

/// What an operator names, beside what is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryRequest {
    /// Worker marks go at least to this time.
    pub mark: Option<UnixMillis>,
    /// That time is meant, though it is more than a day ahead of the clock.
    pub far_ahead: bool,
    /// Sources, and the next number of each, at least.
    pub segments: Vec<(String, Mark)>,
    /// The journals that are lost, by their IDs.
    pub without: Vec<String>,
}

/// The sources that a configuration defines, and what nodes are told that mint from them.
#[derive(Clone, Copy, Debug)]
pub struct Configured<'a> {
    /// By name, without those that are there without being defined.
    pub sources: &'a BTreeMap<String, SourceSpec>,
    /// What the nodes are told.
    pub settings: &'a NodeSettings,
}

/// What is known of a store before it is moved.
#[derive(Debug)]
pub struct Recovery {
    /// What the store says, and which journals those that were read know of.
    standing: Standing,
    /// What the store says alone, if it is in doubt.
    planned_on: Option<Standing>,
    /// The journals that were read beside it.
    read: Vec<Record>,
    /// The journals that are lost, as an operator has named them.
    without: Vec<String>,
    now: UnixMillis,
    /// Up to when nodes of this configuration may have been granted time by now.
    reached: UnixMillis,
    /// What sources are by the definitions that the store goes on with.
    going: Going,
    /// All sources of the store, also those that were deleted; none if it does not say.
    stored: Option<BTreeSet<String>>,
    /// Why not.
    unlisted: Option<Error>,
    /// The sources that a start with this configuration defines.
    configured: BTreeSet<String>,
}

impl Recovery {
    /// Looks at a store, if there is one, and at journals of it that were `read`; changes nothing. `now` is the caller's
    /// clock.
    ///
    /// # Errors
    /// As the store says, when it does not say how it stands; `Invalid` when a journal is to be left out that nobody knows.
    pub async fn look(
        store: Option<&dyn Store>,
        read: Vec<Record>,
        without: &[String],
        configured: Configured<'_>,
        now: UnixMillis,
    ) -> Result<Self> {
        let mut found = Self {
            standing: Standing::default(),
            planned_on: None,
            read,
            without: without.to_vec(),
            now,
            reached: now,
            going: Going::default(),
            stored: Some(BTreeSet::new()),
            unlisted: None,
            configured: configured.names().map(str::to_owned).collect(),
        };
        let mut plans = configured.plans();
        let mut clock = ClockOf::Caller;
        if let Some(store) = store {
            clock = store.capabilities().clock;
            found.standing = store.standing().await?;
            found.planned_on = found.doubt().is_some().then(|| found.standing.clone());
            plans.extend(found.list(store).await?);
            if let Some(theirs) = store.now().await? {
                found.now = now.max(theirs);
            }
        }
        found.reached = found.now.saturating_add(configured.settings.reach_ms(&plans, clock));
        found.add_configured(configured);
        found.hear_journals()?;
        Ok(found)
    }

    /// What the store has lost it does not say; what is left of it helps. Damaged rows are left to the configuration.
    async fn list(&mut self, store: &dyn Store) -> Result<Vec<SnowflakePlan>> {
        let catalog = match store.list().await {
            Ok(catalog) => catalog,
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt { .. }) => {
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
            let spec = SourceSpec::from_json(&stored.spec).ok();
            let Some(plan) = spec.as_ref().and_then(snowflake) else { continue };
            if matches!(plan.minted, Minted::Store { .. }) {
                self.going.minting.push((stored.name.clone(), plan.layout));
            }
            plans.push(plan);
        }
        self.stored = Some(catalog.definitions.into_iter().map(|stored| stored.name).collect());
        Ok(plans)
    }

    /// What is only going to be defined goes past the same time, and by its own stripe.
    fn add_configured(&mut self, configured: Configured<'_>) {
        for (name, spec) in configured.sources {
            if self.stored.as_ref().is_none_or(|stored| stored.contains(name)) {
                continue;
            }
            match spec.check() {
                Ok(Plan::Snowflake(SnowflakePlan {
                    minted: Minted::Store { .. }, layout, ..
                })) => {
                    self.going.minting.push((name.clone(), layout));
                }
                Ok(Plan::Segment(SegmentPlan { stores, stripe, .. })) if stores.is_empty() => {
                    self.going.stripes.insert(name.clone(), stripe);
                }
                _ => {}
            }
        }
    }

    /// The later of the caller's clock and the store's.
    #[must_use]
    pub const fn now(&self) -> UnixMillis {
        self.now
    }

    /// How far ahead of the clock nodes of this configuration can have minted, from its sources and the store's.
    #[must_use]
    pub const fn reach_ms(&self) -> u64 {
        self.reached.since(self.now)
    }

    /// Why the store is in doubt; none when it is not.
    #[must_use]
    pub const fn doubt(&self) -> Option<&Doubt> {
        self.standing.doubt.as_ref()
    }

    /// Why the sources of the store could not be read, so that those of the configuration count; none when they were.
    #[must_use]
    pub const fn unlisted(&self) -> Option<&Error> {
        self.unlisted.as_ref()
    }

    /// All that is known.
    #[must_use]
    pub fn known(&self) -> Known {
        let mut known = self.standing.known.clone();
        self.read.iter().for_each(|record| known.merge(&record.known()));
        known
    }

    /// How far the store is to be moved. Nothing is moved back.
    ///
    /// # Errors
    /// `Invalid` for a time that is more than a day ahead and not said to be meant, and for a source that nobody knows: a
    /// slip would leave the source that was meant where it is.
    pub fn plan(&self, request: &RecoveryRequest) -> Result<FastForward> {
        let refused = |kind| Error::new("recover", kind);
        check_near(request, self.now).map_err(refused)?;
        self.check_named(&request.segments).map_err(refused)?;
        let forward =
            plan::plan(&self.known(), request.mark, &request.segments, &self.going, self.reached);
        let forget_journals = self.without.clone();
        Ok(FastForward { forget_journals, planned_on: self.planned_on.clone(), ..forward })
    }

    fn check_named(&self, named: &[(String, Mark)]) -> Result<(), ErrorKind> {
        let known = self.known();
        let is_seen = |name: &String| known.ends.contains_key(name) || self.has(name);
        match named.iter().find(|(name, _)| !is_seen(name)) {
            None => Ok(()),
            Some((name, mark)) => Err(ErrorKind::NotFound {
                what: format!(
                    "source {name:?}, to go on at {mark}, neither in the store nor in the configuration or a \
                     journal: define it in a file as it was ([sources.{name}])"
                ),
            }),
        }
    }

    /// The sources that are moved and that nobody defines, with their next numbers. Each name is kept like that of a
    /// deleted source: defined again (as it was, with the same first, offset and increment), it goes on there.
    pub fn undefined<'a>(
        &'a self,
        forward: &'a FastForward,
    ) -> impl Iterator<Item = &'a (String, Mark)> {
        forward.segments.iter().filter(|(name, _)| !self.has(name))
    }

    /// Whether the store has a source, or the configuration defines it.
    fn has(&self, name: &String) -> bool {
        let is_stored = self.stored.as_ref().is_none_or(|stored| stored.contains(name));
        is_stored || self.configured.contains(name)
    }

    /// Whether the configuration defines what the store does not have.
    #[must_use]
    pub fn lacks_sources(&self) -> bool {
        self.configured.iter().any(|name| self.lacks(name))
    }

    /// Whether the store does not have a source.
    #[must_use]
    pub fn lacks(&self, name: &str) -> bool {
        self.stored.as_ref().is_some_and(|stored| !stored.contains(name))
    }
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

    /// The snowflake sources that are defined.
    fn plans(self) -> Vec<SnowflakePlan> {
        let builtin = SourceSpec::default();
        let builtin = self.settings.builtin.then_some(&builtin);
        self.sources.values().chain(builtin).filter_map(snowflake).collect()
    }
}

fn snowflake(spec: &SourceSpec) -> Option<SnowflakePlan> {
    match spec.check() {
        Ok(Plan::Snowflake(plan)) => Some(plan),
        _ => None,
    }
}

/// Refuses a slip in a year: nothing lowers a mark again.
fn check_near(request: &RecoveryRequest, now: UnixMillis) -> Result<(), ErrorKind> {
    let Some(mark) = request.mark else { return Ok(()) };
    let ahead_ms = mark.since(now);
    if request.far_ahead || ahead_ms <= DAY_MS {
        return Ok(());
    }
    let (mark, days) = (Rfc3339(mark), ahead_ms / DAY_MS);
    Err(ErrorKind::Invalid {
        what: format!(
            "the mark {mark} is {days} days ahead of this clock, where one is the most that is taken for meant: no worker \
             number mints before that time, and nothing lowers a mark again. Set the clock right, name an earlier \
             time, or say that it is meant (--far-ahead, \"far_ahead\": true)"
        ),
    })
}
