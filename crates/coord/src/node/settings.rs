//! Settings of a node.

use std::path::PathBuf;
use std::sync::Arc;

use snowmint_core::SystemClock;

use crate::journal::{Disk, LocalDisk};
use crate::machine::WindowPolicy;
use crate::model::exclusive::stall_ms;
use crate::model::pool::Reuse;
use crate::platform::clock::{NodeClock, NodeObserver};
use crate::platform::timer::{BootTimer, Timer};
use crate::sources::{GeneratorConfig, Keyrings};
use crate::spec::SnowflakePlan;
use crate::store::StoreConnectors;
use crate::store::capability::ClockOf;
use crate::store::time_reference::TimeReference;
use crate::store::upstream::Upstreams;

/// Behaviour when the mark of the slot that this owner had last lies ahead of the clock, as after a
/// crash without a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterCrash {
    /// Claims another slot, with a mark that allows minting at once.
    #[default]
    OtherWorker,
    /// Claims the same slot, and waits with minting until the clock has reached its mark.
    Wait,
    /// Claims the same slot, and lets IDs lead the clock, by at most this many milliseconds.
    Lead {
        /// Longest lead, in milliseconds.
        max_ms: u64,
    },
    /// Rejects the start of the node.
    Refuse,
}

impl NodeSettings {
    /// Returns whether claims name a highest mark, so that an operator must have accepted a higher
    /// one.
    pub(super) const fn limits_marks(&self) -> bool {
        let limits = matches!(self.after_crash, AfterCrash::OtherWorker | AfterCrash::Lead { .. });
        limits && self.worker.is_none()
    }

    /// Returns the interval at which a member reads the section owners.
    pub(super) const fn list_every_ms(&self) -> u64 {
        self.presence_ttl_ms / 3
    }

    /// Returns the longest time until a dead member is replaced, while the store responds at once:
    /// one poll sees its last renewal, and a later one finds it stalled for long enough.
    pub(super) const fn missed_ms(&self) -> u64 {
        let looks_ms = self.list_every_ms().saturating_mul(2);
        stall_ms(self.presence_ttl_ms).saturating_add(looks_ms)
    }

    /// Returns how far a mark may lie ahead of the caller's clock, when nodes with these settings
    /// have moved it, minting by `plans` from a store with only an older state left. It excludes
    /// marks that an operator has moved, or accepted, further ahead.
    #[must_use]
    pub fn reach_ms<'a>(
        &self,
        plans: impl IntoIterator<Item = &'a SnowflakePlan>,
        clock: ClockOf,
    ) -> u64 {
        let (mut unit_ms, mut lead_ms) = (1, 0);
        for plan in plans {
            unit_ms = u64::from(plan.layout.unit_ms()).max(unit_ms);
            lead_ms = self.made(plan).lead_max_ms().max(lead_ms);
        }
        let skew_ms = self.clock_skew_max_ms;
        let window_policy = WindowPolicy::new(self.window_ms, unit_ms, lead_ms, skew_ms, false);
        window_policy.ahead_max_ms.saturating_add(self.off_ms(clock))
    }

    /// Returns how far a clock of the namespace may be off from the one that it is compared with.
    pub(super) fn off_ms(&self, clock: ClockOf) -> u64 {
        match clock {
            ClockOf::Store => self.clock_skew_max_ms,
            // Clocks are compared with samples as old as a presence: ours, or an embedded client's.
            ClockOf::Caller => {
                self.clock_skew_max_ms.saturating_add(self.presence_ttl_ms.max(PRESENCE_TTL_MS))
            }
        }
    }

    /// Returns the generator configuration for a source.
    pub(super) fn made(&self, plan: &SnowflakePlan) -> GeneratorConfig {
        match self.after_crash {
            AfterCrash::Lead { max_ms } => GeneratorConfig::of(plan).leading(max_ms),
            _ => GeneratorConfig::of(plan),
        }
    }
}

/// Default time for which a member counts as live without a renewal.
pub(super) const PRESENCE_TTL_MS: u64 = 10_000;

/// Settings of a node. Everything has a default.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Owner name: a label, and a preference for the slot that this owner had last; never an
    /// identity. May be empty.
    pub owner: String,
    /// Host's name, for people.
    pub host: String,
    /// Address at which peers reach this process, to share counters with it; empty: none.
    pub address: String,
    /// Data directory with the journal; none: no journal.
    pub data_dir: Option<PathBuf>,
    /// Whether the built-in sources are defined on opening: `default` (snowflake), `numbers`
    /// (segment) and `counters` (counter).
    pub builtin: bool,
    /// Whether worker numbers are used again. All members of a namespace must agree.
    pub reuse: Reuse,
    /// Only worker number to claim; none: any.
    pub worker: Option<u64>,
    /// Behaviour when a crash left a mark ahead of the clock.
    pub after_crash: AfterCrash,
    /// Distance of the store's marks ahead of the clock. Default: 30 s.
    pub window_ms: u64,
    /// Idle time after which the journal's mark stays where it is, so that the next ID waits for
    /// one write of the journal; none: it is always kept ahead, and no ID waits for it. Default:
    /// none.
    pub idle_after_ms: Option<u64>,
    /// Whether minting may begin offline, before the store is reached. The journal must show that
    /// an earlier process was granted more than it used. Needs a data directory. Default: false.
    pub start_without_store: bool,
    /// Whether to open on a store that was rolled back, or is in doubt: the node then reports what
    /// its journal knows, and is not ready until an operator has recovered the store. Otherwise
    /// [`Node::open`](super::Node::open) fails.
    pub waits_for_recovery: bool,
    /// Time for which a member counts as live without a renewal, and serves its sections of
    /// counters. Default: 10 s.
    pub presence_ttl_ms: u64,
    /// Largest accepted distance from the store's clock, or from most other members' clocks.
    /// Default: 10 s.
    pub clock_skew_max_ms: u64,
    /// Largest jump of the clock ahead of elapsed time that is accepted while neither the store nor
    /// most other members confirm it. Default: 10 minutes, since a machine that was paused may be
    /// behind by as much.
    pub clock_jump_max_ms: u64,
    /// Time reference for when neither the store nor other members have a better clock; default:
    /// the store's own [time reference](crate::Store::time_reference), if any.
    pub time_reference: Option<Arc<dyn TimeReference>>,
    /// Upstreams of segment sources, for numbers that another system hands out too. Default: none.
    pub upstreams: Upstreams,
    /// Connectors of the secondary stores. Default: none.
    pub secondary_stores: StoreConnectors,
    /// Name of the secondary store that the node is on, for commands in errors; none: a primary
    /// store.
    pub secondary: Option<String>,
    /// Longest duration of one store call. Default: 5 s.
    pub store_call_ms: u64,
    /// Longest wait for a worker number when a source is opened. Default: 10 s.
    pub open_wait_ms: u64,
    /// Approximate byte limit for the keys of all counter sources in memory. Above it, keys of the
    /// largest source are forgotten, and continue above all others of their section. Default: 128
    /// MiB.
    pub counter_bytes_max: usize,
    /// Limit of IDs in the queues of all prefilled sources, at 16 bytes each. A source without room
    /// for its queue mints without one. Default: 2^24, which is 256 MiB.
    pub prefill_ids_max: u64,
    /// Key rings for disguises, by the number under which sources name them.
    pub keyrings: Keyrings,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            owner: String::new(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            address: String::new(),
            data_dir: None,
            builtin: false,
            reuse: Reuse::Recycle,
            worker: None,
            after_crash: AfterCrash::default(),
            window_ms: 30_000,
            idle_after_ms: None,
            start_without_store: false,
            waits_for_recovery: false,
            presence_ttl_ms: PRESENCE_TTL_MS,
            clock_skew_max_ms: 10_000,
            clock_jump_max_ms: 600_000,
            time_reference: None,
            upstreams: Upstreams::new(),
            secondary_stores: StoreConnectors::new(),
            secondary: None,
            store_call_ms: 5_000,
            open_wait_ms: 10_000,
            counter_bytes_max: 1 << 27,
            prefill_ids_max: 1 << 24,
            keyrings: Keyrings::new(),
        }
    }
}

/// Platform of a node: its clocks, its disk, and the observer of clock steps.
#[derive(Clone)]
pub struct Platform {
    /// Elapsed time and waiting.
    pub timer: Arc<dyn Timer>,
    /// Wall time.
    pub clock: NodeClock,
    /// Observer of clock steps.
    pub observer: NodeObserver,
    /// Disk of the data directory; not used without one.
    pub disk: Arc<dyn Disk>,
}

impl Platform {
    /// Returns the operating system's clocks and files, without an observer.
    #[must_use]
    pub fn system() -> Self {
        Self {
            timer: Arc::new(BootTimer),
            clock: Arc::new(SystemClock),
            observer: Arc::new(()),
            disk: Arc::new(LocalDisk),
        }
    }
}

impl Default for Platform {
    fn default() -> Self {
        Self::system()
    }
}

crate::opaque_debug!(Platform: timer);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Plan, SourceSpec};

    fn plan(json: &str) -> SnowflakePlan {
        match SourceSpec::from_json(json).unwrap().check() {
            Ok(Plan::Snowflake(plan)) => plan,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_reach_follows_windows_leads_and_the_distance_of_clocks() {
        let default = NodeSettings::default();
        let reach = |settings: &NodeSettings, plans: &[SnowflakePlan]| {
            settings.reach_ms(plans, ClockOf::Store)
        };
        // Twice the window, plus the distance of clocks on both sides.
        assert_eq!(reach(&default, &[]), 80_000);
        assert_eq!(default.reach_ms(&[], ClockOf::Caller), 90_000);
        let usual = plan("{}");
        assert_eq!(reach(&default, std::slice::from_ref(&usual)), 85_000, "a lead of 5 s");
        let fail = plan(r#"{"on_rollback":"fail"}"#);
        assert_eq!(reach(&default, &[fail]), 80_000);
        let longer = plan(r#"{"lead_max":"20s"}"#);
        assert_eq!(reach(&default, &[usual.clone(), longer]), 100_000, "the longest counts");
        let slow = plan(r#"{"layout":"time=31,worker=10,sequence=22,unit=60s"}"#);
        assert_eq!(reach(&default, &[slow]), 385_000, "a window has three ticks");

        let window = NodeSettings { window_ms: 600_000, ..default.clone() };
        assert_eq!(reach(&window, &[]), 1_220_000);
        let skew = NodeSettings { clock_skew_max_ms: 250, ..default.clone() };
        assert_eq!(reach(&skew, &[]), 60_500);
        let after_crash = AfterCrash::Lead { max_ms: 60_000 };
        assert_eq!(reach(&NodeSettings { after_crash, ..default }, &[usual]), 140_000);
    }
}
