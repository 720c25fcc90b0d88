//! Common part of all servers: one process with its own folder and port, which can be frozen,
//! killed, and started again on its data.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use snowmint_coord::{BootTimer, Timer as _};

use super::{Folder, done, free_port, pause};
use crate::children;

/// Time limit in milliseconds for a server to respond or end: these machines are noisy.
const READY_WITHIN_MS: u64 = 60_000;
/// Time in milliseconds after which a server that has not ended gets the signal again.
const STOP_AGAIN_MS: u64 = 2_000;

/// Folder where a server keeps all its data, next to `log` and other files.
const DATA: &str = "data";

/// Function that returns a server's command for a folder and a port.
pub(super) type Start = dyn Fn(&Folder, u16) -> Command + Send + Sync;

/// Parameters of one kind of server.
pub(super) struct Recipe {
    /// Name of the product.
    pub(super) name: &'static str,
    /// Parts of its URL before and after the port.
    pub(super) url: (&'static str, &'static str),
    /// Signal that stops it cleanly.
    pub(super) ends_with: &'static str,
    /// Command that starts it: made by [`children`].
    pub(super) command: Box<Start>,
    /// Test of whether it responds.
    pub(super) responds: fn(u16) -> bool,
}

/// One real server, removed with its data when dropped.
pub struct Server {
    // In this order: the server is dropped before its folder.
    child: Option<Child>,
    folder: Folder,
    port: u16,
    recipe: Recipe,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.recipe.name)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Starts a server on a prepared folder.
    pub(super) fn new(recipe: Recipe, folder: Folder) -> Self {
        let mut server = Self { child: None, folder, port: free_port(), recipe };
        // The port is not in use yet: if another process has taken it, any other port will do.
        server.start_with(|port| *port = free_port());
        server
    }

    /// Returns the name of its product.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.recipe.name
    }

    /// Returns its loopback port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns its URL.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_by(self.port)
    }

    /// Returns its URL through another loopback port.
    #[must_use]
    pub fn url_by(&self, port: u16) -> String {
        let (before, after) = self.recipe.url;
        format!("{before}{port}{after}")
    }

    /// Returns a path in its folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Starts it on its present data, and waits until it responds.
    ///
    /// # Panics
    /// When it does not respond, or runs already.
    pub fn start(&mut self) {
        self.start_with(|_| {});
    }

    /// Starts it; a process that ends by itself is started again, at the port that `after_an_end`
    /// sets.
    fn start_with(&mut self, after_an_end: impl Fn(&mut u16)) {
        assert!(self.child.is_none(), "{} runs already", self.recipe.name);
        let begun = BootTimer.elapsed();
        let log = self.folder.join("log");
        loop {
            let child = self
                .child
                .get_or_insert_with(|| spawn((self.recipe.command)(&self.folder, self.port), &log));
            let responds = (self.recipe.responds)(self.port);
            // While the server was down, a connection of another process may have used its port for
            // a moment: a response then comes from another process.
            let has_ended = child.try_wait().unwrap().is_some();
            if responds && !has_ended {
                return;
            }
            if has_ended {
                self.child = None;
                after_an_end(&mut self.port);
            }
            if BootTimer.elapsed().since(begun) > READY_WITHIN_MS {
                let name = self.recipe.name;
                let log = fs::read_to_string(&log).unwrap_or_default();
                panic!("{name} did not respond within {READY_WITHIN_MS} ms; it says:\n{log}");
            }
            pause();
        }
    }

    /// Stops it cleanly, if it runs.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let begun = BootTimer.elapsed();
        let mut signals = 0;
        while let Ok(None) = child.try_wait() {
            let waited_ms = BootTimer.elapsed().since(begun);
            if waited_ms >= signals * STOP_AGAIN_MS {
                // Redis refuses to stop while it writes its log for the first time, and then does
                // not stop by itself.
                let name =
                    if waited_ms < READY_WITHIN_MS { self.recipe.ends_with } else { "-KILL" };
                // It may have ended meanwhile.
                let _ = children::try_signal(child.id(), name);
                signals += 1;
            }
            pause();
        }
    }

    /// Ends it as a power cut does, with all its processes.
    ///
    /// # Panics
    /// When it does not run.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        // The main process is killed first, so that it starts no others.
        let children = descendants(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        signal("-KILL", &children);
        // Some hold files or memory that the next process needs.
        let begun = BootTimer.elapsed();
        while children.iter().any(|pid| parent_of_running(*pid).is_some()) {
            let waited_ms = BootTimer.elapsed().since(begun);
            assert!(waited_ms < READY_WITHIN_MS, "{} does not die", self.recipe.name);
            pause();
        }
    }

    /// Freezes all its processes, or resumes them.
    ///
    /// # Panics
    /// When it does not run.
    pub fn freeze(&self, frozen: bool) {
        let first = self.child.as_ref().expect("it runs").id();
        let name = if frozen { "-STOP" } else { "-CONT" };
        children::signal(first, name);
        signal(name, &descendants(first));
    }

    /// Copies its data to a backup. Stop it first.
    ///
    /// # Panics
    /// When it runs, or nothing can be copied.
    pub fn back_up(&self) {
        self.copy(DATA, "backup");
    }

    /// Restores its data from the backup. Stop it first.
    ///
    /// # Panics
    /// When it runs, or there is no backup.
    pub fn restore(&self) {
        self.copy("backup", DATA);
    }

    /// Deletes its data, for a server that makes what it needs at its start. Stop it first.
    ///
    /// # Panics
    /// When it runs, or its data cannot be deleted.
    pub fn forget(&self) {
        assert!(self.child.is_none(), "{} runs", self.recipe.name);
        let data = self.folder.join(DATA);
        fs::remove_dir_all(&data).unwrap();
        fs::create_dir(&data).unwrap();
    }

    fn copy(&self, from: &str, to: &str) {
        assert!(self.child.is_none(), "{} runs", self.recipe.name);
        let to = self.folder.join(to);
        let _ = fs::remove_dir_all(&to);
        done(Command::new("cp").arg("-a").arg(self.folder.join(from)).arg(&to));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() && std::thread::panicking() {
            // It may be frozen.
            self.freeze(false);
        }
        self.stop();
    }
}

fn spawn(mut command: Command, log: &Path) -> Child {
    let log = File::options().create(true).append(true).open(log).unwrap();
    let errors = log.try_clone().unwrap();
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    let shown = format!("{command:?}");
    let child = children::spawn(command);
    child.unwrap_or_else(|error| panic!("{shown} cannot be started: {error}"))
}

/// Sends a signal; skips processes that are gone.
fn signal(name: &str, pids: &[u32]) {
    for pid in pids {
        let _ = children::try_signal(*pid, name);
    }
}

/// Returns all descendants of a process.
fn descendants(first: u32) -> Vec<u32> {
    let running: Vec<(u32, u32)> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            Some((pid, parent_of_running(pid)?))
        })
        .collect();
    let mut found = vec![first];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(running.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// Returns the parent of a process; `None` when it has ended, whether or not it was waited for.
fn parent_of_running(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may contain anything: the state, and the parent.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    if words.next()? == "Z" {
        return None;
    }
    words.next()?.parse().ok()
}
