//! A machine's clock that is wrong, by libfaketime.
//!
//! Wall time (`CLOCK_REALTIME`) is faked: programs get it from the C library, where libfaketime
//! replaces it. Elapsed time is not faked. This models a step of a real clock: wall time moves,
//! elapsed time does not.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{children, programs};

/// A clock with an offset that a file contains.
#[derive(Clone, Debug)]
pub struct FakeClock(PathBuf);

impl FakeClock {
    /// Returns a clock without offset that has this file, which programs under the clock can read.
    ///
    /// # Panics
    /// When the file cannot be written.
    #[must_use]
    pub fn new(file: PathBuf) -> Self {
        let clock = Self(file);
        clock.set(0);
        clock
    }

    /// Sets the offset to `seconds` from now on. The file is replaced at once, so that no program
    /// reads half of it.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn set(&self, seconds: i64) {
        let next = self.0.with_extension("next");
        fs::write(&next, format!("{seconds:+}\n")).unwrap();
        fs::rename(&next, &self.0).unwrap();
    }

    /// Returns a command under this clock, which ends with this process if [`children::spawn`]
    /// starts it.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.command_as(None, program)
    }

    /// Returns the same command, run as another user of this machine.
    pub(super) fn command_as(&self, user: Option<&str>, program: impl AsRef<OsStr>) -> Command {
        // Only for the program itself: what it shares with its children must belong to its own
        // user.
        let mut command = children::command_as(user, "env");
        command
            .args(["-u", "FAKETIME", "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"])
            // The fix for waits by elapsed time, which is not faked, makes each commit of MySQL
            // take 0.3 s.
            .args(["NO_FAKE_STAT=1", "FAKETIME_FORCE_MONOTONIC_FIX=0"])
            .arg(format!("FAKETIME_TIMESTAMP_FILE={}", self.0.display()))
            .arg(format!("LD_PRELOAD={}", library().display()))
            .arg(program);
        command
    }
}

/// Returns the path of the library in Debian's package `libfaketime`, which depends on the
/// machine's architecture.
fn library() -> PathBuf {
    let found = fs::read_dir("/usr/lib").unwrap().filter_map(|entry| {
        let library = entry.ok()?.path().join("faketime/libfaketimeMT.so.1");
        library.exists().then_some(library)
    });
    found.into_iter().next().unwrap_or_else(|| programs::missing("libfaketimeMT.so.1"))
}
