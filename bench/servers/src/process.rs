//! A process under measurement.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::apart::served;

/// A running server; gone when dropped.
pub struct Process(Child);

impl Process {
    /// Starts it, and answers the first line that it says.
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
    /// When there is no `kill` here.
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

    /// Ends it in peace.
    ///
    /// # Panics
    /// When it cannot be waited for.
    pub fn stop(&mut self) {
        self.signal("TERM");
        self.0.wait().expect("it was started here");
    }

    /// What of the memory is its own now.
    ///
    /// # Panics
    /// When it does not run.
    pub fn resident_bytes(&self) -> u64 {
        let kib = self.threads("VmRSS:").into_iter().next();
        kib.expect("Linux says how much memory it has") * 1024
    }

    /// Processor time taken so far, by all threads.
    pub fn cpu(&self) -> Duration {
        let time = |path: std::path::PathBuf| {
            let text = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
            text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
        };
        Duration::from_nanos(self.tasks().map(time).sum())
    }

    /// How often a thread of it was given a processor after it had let go of one.
    pub fn wake_ups(&self) -> u64 {
        self.threads("voluntary_ctxt_switches:").into_iter().sum()
    }

    fn tasks(&self) -> impl Iterator<Item = std::path::PathBuf> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id()));
        tasks.into_iter().flatten().filter_map(|task| Some(task.ok()?.path()))
    }

    /// This row of each thread's status.
    fn threads(&self, name: &str) -> Vec<u64> {
        let row = |path: std::path::PathBuf| {
            let status = fs::read_to_string(path.join("status")).ok()?;
            let row = status.lines().find_map(|line| line.strip_prefix(name))?;
            row.split_whitespace().next()?.parse().ok()
        };
        self.tasks().filter_map(row).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that stands still ends, too.
        self.kill();
    }
}
