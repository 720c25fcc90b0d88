//! Samples that can be trusted on a shared machine.
//!
//! A sample runs a case on its threads for a short time. It counts only when the process really had
//! its processors: CPU time over wall time. Without this filter "2 threads" silently means two
//! threads that take turns on one core, which makes contended code look twice as fast.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// IDs minted between two checks of the stop flag.
const STRIDE: u64 = 1024;

/// Mints on one thread.
pub trait Worker: Send {
    /// Mints `n` IDs and returns a value that depends on all of them.
    fn run(&mut self, n: u64) -> u64;
    /// Returns how many IDs `n` runs really make: more, where IDs come together.
    fn made_of(&self, n: u64) -> u64 {
        n
    }
    /// Mints into the buffer, for the checks.
    fn collect(&mut self, out: &mut [u64]);
}

impl<F: FnMut() -> u64 + Send> Worker for F {
    #[inline(never)]
    fn run(&mut self, n: u64) -> u64 {
        let mut sum = 0_u64;
        for _ in 0..n {
            sum = sum.wrapping_add(self());
        }
        sum
    }

    fn collect(&mut self, out: &mut [u64]) {
        for slot in out {
            *slot = self();
        }
    }
}

/// Fills buffers of a fixed length on one thread.
pub struct Fills<F> {
    pub buffer: Vec<u64>,
    pub fill: F,
}

impl<F: FnMut(&mut [u64]) + Send> Worker for Fills<F> {
    #[inline(never)]
    fn run(&mut self, n: u64) -> u64 {
        let mut sum = 0_u64;
        let length = self.buffer.len() as u64;
        for _ in 0..n.div_ceil(length) {
            (self.fill)(&mut self.buffer);
            sum = sum.wrapping_add(std::hint::black_box(&mut self.buffer)[7]);
        }
        sum
    }

    fn made_of(&self, n: u64) -> u64 {
        n.next_multiple_of(self.buffer.len() as u64)
    }

    fn collect(&mut self, out: &mut [u64]) {
        for chunk in out.chunks_mut(self.buffer.len()) {
            (self.fill)(chunk);
        }
    }
}

/// Reader of an ID's Unix milliseconds; its maximum age and lead, in milliseconds.
pub type Fresh = (fn(u64) -> u64, u64, u64);

/// One way to mint, and how to measure it.
pub struct Case {
    pub name: &'static str,
    pub threads: &'static [usize],
    /// Whether threads sleep by design (a layout's own bound): their CPU time then says nothing.
    pub sleeps: bool,
    /// Constructor of the threads' workers.
    pub workers: Box<dyn Fn(usize) -> Vec<Box<dyn Worker>>>,
    /// Promised freshness, if any.
    pub fresh: Option<Fresh>,
    /// Whether the numbers are IDs; those of floors repeat.
    pub unique: bool,
}

/// One sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Wall-clock nanoseconds per ID, over all threads.
    pub ns: f64,
    /// Processors that the process really had.
    pub cores: f64,
    /// Whether the process had all processors that it asked for.
    pub quiet: bool,
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Runs the case once on `threads` threads for about `length`.
pub fn sample(case: &Case, threads: usize, length: Duration) -> Sample {
    let stop = AtomicBool::new(false);
    let start = Barrier::new(threads + 1);
    let total = Mutex::new((0_u64, Duration::ZERO));
    let mut cores = 0.0;
    std::thread::scope(|scope| {
        for mut worker in (case.workers)(threads) {
            let (stop, start, total) = (&stop, &start, &total);
            let warm_up = if case.sleeps { 1 } else { STRIDE };
            scope.spawn(move || {
                worker.run(warm_up);
                start.wait();
                let began = Instant::now();
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    std::hint::black_box(worker.run(STRIDE));
                    count += worker.made_of(STRIDE);
                }
                let took = began.elapsed();
                let mut total = total.lock().expect("no thread panics");
                total.0 += count;
                total.1 = total.1.max(took);
            });
        }
        start.wait();
        let (wall, cpu_before) = (Instant::now(), cpu());
        std::thread::sleep(length);
        stop.store(true, Ordering::Relaxed);
        cores = (cpu() - cpu_before).as_secs_f64() / wall.elapsed().as_secs_f64();
    });
    let (count, wall) = *total.lock().expect("no thread panics");
    let wanted = threads.min(2) as f64;
    let quiet = case.sleeps || cores >= 0.95 * wanted;
    Sample { ns: wall.as_secs_f64() * 1e9 / count as f64, cores, quiet }
}

/// Result of checking a case.
#[derive(Clone, Copy, Debug, Default)]
pub struct Check {
    pub ids: usize,
    pub duplicates: usize,
    pub out_of_order: usize,
    pub stale_ms_max: u64,
    pub ahead_ms_max: u64,
}

/// Mints `count` IDs on each of `threads` threads, and checks each of them: no ID twice, each
/// thread increasing, no tick older or newer than promised.
pub fn check(case: &Case, threads: usize, count: usize) -> Check {
    let found: Vec<(Vec<u64>, Check)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (case.workers)(threads)
            .into_iter()
            .map(|worker| {
                let fresh = case.fresh;
                scope.spawn(move || check_one(fresh, worker, count))
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("no thread panics")).collect()
    });
    let mut sum = Check::default();
    let mut all = Vec::with_capacity(threads * count);
    for (ids, check) in found {
        sum.out_of_order += check.out_of_order;
        sum.stale_ms_max = sum.stale_ms_max.max(check.stale_ms_max);
        sum.ahead_ms_max = sum.ahead_ms_max.max(check.ahead_ms_max);
        all.extend(ids);
    }
    sum.ids = all.len();
    all.sort_unstable();
    all.dedup();
    sum.duplicates = sum.ids - all.len();
    sum
}

fn unix_ms() -> u64 {
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(wall.expect("the clock is past 1970").as_millis()).expect("it fits")
}

fn check_one(fresh: Option<Fresh>, mut worker: Box<dyn Worker>, count: usize) -> (Vec<u64>, Check) {
    const CHUNK: usize = 16;
    let mut ids = vec![0; count];
    let mut check = Check::default();
    for chunk in ids.chunks_mut(CHUNK) {
        let before = unix_ms();
        worker.collect(chunk);
        if let Some((time_of, _, _)) = fresh {
            // The clock was at least `before` when each of these IDs was requested.
            let (first, last) = (time_of(chunk[0]), time_of(chunk[chunk.len() - 1]));
            check.stale_ms_max = check.stale_ms_max.max(before.saturating_sub(first));
            check.ahead_ms_max = check.ahead_ms_max.max(last.saturating_sub(unix_ms()));
        }
    }
    check.out_of_order = ids.windows(2).filter(|pair| pair[1] <= pair[0]).count();
    (ids, check)
}
