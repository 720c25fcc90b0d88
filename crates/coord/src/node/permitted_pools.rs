//! Limits on what embedded clients may take through this node. A mark never goes back. So how far a
//! client may move one, and which pools exist, follows from this node's settings and the
//! definitions, not from the client's request.

use std::collections::BTreeMap;

use snowmint_core::UnixMillis;

use super::settings::{NodeSettings, PRESENCE_TTL_MS};
use super::source_info::read_spec;
use super::state::{Node, NodeState};
use crate::error::{Error, ErrorKind, Result, Verb};
use crate::ids::Mark;
use crate::machine::WindowPolicy;
use crate::model::catalog::{Definition, SourceState};
use crate::model::external::{KEEP_MS_MAX, is_external};
use crate::model::pool::{Pool, pool_of};
use crate::spec::MinterPlan;
use crate::store::Store;

/// Pool, and the demands of the sources that take their numbers from it.
#[derive(Clone, Debug)]
struct PermittedPool {
    pool: Pool,
    /// Longest tick.
    unit_ms: u64,
    /// Longest lead.
    lead_ms: u64,
}

/// Pools that follow from a store's definitions, and limits on the lead of their marks.
#[derive(Clone, Debug)]
pub struct PermittedPools {
    pools: BTreeMap<String, PermittedPool>,
    window_ms: u64,
    skew_ms: u64,
    /// Largest distance between clocks of the namespace.
    apart_ms: u64,
    /// Mark up to which an operator accepted leads.
    accepted_lead: Mark,
}

impl PermittedPools {
    fn new(settings: &NodeSettings, apart_ms: u64, accepted_lead: Mark) -> Self {
        let (window_ms, skew_ms) = (settings.window_ms, settings.clock_skew_max_ms);
        Self { pools: BTreeMap::new(), window_ms, skew_ms, apart_ms, accepted_lead }
    }

    /// Adds a source that is defined, enabled or disabled.
    fn add(&mut self, settings: &NodeSettings, definition: &Definition) {
        // A definition for a newer version adds nothing here.
        let plan = read_spec(definition).ok().and_then(|spec| spec.snowflake());
        let Some(plan) = plan else { return };
        if plan.minter_plan != MinterPlan::Process {
            return;
        }
        let pool = pool_of(&plan.layout, settings.reuse);
        let new = PermittedPool { pool, unit_ms: 1, lead_ms: 0 };
        let permitted = self.pools.entry(new.pool.name.clone()).or_insert(new);
        permitted.unit_ms = permitted.unit_ms.max(plan.layout.unit_ms().into());
        permitted.lead_ms = permitted.lead_ms.max(settings.made(&plan).lead_max_ms());
    }

    /// Returns whether a source takes its numbers from the pool of this name.
    #[must_use]
    pub fn has(&self, pool: &str) -> bool {
        self.pools.contains_key(pool)
    }

    /// Rejects a pool that no source takes its numbers from, or in another shape: the first client
    /// to name a pool would otherwise decide its shape for all later ones.
    ///
    /// # Errors
    /// `Invalid` when the pool or its shape is unknown.
    pub fn check(&self, pool: &Pool) -> Result<()> {
        let shown = |pool: &Pool| {
            let Pool { slots, group, reuse, .. } = pool;
            format!("{slots} numbers in groups of {group}, reuse {reuse:?}")
        };
        let message = match self.pools.get(&pool.name) {
            Some(permitted) if permitted.pool == *pool => return Ok(()),
            Some(permitted) => format!(
                "pool {:?} has {} here (worker.reuse and layout), requested {}; use the same \
                 settings",
                pool.name,
                shown(&permitted.pool),
                shown(pool)
            ),
            None => format!(
                "pool {:?} belongs to no source; define one with this layout first (right admin)",
                pool.name
            ),
        };
        Err(Error::invalid(message))
    }

    /// Returns how many numbers of a pool belong to one worker.
    #[must_use]
    pub fn group(&self, pool: &str) -> u64 {
        self.pools.get(pool).map_or(1, |permitted| u64::from(permitted.pool.group.max(1)))
    }

    /// Returns by how many milliseconds a client may move a mark of the pool ahead of `now`: as far
    /// as this node would, with the longest lead of the pool's sources. A lead that an operator has
    /// accepted is added. For the number of an external lease, the limit is the longest period of
    /// such a lease.
    #[must_use]
    pub fn ahead_max_ms(&self, pool: &str, now: UnixMillis) -> u64 {
        if is_external(pool) {
            return KEEP_MS_MAX.saturating_add(self.apart_ms);
        }
        let (unit_ms, lead_ms) =
            self.pools.get(pool).map_or((1, 0), |permitted| (permitted.unit_ms, permitted.lead_ms));
        let window_policy =
            WindowPolicy::new(self.window_ms, unit_ms, lead_ms, self.skew_ms, false);
        let accepted_ms = self.accepted_lead.unix_millis().since(now);
        window_policy.ahead_max_ms.saturating_add(accepted_ms)
    }
}

impl Node {
    /// Returns the pools that follow from the definitions of a store: of the primary store, or of a
    /// secondary one.
    ///
    /// # Errors
    /// Any error of the store.
    pub async fn permitted_pools(&self, store: &dyn Store) -> Result<PermittedPools> {
        let NodeState { ctx, settings, .. } = &**self.core();
        let catalog = ctx.timed_call(Verb::List, store.list()).await?;
        let accepted_lead = match ctx.timed_call(Verb::Ground, store.ground()).await {
            Ok(ground) => ground.accepted_lead,
            // A store of servers does not report it.
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported) => Mark::ZERO,
            Err(error) => return Err(error),
        };
        let apart_ms = settings.off_ms(store.capabilities().clock).saturating_mul(2);
        let mut permitted = PermittedPools::new(settings, apart_ms, accepted_lead);
        let defined = |definition: &&Definition| definition.state != SourceState::Deleted;
        catalog.definitions.iter().filter(defined).for_each(|it| permitted.add(settings, it));
        Ok(permitted)
    }

    /// Returns for how long a client may count as live without a renewal: the longer one of this
    /// node's time and the default.
    #[must_use]
    pub fn presence_max_ms(&self) -> u64 {
        self.core().settings.presence_ttl_ms.max(PRESENCE_TTL_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::pool::Reuse;
    use crate::model::segment::SegmentRow;

    fn definition(name: &str, spec: &str) -> Definition {
        Definition {
            name: name.into(),
            spec: spec.into(),
            identity: String::new(),
            version: 1,
            state: SourceState::Enabled,
            segment: SegmentRow::NEW,
        }
    }

    fn permitted(settings: &NodeSettings, specs: &[&str]) -> PermittedPools {
        let mut permitted = PermittedPools::new(settings, 40_000, Mark::ZERO);
        specs.iter().for_each(|spec| permitted.add(settings, &definition("it", spec)));
        permitted
    }

    const NOW: UnixMillis = UnixMillis::new(1_000_000);

    #[test]
    fn mark_lead_follows_settings_and_longest_lead() {
        let settings = NodeSettings::default();
        let ahead = |specs: &[&str]| permitted(&settings, specs).ahead_max_ms("workers-10", NOW);
        assert_eq!(ahead(&[]), 70_000);
        assert_eq!(ahead(&["{}"]), 75_000, "what docs/explanation/clocks.md says");
        assert_eq!(ahead(&["{}", r#"{"lead_max":"20s"}"#, r#"{"on_rollback":"fail"}"#]), 90_000);
        let slow = r#"{"layout":"time=31,worker=10,sequence=22,unit=60s"}"#;
        assert_eq!(ahead(&["{}", slow]), 375_000, "three ticks");
        // A source of another pool.
        let other = r#"{"layout":"time=41,worker=9,sequence=13","lead_max":"1h"}"#;
        assert_eq!(ahead(&["{}", other]), 75_000);
        let wide = NodeSettings { window_ms: 600_000, ..settings.clone() };
        assert_eq!(permitted(&wide, &["{}"]).ahead_max_ms("workers-10", NOW), 1_215_000);
        // Windows begin at the lead that an operator has accepted.
        let mut leading = permitted(&settings, &["{}"]);
        leading.accepted_lead = Mark::new(NOW.get() + 500_000);
        assert_eq!(leading.ahead_max_ms("workers-10", NOW), 575_000);
        assert_eq!(leading.ahead_max_ms("workers-10", UnixMillis::new(2_000_000)), 75_000);
        assert_eq!(leading.ahead_max_ms("lent-10-shop", NOW), KEEP_MS_MAX + 40_000);
    }

    #[test]
    fn pools_are_those_that_sources_shape() {
        let settings = NodeSettings::default();
        let clocked = r#"{"layout":"time=41,clock=3,worker=7,sequence=12"}"#;
        let segment = r#"{"kind":"segment"}"#;
        let by_store = r#"{"mint":"store","worker":3,"layout":"time=41,worker=8,sequence=14"}"#;
        let permitted =
            permitted(&settings, &["{}", clocked, segment, by_store, "{\"of\":\"later\"}"]);
        let pool =
            |name: &str, slots, group, reuse| Pool { name: name.into(), slots, group, reuse };
        let check = |pool: &Pool| permitted.check(pool).map_err(|error| error.to_string());
        let right = pool("workers-10", 1024, 1, Reuse::Recycle);
        let right_too = pool("workers-7-clock-3", 1024, 8, Reuse::Recycle);
        assert_eq!((check(&right), check(&right_too)), (Ok(()), Ok(())));
        assert_eq!((permitted.group("workers-7-clock-3"), permitted.group("workers-10")), (8, 1));
        for wrong in [
            Pool { slots: 512, ..right.clone() },
            Pool { group: 2, ..right.clone() },
            Pool { reuse: Reuse::Never, ..right.clone() },
        ] {
            let message = check(&wrong).unwrap_err();
            assert!(
                message.contains("worker.reuse") && message.contains("1024 numbers"),
                "{message}"
            );
        }
        for name in ["workers-9", "workers-8", "workers", "sections"] {
            let message = check(&pool(name, 512, 1, Reuse::Recycle)).unwrap_err();
            assert!(message.contains(name) && message.contains("admin"), "{message}");
        }
    }
}
