//! Child processes that end with the process that started them, also when it is killed: a test run
//! that dies leaves no servers behind.
//!
//! The kernel sends the signal (`PR_SET_PDEATHSIG`) when the *thread* ends that started the child,
//! so one thread that lasts as long as the process starts all children. `setpriv` requests the
//! signal: between fork and exec only unsafe code could.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

use crate::programs;

type SpawnOrder = (Command, Sender<(io::Result<Child>, Command)>);

/// Returns a command that ends with this process, if [`spawn`] starts it.
#[must_use]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    command_as(None, program)
}

/// Returns the same command, run as another user of this machine.
pub(crate) fn command_as(user: Option<&str>, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(programs::installed("setpriv"));
    if let Some(user) = user {
        command.args(["--reuid", user, "--regid", user, "--init-groups"]);
    }
    // A change of user would clear the request, so both are made together.
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Starts a command.
///
/// # Errors
/// Errors of the system, for instance because `setpriv` is missing.
pub fn spawn(command: Command) -> io::Result<Child> {
    spawn_and_keep(command).0
}

/// Starts a command, and returns it, so that it can be started again.
///
/// # Errors
/// The same as of [`spawn`].
#[allow(clippy::missing_panics_doc, reason = "the thread lasts as long as the process")]
pub fn spawn_and_keep(command: Command) -> (io::Result<Child>, Command) {
    static STARTS: OnceLock<Mutex<Sender<SpawnOrder>>> = OnceLock::new();
    let starts = STARTS.get_or_init(|| {
        let (orders, ordered) = channel::<SpawnOrder>();
        std::thread::spawn(move || {
            for (mut command, started) in ordered {
                let child = command.spawn();
                let _ = started.send((child, command));
            }
        });
        Mutex::new(orders)
    });
    let (started, child) = channel();
    starts.lock().unwrap_or_else(PoisonError::into_inner).send((command, started)).unwrap();
    child.recv().unwrap()
}

/// Sends a signal, named as `kill` names it: `-TERM`. A process that has ended and was not waited
/// for accepts it, too.
///
/// # Panics
/// When the signal or the process does not exist.
pub fn signal(process: u32, name: &str) {
    if let Err(error) = try_signal(process, name) {
        panic!("{name} to process {process}: {error}");
    }
}

/// Sends a signal; fails when the process is gone.
pub(crate) fn try_signal(process: u32, name: &str) -> io::Result<()> {
    let signal = match name {
        "-CONT" => Signal::CONT,
        "-HUP" => Signal::HUP,
        "-INT" => Signal::INT,
        "-KILL" => Signal::KILL,
        "-STOP" => Signal::STOP,
        "-TERM" => Signal::TERM,
        _ => panic!("no signal {name}"),
    };
    let id = i32::try_from(process).ok().and_then(Pid::from_raw).expect("a process has a number");
    Ok(kill_process(id, signal)?)
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use snowmint_coord::{BootTimer, Timer as _};

    use super::*;

    /// `/proc/PID/status` does not show the setting: so a child starts a child, and is killed.
    #[test]
    fn a_child_of_a_killed_process_is_gone() {
        // The steps of `command` in a process of its own: a shell is killed, and the program that
        // it started by `setpriv` ends, too.
        let mut shell = command("sh");
        shell.args(["-c", "setpriv --pdeathsig KILL -- sleep 1000 & echo $!; wait"]);
        shell.stdout(Stdio::piped());
        let mut shell = spawn(shell).unwrap();
        let mut line = String::new();
        let mut output = io::BufReader::new(shell.stdout.take().unwrap());
        io::BufRead::read_line(&mut output, &mut line).unwrap();
        let status = format!("/proc/{}/stat", line.trim());
        // It may not have requested the signal yet.
        let sleeps = || std::fs::read_to_string(&status).is_ok_and(|stat| stat.contains("(sleep)"));
        let begun = BootTimer.elapsed();
        while !sleeps() {
            assert!(BootTimer.elapsed().since(begun) < 60_000, "it never sleeps");
            std::thread::yield_now();
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        let begun = BootTimer.elapsed();
        let gone = || std::fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z "));
        while !gone() {
            assert!(BootTimer.elapsed().since(begun) < 60_000, "it is still there");
            std::thread::yield_now();
        }
    }

    #[test]
    fn child_outlives_its_spawning_thread() {
        let mut sleep = command("sleep");
        sleep.arg("1000");
        let mut child = std::thread::spawn(|| spawn(sleep).unwrap()).join().unwrap();
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
