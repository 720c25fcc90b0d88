//! What is known of a store before it is moved forward, and how far that moves it.

use std::collections::{BTreeMap, BTreeSet};

use snowmint_coord::journal::Record;
use snowmint_coord::node::{BUILTIN_COUNTERS, BUILTIN_DEFAULT, BUILTIN_NUMBERS};
use snowmint_coord::spec::{Minted, Plan, SnowflakePlan, SourceSpec};
use snowmint_coord::{
    ClockOf, END_MS, FastForward as Forward, Known as Reported, Mark, Standing, Ticks,
};
use snowmint_core::{Layout, UnixMillis};

use super::journals::Journals;
use crate::config::Config;
use crate::exit::{Failure, Outcome, complain};
use crate::node;
use crate::store;
use crate::when;

/// What a start defines by itself.
const BUILTIN: &[&str] = &[BUILTIN_DEFAULT, BUILTIN_NUMBERS, BUILTIN_COUNTERS];

/// What is known before anything is moved.
#[derive(Debug)]
pub(super) struct Known {
    /// Up to when servers of this configuration may have been granted time by now.
    pub(super) reached: UnixMillis,
    /// The sources that the store itself mints.
    pub(super) minting: Vec<(String, Layout)>,
    /// All sources of the store, also those that were deleted; none if it does not say.
    sources: Option<BTreeSet<String>>,
    /// The sources that a start with this configuration defines.
    configured: BTreeSet<String>,
    /// The journals, and what they know.
    pub(super) journals: Journals,
}

impl Known {
    /// Looks, and makes nothing.
    pub(super) async fn look(
        config: &Config,
        read: Vec<Record>,
        without: &[String],
    ) -> Outcome<Self> {
        let mut plans = configured_plans(config);
        let (mut minting, mut sources) = (Vec::new(), Some(BTreeSet::new()));
        let mut standing = Standing::default();
        let (mut clock, mut now) = (ClockOf::Caller, when::now());
        if let Some(store) = store::existing(config).await? {
            clock = store.capabilities().clock;
            standing = store.standing().await?;
            // What the store has lost it does not say; what is left of it helps.
            match store.list().await {
                Ok(catalog) => {
                    sources = Some(
                        catalog.definitions.iter().map(|stored| stored.name.clone()).collect(),
                    );
                    for stored in &catalog.definitions {
                        let spec = SourceSpec::from_json(&stored.spec).ok();
                        let Some(plan) = spec.as_ref().and_then(snowflake) else { continue };
                        if matches!(plan.minted, Minted::Store { .. }) {
                            minting.push((stored.name.clone(), plan.layout));
                        }
                        plans.push(plan);
                    }
                }
                Err(error) => {
                    sources = None;
                    complain(format_args!(
                        "the store's sources cannot be read, so those of the configuration count: {error}"
                    ));
                }
            }
            if let Ok(Some(theirs)) = store.now().await {
                now = now.max(theirs);
            }
            store.close().await?;
        }
        let reached = now.saturating_add(node::pacing(config).reach_ms(&plans, clock));
        // What is only going to be defined goes past the same time.
        let stored = |name: &String| sources.as_ref().is_none_or(|stored| stored.contains(name));
        let new = config.defined.iter().filter(|(name, _)| !stored(name));
        minting.extend(new.filter_map(|(name, defined)| {
            let plan = snowflake(&defined.spec)?;
            matches!(plan.minted, Minted::Store { .. }).then(|| (name.clone(), plan.layout))
        }));
        let configured = defined(config).map(str::to_owned).collect();
        let journals = Journals::new(standing, read, without)?;
        Ok(Self { reached, minting, sources, configured, journals })
    }

    /// Refuses a name that was given by hand and that nothing here knows, before anything is changed: a slip
    /// would leave the source that was meant where it is.
    pub(super) fn check_named(&self, named: &[(String, Mark)]) -> Outcome {
        let known = self.journals.known();
        let is_seen = |name: &String| known.ends.contains_key(name) || self.has(name);
        match named.iter().find(|(name, _)| !is_seen(name)) {
            None => Ok(()),
            Some((name, mark)) => Err(Failure::no(format!(
                "there is no source {name:?} that could go on at {mark}, neither in the store nor in the \
                 configuration or the journal: define it in a file as it was ([sources.{name}]), and name that \
                 file with --config"
            ))),
        }
    }

    /// Says which sources are moved that nobody defines.
    pub(super) fn tell_lost(&self, forward: &Forward) {
        for (name, mark) in forward.segments.iter().filter(|(name, _)| !self.has(name)) {
            complain(format_args!(
                "the journal has seen numbers of source {name:?}, which neither the store nor the configuration \
                 has: its name is kept like that of a deleted one, and if it is defined again (as it was, with \
                 the same first, offset and increment), it goes on at {mark}"
            ));
        }
    }

    /// Whether the store has a source, or the configuration defines it.
    fn has(&self, name: &String) -> bool {
        let is_stored = self.sources.as_ref().is_none_or(|stored| stored.contains(name));
        is_stored || self.configured.contains(name)
    }

    /// Whether the configuration defines what the store does not have.
    pub(super) fn lacks_sources(&self) -> bool {
        let stored = self.sources.as_ref();
        stored.is_some_and(|stored| !self.configured.is_subset(stored))
    }
}

/// The sources that a start with this configuration defines.
fn defined(config: &Config) -> impl Iterator<Item = &str> {
    let builtin = if config.sources.builtin { BUILTIN } else { &[] };
    builtin.iter().copied().chain(config.defined.keys().map(String::as_str))
}

/// Defines the sources of the configuration, as a start does.
pub(super) async fn define(config: &Config) -> Outcome {
    let node = node::open(config, node::Journal::Without).await?;
    Ok(node.end(END_MS).await?)
}

/// The snowflake sources that the configuration defines.
fn configured_plans(config: &Config) -> Vec<SnowflakePlan> {
    let builtin = SourceSpec::default();
    let defined = config.defined.values().map(|defined| &defined.spec);
    defined.chain(config.sources.builtin.then_some(&builtin)).filter_map(snowflake).collect()
}

fn snowflake(spec: &SourceSpec) -> Option<SnowflakePlan> {
    match spec.check() {
        Ok(Plan::Snowflake(plan)) => Some(plan),
        _ => None,
    }
}

/// What must be moved, and how far.
pub(super) fn plan(
    known: &Reported,
    mark: Option<UnixMillis>,
    segments: &[(String, Mark)],
    minting: &[(String, Layout)],
    reached: UnixMillis,
) -> Forward {
    let named = mark.map_or(Mark::ZERO, Mark::from);
    let marks_at_least = Mark::from(reached).max(Mark::new(known.mark)).max(named);
    let ends = known.ends.iter().map(|(name, end)| (name.clone(), Mark::new(*end)));
    let mut all: BTreeMap<_, _> = ends.collect();
    // What the store mints goes past the same time: its marks are numbers of ticks.
    let times = minting.iter().map(|(name, layout)| {
        let ticks = Ticks::of(layout, 0, 0, reached);
        let time = marks_at_least.unix_millis().since(layout.epoch());
        let next = (time / u64::from(layout.unit_ms())).saturating_add(1);
        (name.clone(), Mark::new(ticks.first_of(next.min(ticks.tick_max))))
    });
    for (name, mark) in segments.iter().cloned().chain(times) {
        let known = all.entry(name).or_insert(mark);
        *known = (*known).max(mark);
    }
    Forward {
        marks_at_least,
        segments: all.into_iter().collect(),
        writes_at_least: known.writes,
        recoveries_at_least: known.recoveries,
        ..Forward::default()
    }
}

#[cfg(test)]
mod tests {
    use snowmint_coord::Term;
    use snowmint_coord::journal::JournalLease;

    use super::*;

    #[test]
    fn everything_known_is_passed() {
        let reached = UnixMillis::new(1_000_000);
        let lease = |mark| JournalLease {
            pool: "workers-10".into(),
            slot: 0,
            term: Term::new(1),
            mark: Mark::new(mark),
            released: false,
            granted: Mark::ZERO,
        };
        let journal = Record {
            writes: 7,
            leases: vec![lease(5), lease(9_000_000)],
            segments: [("a".to_owned(), Mark::new(50))].into(),
            ..Record::default()
        };
        let named = [("a".to_owned(), Mark::new(40)), ("b".to_owned(), Mark::new(3))];
        let forward = plan(&journal.known(), None, &named, &[], reached);
        assert_eq!(forward.marks_at_least, Mark::new(9_000_000));
        assert_eq!(forward.writes_at_least, 7);
        assert_eq!(forward.segments, [("a".into(), Mark::new(50)), ("b".into(), Mark::new(3))]);
        let bare = plan(&Reported::default(), None, &[], &[], reached);
        assert_eq!(bare.marks_at_least, Mark::from(reached));
        let late = Some(UnixMillis::new(u64::MAX >> 1));
        let named = plan(&Reported::default(), late, &[], &[], reached);
        assert_eq!(named.marks_at_least, Mark::new(u64::MAX >> 1));
    }

    #[test]
    fn what_the_store_mints_goes_past_the_same_time() {
        let layout = Layout::REDIS;
        let reached = layout.epoch().saturating_add(5_000);
        let minting = [("orders".to_owned(), layout)];
        let forward = plan(&Reported::default(), None, &[], &minting, reached);
        assert_eq!(forward.segments, [("orders".to_owned(), Mark::new(5_001 << 10))]);
        let late = Some(UnixMillis::new(u64::MAX >> 1));
        let forward = plan(&Reported::default(), late, &[], &minting, reached);
        let last = layout.tick_max().get() << 10;
        assert_eq!(forward.segments, [("orders".to_owned(), Mark::new(last))], "and no further");
    }
}
