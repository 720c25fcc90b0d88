//! What a node can be told.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_core::{SystemClock, UnixMillis};

use crate::error::Result;
use crate::journal::{Disk, LocalDisk};
use crate::pool::Reuse;
use crate::sources::{Keyrings, NodeClock, NodeObserver};
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
}

/// A clock that a node's own is held against where the store has none: that of a time server.
#[async_trait]
pub trait ClockWitness: Send + Sync + fmt::Debug + 'static {
    /// What it is called in messages.
    fn name(&self) -> String;
    /// What time it is. Asked every few seconds: it is for the witness to ask a server less often.
    ///
    /// # Errors
    /// When it is not known: nothing is compared then.
    async fn now(&self) -> Result<UnixMillis>;
}

/// What a node can be told. Everything has a default.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// A label, and a wish for the slot that this owner had last; never an identity. May be empty.
    pub owner: String,
    /// The host's name, for people.
    pub host: String,
    /// Where the journal is; none: no journal.
    pub data_dir: Option<PathBuf>,
    /// Whether the sources `default` (snowflake) and `numbers` (segment) are defined on opening.
    pub builtin: bool,
    /// Whether worker numbers are used again, or never.
    pub reuse: Reuse,
    /// The worker number to take and no other.
    pub worker: Option<u64>,
    /// What happens when a crash left a mark ahead of the clock.
    pub after_crash: AfterCrash,
    /// How far the store's marks are kept ahead. 30 s.
    pub window_ms: u64,
    /// How long a member counts as live without a renewal. 30 s.
    pub presence_ttl_ms: u64,
    /// The largest distance from the store's clock, or from most other members', that is allowed.
    /// 10 s.
    pub clock_skew_max_ms: u64,
    /// The largest jump of the clock ahead of elapsed time that is believed while neither the store
    /// nor most other members confirm it. 10 minutes: a machine that was paused may be behind so far.
    pub clock_jump_max_ms: u64,
    /// Whose clock counts where neither the store nor other members have one; nobody's.
    pub clock_witness: Option<Arc<dyn ClockWitness>>,
    /// How long one call to the store may take. 5 s.
    pub store_call_ms: u64,
    /// How long opening a source waits for a worker number. 10 s.
    pub open_wait_ms: u64,
    /// The key rings for disguises, by the number that sources call them by.
    pub keyrings: Keyrings,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            owner: String::new(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            data_dir: None,
            builtin: false,
            reuse: Reuse::Recycle,
            worker: None,
            after_crash: AfterCrash::default(),
            window_ms: 30_000,
            presence_ttl_ms: 30_000,
            clock_skew_max_ms: 10_000,
            clock_jump_max_ms: 600_000,
            clock_witness: None,
            store_call_ms: 5_000,
            open_wait_ms: 10_000,
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
