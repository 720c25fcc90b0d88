//! A process under measurement.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::apart::served;

/// A running server, killed when dropped.
pub struct Process(Child);

impl Process {
    /// Starts the process; returns the first line that it prints.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> (Self, String) {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = served(|| command.spawn());
        let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it was asked for");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
        (Self(child), line.trim().to_owned())
    }

    /// Sends a signal, such as `STOP`.
    ///
    /// # Panics
    /// When the `kill` program is missing.
    pub fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        Command::new("kill").args(["-s", name, &pid]).status().expect("kill is there");
    }

    /// Ends it as a crash does.
    ///
    /// # Panics
    /// When it cannot be waited for.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        self.0.wait().expect("it was started here");
    }

    /// Ends it with `TERM`.
    ///
    /// # Panics
    /// When it cannot be waited for.
    pub fn stop(&mut self) {
        self.signal("TERM");
        self.0.wait().expect("it was started here");
    }

    /// Returns the resident memory in bytes.
    ///
    /// # Panics
    /// When the process does not run.
    pub fn resident_bytes(&self) -> u64 {
        let kib = self.tasks().find_map(|path| row(&path, "VmRSS:"));
        kib.expect("Linux says how much memory it has") * 1024
    }

    /// Returns the processor time used so far by all threads.
    pub fn cpu(&self) -> Duration {
        let time = |path: PathBuf| {
            let text = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
            text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
        };
        Duration::from_nanos(self.tasks().map(time).sum())
    }

    /// Returns how often each thread was scheduled again after it had yielded its processor.
    pub fn wake_ups(&self) -> WakeUps {
        let of = |path: PathBuf| Some((path.clone(), row(&path, "voluntary_ctxt_switches:")?));
        WakeUps(self.tasks().filter_map(of).collect())
    }

    fn tasks(&self) -> impl Iterator<Item = PathBuf> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id()));
        tasks.into_iter().flatten().filter_map(|task| Some(task.ok()?.path()))
    }
}

/// Number of wake-ups of each thread of a process.
#[derive(Debug)]
pub struct WakeUps(BTreeMap<PathBuf, u64>);

impl WakeUps {
    /// Returns the wake-ups since `before`, over all threads that run now. A thread that ended took
    /// its count along: a sum over all threads may fall.
    #[must_use]
    pub fn since(&self, before: &Self) -> u64 {
        let earlier = |thread| before.0.get(thread).copied().unwrap_or(0);
        self.0.iter().map(|(thread, count)| count.saturating_sub(earlier(thread))).sum()
    }
}

/// Returns this row of a thread's status, or `None` after the thread has ended.
fn row(thread: &Path, name: &str) -> Option<u64> {
    let status = fs::read_to_string(thread.join("status")).ok()?;
    let row = status.lines().find_map(|line| line.strip_prefix(name))?;
    row.split_whitespace().next()?.parse().ok()
}

impl Drop for Process {
    fn drop(&mut self) {
        // A stopped process must end, too.
        self.kill();
    }
}
