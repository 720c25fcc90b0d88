//! A clock for a Redis server that can be set.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use super::{Folder, done};
use crate::programs;

/// A clock that is off by what a file says. Clones are the same.
#[derive(Clone, Debug)]
pub struct RedisClock(Arc<Folder>);

impl Default for RedisClock {
    fn default() -> Self {
        Self::new()
    }
}

impl RedisClock {
    /// One that is right.
    ///
    /// # Panics
    /// When there is no C compiler on this machine.
    #[must_use]
    pub fn new() -> Self {
        let folder = Folder::new(None);
        let source = folder.join("clock.c");
        fs::write(&source, include_str!("redis_clock.c")).unwrap();
        let library = folder.join("clock.so");
        let mut compiler = Command::new(programs::installed("cc"));
        done(compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(library).arg(source));
        let clock = Self(Arc::new(folder));
        clock.set(0);
        clock
    }

    /// The clock is off by `seconds` from now on. The file is replaced at once, so that nobody reads
    /// half of it.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn set(&self, seconds: i64) {
        let (now, next) = (self.0.join("now"), self.0.join("next"));
        fs::write(&next, format!("{seconds}\n")).unwrap();
        fs::rename(&next, now).unwrap();
    }

    /// Has a server go by this clock.
    pub(super) fn show_to(&self, command: &mut Command) {
        command.env("LD_PRELOAD", self.0.join("clock.so"));
        command.env("SNOWMINT_REDIS_CLOCK", self.0.join("now"));
    }
}
