//! Many runs on all processors: their progress, their events, and the first that failed.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use snowmint_coord::{BootTimer, Timer};

use super::{Profile, RunOutcome, SEED_VARIABLE, Violation, try_run};
use crate::history::{Check, Checked};

/// Interval between reports of the progress.
const REPORT_EVERY_MS: u64 = 30_000;
/// Number of runs of a profile after which every event that it can have must have happened.
const RUNS_ENOUGH: u64 = 200;
/// Average number of IDs that each run must mint.
const MINTED_MIN: u64 = 100;

/// A completed run.
struct FinishedRun {
    number: u64,
    outcome: Result<RunOutcome, Violation>,
    took_ms: u64,
}

/// Events of all profiles.
const HAPPENS: [&str; 21] = [
    "a store of rows",
    "a store of keys as Redis's",
    "a store of keys as Redis's, by run",
    "a store of keys as etcd's",
    "a store of keys as ZooKeeper's",
    "a step loses to another",
    "a reply to a batch gets lost",
    "numbers counted by the server",
    "start",
    "kill",
    "close",
    "freeze",
    "freeze in a call",
    "the store dies",
    "a partition",
    "a clock steps",
    "a clock drifts",
    "elapsed clocks run apart",
    "a call never ends",
    "a call holds the others up",
    "a stale read",
];

impl Profile {
    /// Returns the further events of this profile.
    const fn happens(self) -> &'static [&'static str] {
        match self {
            Self::Network => &[
                "altered under partition",
                "start without the store",
                "minted without the store",
                "a slot changes hands, unanswered",
                "ordered",
                "counted",
                "freeze while counting",
                "replies come late, then none",
                "a take comes late",
                "a process dies right after minting",
                "forwarded",
                "hand over",
                "the address leads to another store",
                "another store is refused",
                "the other store is a copy",
            ],
            Self::Clocks => {
                &["a clock freezes", "a clock oscillates", "a process dies right after minting"]
            }
            Self::Restores => &[
                "restored",
                "restored to before numbers of a counter",
                "restored under running nodes",
                "a rolled-back store is refused",
                "a directory restored",
                "a directory restored, hidden",
                "a directory copied",
                "rolled back under running nodes",
                "recovered by what journals reported",
                "restored to before a recovery",
                "a recovered doubt restored",
                "values raised",
                "another namespace recovered",
                "refused for ever",
                "restriped",
                "a failover to a replica that lags, and back",
                "a failover to a replica that lags, moved forward",
            ],
            Self::Poisoned => &["every slot poisoned", "poisoned slots reclaimed"],
        }
    }
}

/// Totals of all runs of one profile.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The profile.
    pub profile: Profile,
    /// Number of runs.
    pub runs: u64,
    /// Number of minted IDs.
    pub minted: u64,
    /// Duration of all runs together.
    pub took_ms: u64,
    /// Duration of the longest run.
    pub longest_ms: u64,
    /// Events and their counts.
    pub happened: BTreeMap<&'static str, u64>,
}

impl Tally {
    const fn new(profile: Profile) -> Self {
        Self { profile, runs: 0, minted: 0, took_ms: 0, longest_ms: 0, happened: BTreeMap::new() }
    }

    fn add(&mut self, outcome: &RunOutcome, took_ms: u64) {
        self.runs += 1;
        self.took_ms += took_ms;
        self.longest_ms = self.longest_ms.max(took_ms);
        self.minted += outcome.minted as u64;
        for (what, times) in &outcome.happened {
            *self.happened.entry(what).or_default() += times;
        }
    }

    /// Checks that enough runs have tried everything.
    ///
    /// # Errors
    /// The event that never happened.
    fn check(&self) -> Checked {
        if self.runs < RUNS_ENOUGH {
            return Ok(());
        }
        let mut all = HAPPENS.iter().chain(self.profile.happens());
        if let Some(what) = all.find(|what| !self.happened.contains_key(**what)) {
            let what = format!("{:?}: {what:?} never happened", self.profile);
            return Err(Check::Trial.broken(what));
        }
        if self.minted < MINTED_MIN * self.runs {
            let Self { profile, minted, runs, .. } = self;
            let what = format!("{profile:?}: only {minted} IDs in {runs} runs: nothing was tried");
            return Err(Check::Trial.broken(what));
        }
        Ok(())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { profile, runs, minted, took_ms, longest_ms, happened } = self;
        let each_ms = *took_ms as f64 / (*runs).max(1) as f64;
        write!(f, "{profile:?}: {runs} runs of {each_ms:.1} ms, the longest {longest_ms} ms; ")?;
        write!(f, "{minted} IDs; {happened:?}")
    }
}

/// Progress of many runs.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Number of completed runs.
    pub runs: u64,
    /// Number of all runs.
    pub of: u64,
    /// Number of minted IDs.
    pub minted: u64,
    /// Time since the first run began.
    pub elapsed_ms: u64,
    /// First run that is not completed: all before it have kept every promise. `None` when all are
    /// completed.
    pub open: Option<(u64, Profile)>,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, of, minted, elapsed_ms, open } = self;
        let rate = *runs as f64 * 1_000.0 / (*elapsed_ms).max(1) as f64;
        write!(f, "{runs} of {of} runs, {minted} IDs, {rate:.1} runs/s")?;
        match open {
            Some((seed, profile)) => write!(f, "; all below seed {seed} ({profile:?}) are done"),
            None => write!(f, "; all are done"),
        }
    }
}

/// The runs in their order: each seed with all profiles, then the next.
struct RunPlan<'a> {
    seeds: Range<u64>,
    profiles: &'a [Profile],
    /// Number of the next run to begin.
    next: AtomicU64,
}

impl RunPlan<'_> {
    fn runs(&self) -> u64 {
        (self.seeds.end - self.seeds.start).saturating_mul(self.profiles.len() as u64)
    }

    /// Returns the run of this number; `None` after the last.
    fn run(&self, number: u64) -> Option<(u64, Profile)> {
        let profiles = self.profiles.len() as u64;
        let place = usize::try_from(number.checked_rem(profiles)?).ok()?;
        (number < self.runs()).then(|| (self.seeds.start + number / profiles, self.profiles[place]))
    }

    /// Runs worlds as long as the receiver exists, which is dropped once a run has failed.
    fn work(&self, steps: u32, done: &Sender<FinishedRun>) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((seed, profile)) = self.run(number) else { return };
            let begun = BootTimer.elapsed();
            let outcome = run_one(seed, profile, steps);
            let took_ms = BootTimer.elapsed().since(begun);
            if done.send(FinishedRun { number, outcome, took_ms }).is_err() {
                return;
            }
        }
    }

    /// Counts completed runs until there are no more, or one fails.
    fn count(
        &self,
        done: &Receiver<FinishedRun>,
        mut report: impl FnMut(&Progress),
    ) -> Result<Vec<Tally>, Violation> {
        let mut tallies: Vec<_> = self.profiles.iter().copied().map(Tally::new).collect();
        let (begun, mut reported) = (BootTimer.elapsed(), BootTimer.elapsed());
        // Completed are all runs below `first`, and these.
        let (mut first, mut early) = (0, BTreeSet::new());
        loop {
            let wait_ms = REPORT_EVERY_MS.saturating_sub(BootTimer.elapsed().since(reported));
            match done.recv_timeout(Duration::from_millis(wait_ms)) {
                Ok(FinishedRun { number, outcome, took_ms }) => {
                    let outcome = outcome?;
                    let tally = number % tallies.len() as u64;
                    tallies[usize::try_from(tally).unwrap()].add(&outcome, took_ms);
                    early.insert(number);
                    while early.remove(&first) {
                        first += 1;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = BootTimer.elapsed();
            let runs: u64 = tallies.iter().map(|tally| tally.runs).sum();
            if now.since(reported) >= REPORT_EVERY_MS || runs == self.runs() {
                reported = now;
                report(&Progress {
                    runs,
                    of: self.runs(),
                    minted: tallies.iter().map(|tally| tally.minted).sum(),
                    elapsed_ms: now.since(begun),
                    open: self.run(first),
                });
            }
        }
        Ok(tallies)
    }
}

/// Runs worlds from all of these seeds with each of the profiles, for `steps` events each, on all
/// processors. Reports the progress now and then, and at the end.
///
/// # Errors
/// The first broken promise, and how to replay the run; the other runs end at once. Or an event
/// that never happened in enough runs, although it should.
pub fn run_many(
    seeds: Range<u64>,
    profiles: &[Profile],
    steps: u32,
    report: impl FnMut(&Progress),
) -> Result<Vec<Tally>, Violation> {
    let plan = RunPlan { seeds, profiles, next: AtomicU64::new(0) };
    let (done, outcomes) = mpsc::channel();
    let tallies = thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let (plan, done) = (&plan, done.clone());
            scope.spawn(move || plan.work(steps, &done));
        }
        drop(done);
        // Dropped once all is counted, which ends the workers.
        let outcomes = outcomes;
        plan.count(&outcomes, report)
    })?;
    tallies.iter().try_for_each(Tally::check)?;
    Ok(tallies)
}

/// Runs one world. Every failure names its seed.
fn run_one(seed: u64, profile: Profile, steps: u32) -> Result<RunOutcome, Violation> {
    catch_unwind(AssertUnwindSafe(|| try_run(seed, profile, steps, None)))
        .unwrap_or_else(|panic| {
            Err(Check::Trial.broken(format!("a panic: {}", panic_text(&*panic))))
        })
        .map_err(|Violation { check, what }| {
            check.broken(format!(
                "seed {seed}, {profile:?}: {what}\nreplay: {SEED_VARIABLE}={seed} cargo test -p \
                 snowmint-testkit --test simulation"
            ))
        })
}

/// Returns the message of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it says nothing")
}
