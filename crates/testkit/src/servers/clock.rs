//! A machine's clock that is wrong, by libfaketime.
//!
//! What is faked: wall time (`CLOCK_REALTIME`), which programs ask of the C library, where libfaketime
//! answers in its place. What is not: elapsed time. That is what a step of a real clock is: wall time
//! moves, elapsed time does not.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{children, programs};

/// A clock that is off by what a file says.
#[derive(Clone, Debug)]
pub struct FakeClock(PathBuf);

impl FakeClock {
    /// A clock that is right, and has this file, which whoever goes by it can read.
    ///
    /// # Panics
    /// When the file cannot be written.
    #[must_use]
    pub fn new(file: PathBuf) -> Self {
        let clock = Self(file);
        clock.set(0);
        clock
    }

    /// The clock is off by `seconds` from now on. The file is replaced at once, so that nobody reads
    /// half of it.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn set(&self, seconds: i64) {
        let next = self.0.with_extension("next");
        fs::write(&next, format!("{seconds:+}\n")).unwrap();
        fs::rename(&next, &self.0).unwrap();
    }

    /// A command by this clock, that ends with this process if [`children::spawn`] starts it.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.command_as(None, program)
    }

    /// The same, as another user of this machine.
    pub(super) fn command_as(&self, user: Option<&str>, program: impl AsRef<OsStr>) -> Command {
        // Only the program itself: what it shares with its children must be its own user's.
        let mut command = children::command_as(user, "env");
        command
            .args(["-u", "FAKETIME", "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"])
            // Its mend for waits by elapsed time, which is not faked, makes each commit of MySQL take 0.3 s.
            .args(["NO_FAKE_STAT=1", "FAKETIME_FORCE_MONOTONIC_FIX=0"])
            .arg(format!("FAKETIME_TIMESTAMP_FILE={}", self.0.display()))
            .arg(format!("LD_PRELOAD={}", library().display()))
            .arg(program);
        command
    }
}

/// Where Debian's package `libfaketime` has the library, which depends on the machine's kind.
fn library() -> PathBuf {
    let found = fs::read_dir("/usr/lib").unwrap().filter_map(|entry| {
        let library = entry.ok()?.path().join("faketime/libfaketimeMT.so.1");
        library.exists().then_some(library)
    });
    found.into_iter().next().unwrap_or_else(|| programs::missing("libfaketimeMT.so.1"))
}
