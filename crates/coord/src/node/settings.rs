//! What a node can be told.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use snowmint_core::SystemClock;

use crate::beside::StorePlaces;
use crate::capability::ClockOf;
use crate::clock_witness::ClockWitness;
use crate::journal::{Disk, LocalDisk};
use crate::machine::Pace;
use crate::ordered::silence_ms;
use crate::origin::Origins;
use crate::pool::Reuse;
use crate::sources::{Keyrings, Make, NodeClock, NodeObserver};
use crate::spec::SnowflakePlan;
use crate::timer::{BootTimer, Timer};

/// What happens when the mark of the slot that this owner had last lies ahead of the clock, as after
/// a crash without a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterCrash {
    /// Another slot is taken, whose mark allows minting at once.
    #[default]
    AnotherSlot,
    /// The same slot is taken, and minting waits until the clock has reached its mark.
    Wait,
    /// The same slot is taken, and IDs lead the clock, at most by this many milliseconds.
    Lead {
        /// The longest lead.
        max_ms: u64,
    },
    /// The node does not start.
    Refuse,
}

impl NodeSettings {
    /// Whether a claim names a highest mark, so that one above it was accepted by an operator.
    pub(super) const fn limits_marks(&self) -> bool {
        let limits = matches!(self.after_crash, AfterCrash::AnotherSlot | AfterCrash::Lead { .. });
        limits && self.worker.is_none()
    }

    /// How often a member looks at who answers for sections of counters.
    pub(super) const fn list_every_ms(&self) -> u64 {
        self.presence_ttl_ms / 3
    }

    /// How long a member that died is missed at most, while the store answers at once: its last renewal
    /// is seen at a look after it, and its silence at one after that was long enough.
    pub(super) const fn missed_ms(&self) -> u64 {
        let looks_ms = self.list_every_ms().saturating_mul(2);
        silence_ms(self.presence_ttl_ms).saturating_add(looks_ms)
    }

    /// How far ahead of the clock of whoever asks a mark may lie that nodes of these settings have
    /// moved, minting by `plans` from a store of which only an older state is left. Not in it: marks
    /// that an operator has moved, or accepted, further ahead.
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
        let pace = Pace::new(self.window_ms, unit_ms, lead_ms, skew_ms, false);
        pace.ahead_max_ms.saturating_add(self.off_ms(clock))
    }

    /// How far a clock of the namespace may be off from the one that it is compared with.
    pub(super) fn off_ms(&self, clock: ClockOf) -> u64 {
        match clock {
            ClockOf::Store => self.clock_skew_max_ms,
            // What clocks are compared with is as old as a presence: ours, or a program's.
            ClockOf::Caller => {
                self.clock_skew_max_ms.saturating_add(self.presence_ttl_ms.max(PRESENCE_TTL_MS))
            }
        }
    }

    /// What a generator for a source is made of.
    pub(super) fn made(&self, plan: &SnowflakePlan) -> Make {
        match self.after_crash {
            AfterCrash::Lead { max_ms } => Make::of(plan).leading(max_ms),
            _ => Make::of(plan),
        }
    }
}

/// How long a member counts as live without a renewal, if nothing else is said.
pub(super) const PRESENCE_TTL_MS: u64 = 10_000;

/// What a node can be told. Everything has a default.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// A label, and a wish for the slot that this owner had last; never an identity. May be empty.
    pub owner: String,
    /// The host's name, for people.
    pub host: String,
    /// Where others reach this process, for those who share counters with it; empty: nowhere.
    pub address: String,
    /// Where the journal is; none: no journal.
    pub data_dir: Option<PathBuf>,
    /// Whether the sources `default` (snowflake) and `numbers` (segment) are defined on opening.
    pub builtin: bool,
    /// Whether worker numbers are used again, or never. All members of a namespace say the same.
    pub reuse: Reuse,
    /// The worker number to take and no other.
    pub worker: Option<u64>,
    /// What happens when a crash left a mark ahead of the clock.
    pub after_crash: AfterCrash,
    /// How far the store's marks are kept ahead. 30 s.
    pub window_ms: u64,
    /// Once nothing was minted for so long, the journal is left where it is, and the next ID waits for
    /// one write of it; none: it is kept ahead, and no ID ever waits for it. None.
    pub rest_after_ms: Option<u64>,
    /// Whether minting may begin before the store is met: by a process whose journal says that an
    /// earlier one was granted more than it used. Needs a data directory. False.
    pub start_without_store: bool,
    /// Open on a store that went back, or is in doubt: the node says what its journal knows, and is not ready until an
    /// operator has recovered the store. Else [`Node::open`](super::Node::open) is refused.
    pub waits_for_recovery: bool,
    /// How long a member counts as live without a renewal, and answers for sections of counters.
    /// 10 s.
    pub presence_ttl_ms: u64,
    /// The largest distance from the store's clock, or from most other members', that is allowed.
    /// 10 s.
    pub clock_skew_max_ms: u64,
    /// The largest jump of the clock ahead of elapsed time that is believed while neither the store
    /// nor most other members confirm it. 10 minutes: a machine that was paused may be behind so far.
    pub clock_jump_max_ms: u64,
    /// Whose clock counts where neither the store nor other members have one; that of the store's
    /// [witness](crate::Store::clock_witness), if it has one.
    pub clock_witness: Option<Arc<dyn ClockWitness>>,
    /// What segment sources draw their numbers from while another system hands them out too; nothing.
    pub origins: Origins,
    /// Where the stores are that some sources have numbers from, beside the node's own; none.
    pub beside: StorePlaces,
    /// How long one call to the store may take. 5 s.
    pub store_call_ms: u64,
    /// How long opening a source waits for a worker number. 10 s.
    pub open_wait_ms: u64,
    /// How many bytes the keys of all counter sources may take in memory together, about. Beyond, keys of the
    /// largest source are forgotten, and go on above all others of their section. 128 MiB.
    pub counter_bytes_max: usize,
    /// How many IDs the queues of all prefilled sources may hold, each of 16 bytes. A source whose queue finds no room
    /// mints without it. 2^24: 256 MiB.
    pub prefill_ids_max: u64,
    /// The key rings for disguises, by the number that sources call them by.
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
            rest_after_ms: None,
            start_without_store: false,
            waits_for_recovery: false,
            presence_ttl_ms: PRESENCE_TTL_MS,
            clock_skew_max_ms: 10_000,
            clock_jump_max_ms: 600_000,
            clock_witness: None,
            origins: Origins::new(),
            beside: StorePlaces::new(),
            store_call_ms: 5_000,
            open_wait_ms: 10_000,
            counter_bytes_max: 1 << 27,
            prefill_ids_max: 1 << 24,
            keyrings: Keyrings::new(),
        }
    }
}

/// What a node takes its time from, where its journal lies, and who is told of clock steps.
#[derive(Clone)]
pub struct Parts {
    /// Elapsed time and waiting.
    pub timer: Arc<dyn Timer>,
    /// Wall time.
    pub clock: NodeClock,
    /// Who is told of clock steps.
    pub observer: NodeObserver,
    /// Where the data directory is; not used without one.
    pub disk: Arc<dyn Disk>,
}

impl Parts {
    /// The operating system's clocks and files, and nobody.
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

impl Default for Parts {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("timer", &self.timer).finish_non_exhaustive()
    }
}

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
        // Twice the window, and the distance of clocks on both sides.
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
