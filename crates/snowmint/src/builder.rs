//! Opening a worker that somebody named by hand.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use snowmint_core::generator::Rollback;
use snowmint_core::layout::Lifetime;
use snowmint_core::{Clock as _, Layout, Observer, Pause, Settings};

use crate::clock::{ClockChoice, GivenClock, HandleClock};
use crate::observer::{GivenObserver, Tell};
use crate::snowflake::Snowflake;
use crate::worker::{Plan, Worker, default_dir};
use crate::{Error, ErrorKind, Result};

/// How long [`Builder::build`] waits for another process to close the worker.
pub const LOCK_WAIT_MS: u64 = 10_000;
/// How long [`Builder::build`] waits for the clock to reach what the worker may have minted.
pub const CATCH_UP_MS: u64 = 2_000;
/// How far the wall clock may run ahead of elapsed time between two extensions of the window.
pub const JUMP_MAX_MS: u64 = 3_600_000;

/// 41 bits of milliseconds since 2026, 10 of worker, 12 of sequence.
const LAYOUT_DEFAULT: Layout = match Layout::new(41, 10, 12) {
    Ok(layout) => layout,
    Err(_) => panic!("41 + 10 + 12 bits make a layout"),
};

/// Builds a [`Snowflake`] whose worker you name.
///
/// **The mark.** Before an ID leaves the process, a file says that its tick may have been minted: the
/// file's mark is at most half a second and two ticks (and the lead that the policy borrows) ahead of
/// what was taken. A process that opens the worker later starts at the mark, whatever its clock says.
///
/// **One process at a time.** The file is locked for the life of the handle, by the kernel, so that
/// the lock ends with the process, however it ends. Any number of processes may open the worker: each
/// waits up to [`lock_wait_ms`](Self::lock_wait_ms) for the one before. Two that both live long need
/// two workers; a store can name them.
///
/// **After a crash** the mark lies a little ahead of the clock. With the policy *hold* (the default) or
/// *borrow*, IDs lead the clock by that much; with the others, `build` waits for it.
///
/// **What it cannot see:** the same worker under another state directory, on another machine, or a
/// state directory put back to an older state while the clock has gone back too.
pub struct Builder {
    layout: Layout,
    worker: Option<u64>,
    settings: Settings,
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

    /// The layout; by default 41 bits of milliseconds since 2026-01-01, 10 of worker and 12 of
    /// sequence. Clock bits, where the layout has them, stay 0.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The worker's number. There is no default.
    #[must_use]
    pub fn worker(mut self, worker: u64) -> Self {
        self.worker = Some(worker);
        self
    }

    /// Policy, burst span, sequence start and how long [`Snowflake::mint`] waits.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// What to do when the clock goes back; by default *hold*, up to 5 s.
    #[must_use]
    pub fn on_rollback(mut self, rollback: Rollback) -> Self {
        self.settings.rollback = rollback;
        self
    }

    /// Where the mark is kept; by default in the user's state directory ([`default_dir`]).
    #[must_use]
    pub fn data_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Keeps no mark and takes no lock. What is lost: a second process with the same worker, and a
    /// process that starts after the clock has gone back, repeat IDs, and nobody notices. So does one
    /// that starts within the tick in which the last one ended, where ticks are longer than
    /// [`catch_up_ms`](Self::catch_up_ms); shorter ones are waited for.
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

    /// How long `build` waits for another process that has the worker open; by default
    /// [`LOCK_WAIT_MS`].
    #[must_use]
    pub fn lock_wait_ms(mut self, ms: u64) -> Self {
        self.lock_wait_ms = ms;
        self
    }

    /// How long `build` waits, beyond what the policy allows IDs to lead the clock, until the clock
    /// reaches what the worker may have minted; by default [`CATCH_UP_MS`].
    #[must_use]
    pub fn catch_up_ms(mut self, ms: u64) -> Self {
        self.catch_up_ms = ms;
        self
    }

    /// How far the wall clock may run ahead of elapsed time between two extensions of the window; by
    /// default [`JUMP_MAX_MS`]. Beyond it minting is refused: an ID of next year would be minted for
    /// good, and the worker be of no use until then. Open the worker again once the clock is right.
    #[must_use]
    pub fn jump_max_ms(mut self, ms: u64) -> Self {
        self.jump_max_ms = ms;
        self
    }

    /// How the time is read; by default [`ClockChoice::Precise`].
    #[must_use]
    pub fn clock(mut self, clock: ClockChoice) -> Self {
        self.clock = clock;
        self
    }

    /// Mints by a clock of your own, in place of [`clock`](Self::clock): for tests and simulations.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Pause + Send + Sync>) -> Self {
        self.given_clock = Some(clock);
        self
    }

    /// Tells `observer` of every clock step, on the thread that met it. Steps are logged too.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer + Send + Sync>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Opens the worker. Blocks the thread on the disk, and up to the stated bounds for the lock and
    /// the clock: in async code, call it at the start, or on a blocking thread.
    ///
    /// # Errors
    /// `Invalid` for a worker that is missing or does not fit the layout, and for a layout that ends
    /// within a year; `EpochSpent` for one that has ended; `Locked` when another process has the worker
    /// open; `ClockBehind` when the clock is too far behind what the worker may have minted;
    /// `JournalRefused` when the file is damaged; `Unwritable`, `StorageFull` and `Unavailable` as
    /// the system says.
    pub fn build(self) -> Result<Snowflake> {
        let op = "open worker";
        let Some(worker) = self.worker else {
            let what = "no worker is named: call worker(NUMBER), or let a store name one";
            return Err(Error::invalid(op, what));
        };
        let clock = HandleClock::new(self.clock, self.given_clock)?;
        match self.layout.lifetime_at(clock.read().wall()) {
            Lifetime::Spent { .. } => {
                let name = format!("worker {worker}");
                return Err(Error::new(op, ErrorKind::EpochSpent { name }));
            }
            life @ Lifetime::EndsWithinYear { .. } if !self.short_life => {
                let what = format!("the layout {life}; accept_short_life() takes it as it is");
                return Err(Error::invalid(op, what));
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
        Worker::open(Plan {
            layout: self.layout,
            worker,
            settings: self.settings,
            dir: dir.map(|dir| dir.join("workers")),
            lock_wait_ms: self.lock_wait_ms,
            catch_up_ms: self.catch_up_ms,
            jump_max_ms: self.jump_max_ms,
            clock,
            observer: Tell { name, observer: self.observer },
        })
        .map(Snowflake::of_worker)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("layout", &self.layout)
            .field("worker", &self.worker)
            .field("settings", &self.settings)
            .field("dir", &self.dir)
            .field("stateless", &self.stateless)
            .finish_non_exhaustive()
    }
}
