//! Many runs, on all processors: how far they are, what happened in them, and the first that failed.

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

use super::{Outcome, Profile, SEED_VARIABLE, Violation, try_run};
use crate::history::{Check, Checked};

/// How often it is told how far it is.
const TELL_EVERY_MS: u64 = 30_000;
/// From so many runs of a profile on, everything that can happen in it must have.
const RUNS_ENOUGH: u64 = 200;
/// And so many IDs must have been minted, each run.
const MINTED_MIN: u64 = 100;

/// A run that is done.
struct Done {
    number: u64,
    outcome: Result<Outcome, Violation>,
    took_ms: u64,
}

/// What happens in all profiles.
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
    /// What happens in this one besides.
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
                "answers come late, then none",
                "a take comes late",
                "a process dies right after minting",
                "passed on",
                "the address leads to another store",
                "another store is refused",
                "the other store is a copy",
            ],
            Self::Clocks => {
                &["a clock freezes", "a clock oscillates", "a process dies right after minting"]
            }
            Self::Restores => &[
                "restored",
                "restored under running nodes",
                "a store that went back is refused",
                "a directory put back",
                "a directory put back, hidden",
                "a directory copied",
                "put back under running nodes",
                "recovered by what journals reported",
                "refused for ever",
                "restriped",
                "a failover to a replica that lags, and back",
                "a failover to a replica that lags, moved forward",
            ],
            Self::Poisoned => &["every slot poisoned", "poisoned slots reclaimed"],
        }
    }
}

/// What happened in all runs of one profile.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The profile.
    pub profile: Profile,
    /// How many runs there were.
    pub runs: u64,
    /// How many IDs were minted.
    pub minted: u64,
    /// How long all of them took together.
    pub took_ms: u64,
    /// The longest of them.
    pub longest_ms: u64,
    /// What happened, and how often.
    pub happened: BTreeMap<&'static str, u64>,
}

impl Tally {
    const fn new(profile: Profile) -> Self {
        Self { profile, runs: 0, minted: 0, took_ms: 0, longest_ms: 0, happened: BTreeMap::new() }
    }

    fn add(&mut self, outcome: &Outcome, took_ms: u64) {
        self.runs += 1;
        self.took_ms += took_ms;
        self.longest_ms = self.longest_ms.max(took_ms);
        self.minted += outcome.minted as u64;
        for (what, times) in &outcome.happened {
            *self.happened.entry(what).or_default() += times;
        }
    }

    /// Whether there were enough runs, and yet something was not tried.
    ///
    /// # Errors
    /// What never happened.
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

/// How far many runs are.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// How many are done.
    pub runs: u64,
    /// How many there will be.
    pub of: u64,
    /// How many IDs were minted.
    pub minted: u64,
    /// Since the first began.
    pub elapsed_ms: u64,
    /// The first that is not done: all before it have kept every promise. None when all are done.
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

/// Which runs there are, in their order: each seed with all profiles, then the next.
struct Plan<'a> {
    seeds: Range<u64>,
    profiles: &'a [Profile],
    /// The number of the next that nobody has begun.
    next: AtomicU64,
}

impl Plan<'_> {
    fn runs(&self) -> u64 {
        (self.seeds.end - self.seeds.start).saturating_mul(self.profiles.len() as u64)
    }

    /// The run of this number; none after the last.
    fn run(&self, number: u64) -> Option<(u64, Profile)> {
        let profiles = self.profiles.len() as u64;
        let place = usize::try_from(number.checked_rem(profiles)?).ok()?;
        (number < self.runs()).then(|| (self.seeds.start + number / profiles, self.profiles[place]))
    }

    /// Does what is to be done, as long as somebody listens: nobody does once a run has failed.
    fn work(&self, steps: u32, done: &Sender<Done>) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((seed, profile)) = self.run(number) else { return };
            let begun = BootTimer.elapsed();
            let outcome = run_one(seed, profile, steps);
            let took_ms = BootTimer.elapsed().since(begun);
            if done.send(Done { number, outcome, took_ms }).is_err() {
                return;
            }
        }
    }

    /// Counts what is done until nothing more comes, or something fails.
    fn count(
        &self,
        done: &Receiver<Done>,
        mut tell: impl FnMut(&Progress),
    ) -> Result<Vec<Tally>, Violation> {
        let mut tallies: Vec<_> = self.profiles.iter().copied().map(Tally::new).collect();
        let (begun, mut told) = (BootTimer.elapsed(), BootTimer.elapsed());
        // Done are all below the first number, and these.
        let (mut first, mut early) = (0, BTreeSet::new());
        loop {
            let wait_ms = TELL_EVERY_MS.saturating_sub(BootTimer.elapsed().since(told));
            match done.recv_timeout(Duration::from_millis(wait_ms)) {
                Ok(Done { number, outcome, took_ms }) => {
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
            if now.since(told) >= TELL_EVERY_MS || runs == self.runs() {
                told = now;
                tell(&Progress {
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

/// Runs worlds from all of these seeds with each of the profiles, for `steps` happenings each, on all
/// processors. Tells now and then how far it is, and at the end.
///
/// # Errors
/// The first promise that was broken, and how to replay the run: the others end at once. Or what never
/// happened in so many runs, although it should.
pub fn run_many(
    seeds: Range<u64>,
    profiles: &[Profile],
    steps: u32,
    tell: impl FnMut(&Progress),
) -> Result<Vec<Tally>, Violation> {
    let plan = Plan { seeds, profiles, next: AtomicU64::new(0) };
    let (done, outcomes) = mpsc::channel();
    let tallies = thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let (plan, done) = (&plan, done.clone());
            scope.spawn(move || plan.work(steps, &done));
        }
        drop(done);
        // Nobody listens once it is counted.
        let outcomes = outcomes;
        plan.count(&outcomes, tell)
    })?;
    tallies.iter().try_for_each(Tally::check)?;
    Ok(tallies)
}

/// One run. Whatever breaks in it, its seed is told.
fn run_one(seed: u64, profile: Profile, steps: u32) -> Result<Outcome, Violation> {
    catch_unwind(AssertUnwindSafe(|| try_run(seed, profile, steps, None)))
        .unwrap_or_else(|panic| Err(Check::Trial.broken(format!("a panic: {}", said(&*panic)))))
        .map_err(|Violation { check, what }| {
            check.broken(format!(
                "seed {seed}, {profile:?}: {what}\nreplay: {SEED_VARIABLE}={seed} cargo test -p \
                 snowmint-testkit --test simulation"
            ))
        })
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it says nothing")
}
