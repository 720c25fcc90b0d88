//! A worker that the program named, and the file with its mark.

mod forms;
mod mark_file;
mod place;
mod record;
mod window;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};

use snowmint_coord::error::chain;
use snowmint_core::{Clock as _, Generator, Layout, MintError, Pause as _, Settings, UnixMillis};

pub use place::default_dir;
pub use window::WINDOW_MS;

use crate::clock::HandleClock;
use crate::observer::LoggingObserver;
use mark_file::{Found, Lock, MarkFile};
use snowmint_coord::{Error, Result, lock};
use window::{Baseline, Need, Window, WindowSize};

/// Settings for opening a worker.
pub(crate) struct WorkerPlan {
    pub(crate) layout: Layout,
    pub(crate) worker: u64,
    pub(crate) settings: Settings,
    /// Directory of the mark file; none to keep no mark.
    pub(crate) dir: Option<PathBuf>,
    pub(crate) lock_wait_ms: u64,
    pub(crate) catch_up_ms: u64,
    pub(crate) jump_max_ms: u64,
    pub(crate) clock: HandleClock,
    pub(crate) observer: LoggingObserver,
}

/// A generator with its window in a file.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) generator: Generator<HandleClock, LoggingObserver>,
    window_size: WindowSize,
    /// None if no mark is kept.
    window: Option<Mutex<Window>>,
    name: String,
}

impl Worker {
    pub(crate) fn open(plan: WorkerPlan) -> Result<Self> {
        let WorkerPlan { layout, worker, settings, clock, .. } = plan;
        let name = format!("worker {worker}");
        if worker > layout.worker_max() {
            let limit = layout.worker_max();
            return Err(Error::invalid(format!(
                "worker {worker} exceeds the layout's maximum {limit}; use a lower number"
            )));
        }
        let window_size = WindowSize::new(layout, settings.rollback, plan.jump_max_ms);
        let window = match &plan.dir {
            Some(dir) => {
                let lock = Lock::acquire(dir, &place::key(&layout, worker), plan.lock_wait_ms)?;
                Some(first_window(lock, &window_size, &clock, &name, plan.catch_up_ms)?)
            }
            None => None,
        };
        let granted = match &window {
            Some(window) => snowmint_core::Window::new(window.floor, window.mark),
            None => without_file(&layout, &clock, plan.catch_up_ms),
        };
        if let Some(window) = &window {
            clock.check_from(window.check_from(&window_size));
        }
        let generator =
            Generator::with_observer(layout, worker, 0, settings, granted, clock, plan.observer)
                .map_err(|error| Error::invalid(error.to_string()))?;
        Ok(Self { generator, window_size, window: window.map(Mutex::new), name })
    }

    /// Checks for a fork and extends the window, once [`HandleClock::needs_no_check`] is false.
    pub(crate) fn check_window(&self) -> Result<()> {
        if self.generator.clock().is_forked() {
            return Err(self.forked());
        }
        let Some(window) = &self.window else { return Ok(()) };
        match window.try_lock() {
            Ok(window) => self.extend_early(window),
            Err(TryLockError::Poisoned(poisoned)) => self.extend_early(poisoned.into_inner()),
            // Another thread is extending the window.
            Err(TryLockError::WouldBlock) => {}
        }
        Ok(())
    }

    /// Extends the window past `mark`, because the generator wants a later tick.
    pub(crate) fn extend_past(&self, mark: UnixMillis) -> Result<()> {
        if self.generator.clock().is_forked() {
            return Err(self.forked());
        }
        match &self.window {
            Some(window) => self.extend(lock(window), Need::Spent { mark }),
            None => Err(self.refused(MintError::WindowSpent { mark })),
        }
    }

    /// Extends a window that still lasts: the caller gets an error only once the window is spent.
    fn extend_early(&self, window: MutexGuard<'_, Window>) {
        if let Err(error) = self.extend(window, Need::Soon) {
            tracing::warn!(worker = %self.name, error = %chain(&error), "failed to extend the window");
        }
    }

    fn extend(&self, mut window: MutexGuard<'_, Window>, need: Need) -> Result<()> {
        let clock = self.generator.clock();
        let now = baseline(clock);
        match window.extend(&self.window_size, need, now, self.generator.taken_until()) {
            Ok(mark) => {
                self.generator.extend_to(mark);
                clock.check_from(window.check_from(&self.window_size));
                Ok(())
            }
            Err(error) => {
                clock.check_from(Window::retry_from(now.wall));
                Err(error)
            }
        }
    }

    pub(crate) fn refused(&self, error: MintError) -> Error {
        Error::refused(&self.name, error)
    }

    fn forked(&self) -> Error {
        Error::unsupported(format!(
            "{} was opened before a fork; open another worker in this process",
            self.name
        ))
    }

    /// Closes the generator for good, and releases the ticks that it did not take.
    pub(crate) fn close(&self) -> Result<()> {
        if self.generator.clock().is_forked() {
            // The file and the lock belong to the parent process.
            return Err(self.forked());
        }
        let minted_until = self.generator.close();
        match &self.window {
            Some(window) => lock(window).close(minted_until),
            None => Ok(()),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.generator.clock().is_forked()
            && let Err(error) = self.close()
        {
            tracing::warn!(worker = %self.name, error = %chain(&error), "failed to release the worker number");
        }
    }
}

fn baseline(clock: &HandleClock) -> Baseline {
    Baseline { wall: clock.read().wall(), elapsed: clock.elapsed_with_suspend() }
}

/// Opens the first window: it starts at the file's mark, or without a file at the clock's tick.
fn first_window(
    lock: Lock,
    window_size: &WindowSize,
    clock: &HandleClock,
    name: &str,
    catch_up_ms: u64,
) -> Result<Window> {
    match lock.find()? {
        Found::Nothing(lock) => {
            let now = baseline(clock);
            let floor = tick_start(&window_size.layout, now.wall);
            let mark = window_size.mark_after(now.wall);
            Ok(Window::new(lock.create(mark)?, floor, mark, now))
        }
        Found::Mark(mut file, floor) => {
            catch_up(&file, floor, window_size, clock, name, catch_up_ms)?;
            let now = baseline(clock);
            let mark = std::cmp::max(window_size.mark_after(std::cmp::max(now.wall, floor)), floor);
            if mark > floor {
                file.raise(mark)?;
            }
            Ok(Window::new(file, floor, mark, now))
        }
    }
}

/// Waits until the clock is as near to the mark as the policy requires.
fn catch_up(
    file: &MarkFile,
    floor: UnixMillis,
    window_size: &WindowSize,
    clock: &HandleClock,
    name: &str,
    catch_up_ms: u64,
) -> Result<()> {
    let lead_max_ms = std::cmp::max(window_size.lead_ms, window_size.held_ms);
    let until = clock.read().elapsed().saturating_add(catch_up_ms);
    loop {
        let reading = clock.read();
        let behind_ms = floor.since(reading.wall());
        if behind_ms <= lead_max_ms {
            return Ok(());
        }
        let left_ms = until.since(reading.elapsed());
        let short_ms = behind_ms.saturating_sub(lead_max_ms);
        if short_ms > left_ms {
            let limit_ms = lead_max_ms.saturating_add(catch_up_ms);
            let message = format!(
                "clock is {behind_ms} ms behind what {name} may have minted ({:?}), limit \
                 {limit_ms} ms; wait or correct the clock",
                file.path()
            );
            return Err(Error::clock_behind(behind_ms, limit_ms, message));
        }
        clock.pause_until(floor.saturating_sub(lead_max_ms), left_ms);
    }
}

/// Returns the window of a worker without a mark file. It skips the current tick, in which an
/// earlier process may have minted, unless ticks are longer than `catch_up_ms`.
fn without_file(layout: &Layout, clock: &HandleClock, catch_up_ms: u64) -> snowmint_core::Window {
    let now = clock.read().wall();
    let unit_ms = u64::from(layout.unit_ms());
    let mut floor = tick_start(layout, now);
    if unit_ms <= catch_up_ms {
        floor = floor.saturating_add(unit_ms);
        clock.pause_until(floor, unit_ms);
    }
    snowmint_core::Window::new(floor, UnixMillis::MAX)
}

/// Returns the start of the tick of `time`; the epoch if `time` has none.
fn tick_start(layout: &Layout, time: UnixMillis) -> UnixMillis {
    layout.tick_at(time).map_or(layout.epoch(), |tick| layout.start_of(tick))
}

#[cfg(test)]
mod tests;
