//! Opening a worker that the program names.

use std::path::PathBuf;
use std::sync::Arc;

use snowmint_core::generator::{Rollback, check_shards};
use snowmint_core::layout::Lifetime;
use snowmint_core::{Clock as _, Layout, Observer, Pause, SequenceStart, Settings};

use crate::clock::{ClockChoice, GivenClock, HandleClock};
use crate::observer::{GivenObserver, LoggingObserver};
use crate::snowflake::Snowflake;
use crate::worker::{Worker, WorkerPlan, default_dir};
use snowmint_coord::{Error, Result, opaque_debug};

/// Default for the longest wait of [`Builder::build`] for another process to close the worker.
pub const LOCK_WAIT_MS: u64 = 10_000;
/// Default for the longest wait of [`Builder::build`] until the clock reaches the worker's mark.
pub const CATCH_UP_MS: u64 = 2_000;
/// Default for the longest lead of the wall clock over elapsed time between two window extensions.
pub const JUMP_MAX_MS: u64 = 3_600_000;

/// 41 bits of milliseconds since 2026, 10 bits of worker, 12 bits of sequence.
const LAYOUT_DEFAULT: Layout = match Layout::new(41, 10, 12) {
    Ok(layout) => layout,
    Err(_) => panic!("41 + 10 + 12 bits make a layout"),
};

/// Builds a [`Snowflake`] for a worker that you name.
///
/// **The mark.** Before an ID leaves the process, a file records that its tick may have been
/// minted. The file's mark is at most half a second and two ticks ahead of the last tick taken,
/// plus the lead that the policy borrows. A process that opens the worker later starts at the mark,
/// whatever its clock says.
///
/// **One process at a time.** The kernel locks the file for the life of the handle, so the lock
/// ends with the process, even after a crash. Any number of processes may open the worker: each
/// waits up to [`lock_wait_ms`](Self::lock_wait_ms) for the previous process. Two long-lived
/// processes need two workers; a store can assign them.
///
/// **After a crash** the mark is a little ahead of the clock. With the policy *hold* (the default)
/// or *borrow*, IDs lead the clock by that much; with the other policies, `build` waits for the
/// clock.
///
/// **Not detected:** the same worker under another state directory or on another machine, and a
/// state directory restored to an older state while the clock is set back too.
pub struct Builder {
    layout: Layout,
    worker: Option<u64>,
    settings: Settings,
    shards: Option<u64>,
    dir: Option<PathBuf>,
    stateless: bool,
    short_life: bool,
    lock_wait_ms: u64,
    catch_up_ms: u64,
    jump_max_ms: u64,
    clock: ClockChoice,
    given_clock: Option<GivenClock>,
    observer: Option<GivenObserver>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            layout: LAYOUT_DEFAULT,
            worker: None,
            settings: Settings::DEFAULT,
            shards: None,
            dir: None,
            stateless: false,
            short_life: false,
            lock_wait_ms: LOCK_WAIT_MS,
            catch_up_ms: CATCH_UP_MS,
            jump_max_ms: JUMP_MAX_MS,
            clock: ClockChoice::Precise,
            given_clock: None,
            observer: None,
        }
    }

    /// Sets the layout; by default 41 bits of milliseconds since 2026-01-01, 10 bits of worker and
    /// 12 bits of sequence. Clock bits, if the layout has them, stay 0.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets the worker number. There is no default.
    #[must_use]
    pub fn worker(mut self, worker: u64) -> Self {
        self.worker = Some(worker);
        self
    }

    /// Sets the policy, burst span, sequence start and the longest wait of [`Snowflake::mint`].
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the reaction to a wall clock that is set back; by default *hold*, up to 5 s.
    #[must_use]
    pub fn on_rollback(mut self, rollback: Rollback) -> Self {
        self.settings.rollback = rollback;
        self
    }

    /// Spreads IDs over this many shards, chosen by `id % count`: they take turns at any rate, and
    /// the counts of two shards differ by 1 at most for the handle, and for each [`Lane`] by
    /// itself. Each tick may lose `count - 1` sequence numbers. Without it, all IDs of a quiet
    /// process fall into one of 2, 4, 8, ... shards. Replaces the sequence start of
    /// [`settings`](Self::settings).
    ///
    /// [`Lane`]: crate::Lane
    #[must_use]
    pub fn shards(mut self, count: u64) -> Self {
        self.shards = Some(count);
        self
    }

    /// Sets the directory of the mark file; by default the user's state directory
    /// ([`default_dir`]).
    #[must_use]
    pub fn data_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Keeps no mark and takes no lock, which gives up part of the uniqueness guarantee. A second
    /// process with the same worker, or a process that starts after the clock was set back, repeats
    /// IDs unnoticed. A process that starts within the last tick of its predecessor does the same
    /// if ticks are longer than [`catch_up_ms`](Self::catch_up_ms); `build` waits for shorter ticks
    /// to end.
    #[must_use]
    pub fn without_state(mut self) -> Self {
        self.stateless = true;
        self
    }

    /// Accepts a layout that ends within a year.
    #[must_use]
    pub fn accept_short_life(mut self) -> Self {
        self.short_life = true;
        self
    }

    /// Sets the longest time in milliseconds that `build` waits for another process that has the
    /// worker open; by default [`LOCK_WAIT_MS`].
    #[must_use]
    pub fn lock_wait_ms(mut self, ms: u64) -> Self {
        self.lock_wait_ms = ms;
        self
    }

    /// Sets the longest time in milliseconds that `build` waits for the clock to reach the mark,
    /// beyond the lead over the clock that the policy allows; by default [`CATCH_UP_MS`].
    #[must_use]
    pub fn catch_up_ms(mut self, ms: u64) -> Self {
        self.catch_up_ms = ms;
        self
    }

    /// Sets how many milliseconds the wall clock may run ahead of elapsed time between two window
    /// extensions; by default [`JUMP_MAX_MS`]. Beyond it minting fails: an ID of next year would
    /// use up the worker until then. Open the worker again once the clock is right.
    #[must_use]
    pub fn jump_max_ms(mut self, ms: u64) -> Self {
        self.jump_max_ms = ms;
        self
    }

    /// Sets how the time is read; by default [`ClockChoice::Precise`].
    #[must_use]
    pub fn clock(mut self, clock: ClockChoice) -> Self {
        self.clock = clock;
        self
    }

    /// Mints by the given clock in place of [`clock`](Self::clock): for tests and simulations.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Pause + Send + Sync>) -> Self {
        self.given_clock = Some(clock);
        self
    }

    /// Notifies `observer` of every clock step, on the thread that met it. Steps are logged too.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer + Send + Sync>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Opens the worker. Blocks the thread on the disk, and up to the stated bounds on the lock and
    /// the clock. In async code, call it at the start or on a blocking thread.
    ///
    /// # Errors
    /// - `Invalid` when the worker is missing or does not fit the layout, when the layout ends
    ///   within a year, or when it cannot spread IDs over this many shards.
    /// - `EpochSpent` when the layout has ended.
    /// - `Locked` when another process has the worker open.
    /// - `ClockBehind` when the clock is too far behind the mark.
    /// - `JournalRefused` when the file is damaged.
    /// - `StoreReadOnly`, `StorageFull` and `Unavailable` when the system reports them.
    pub fn build(self) -> Result<Snowflake> {
        let Some(worker) = self.worker else {
            let message = "no worker number given; call worker(NUMBER) or open a store";
            return Err(Error::invalid(message));
        };
        let mut settings = self.settings;
        if let Some(count) = self.shards {
            settings.sequence_start = SequenceStart::Shards { count, seed: worker };
        }
        if let SequenceStart::Shards { count, .. } = settings.sequence_start {
            check_shards(&self.layout, count).map_err(|error| {
                Error::invalid(format!("{count} shards are not possible: {error}"))
            })?;
        }
        let clock = HandleClock::new(self.clock, self.given_clock)?;
        match self.layout.lifetime_at(clock.read().wall()) {
            Lifetime::Spent { .. } => {
                return Err(Error::epoch_spent(format!(
                    "no time left in the layout of worker {worker}; choose a layout with a newer \
                     epoch"
                )));
            }
            life @ Lifetime::EndsWithinYear { .. } if !self.short_life => {
                let message = format!("layout {life}, or call accept_short_life()");
                return Err(Error::invalid(message));
            }
            life @ Lifetime::EndsSoon { .. } => tracing::warn!(worker, "the layout {life}"),
            _ => {}
        }
        let dir = match (self.stateless, self.dir) {
            (true, _) => None,
            (false, Some(dir)) => Some(dir),
            (false, None) => Some(default_dir()?),
        };
        let name = format!("worker {worker}");
        Worker::open(WorkerPlan {
            layout: self.layout,
            worker,
            settings,
            dir: dir.map(|dir| dir.join("workers")),
            lock_wait_ms: self.lock_wait_ms,
            catch_up_ms: self.catch_up_ms,
            jump_max_ms: self.jump_max_ms,
            clock,
            observer: LoggingObserver { name, observer: self.observer },
        })
        .map(Snowflake::of_worker)
    }
}

impl Snowflake {
    /// Returns a builder for a worker that you name; [`open`](crate::open) a store to have one
    /// assigned.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }
}

opaque_debug!(Builder: layout, worker, settings, dir, stateless);
