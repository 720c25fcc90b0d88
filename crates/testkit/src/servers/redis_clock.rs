//! A settable clock for a Redis server.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use super::{Folder, done};
use crate::programs;

/// A clock with an offset that a file contains. Clones share it.
#[derive(Clone, Debug)]
pub struct RedisClock(Arc<Folder>);

impl Default for RedisClock {
    fn default() -> Self {
        Self::new()
    }
}

impl RedisClock {
    /// Returns a clock without offset.
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

    /// Sets the offset to `seconds` from now on. The file is replaced at once, so that no program
    /// reads half of it.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn set(&self, seconds: i64) {
        let (now, next) = (self.0.join("now"), self.0.join("next"));
        fs::write(&next, format!("{seconds}\n")).unwrap();
        fs::rename(&next, now).unwrap();
    }

    /// Makes a server use this clock.
    pub(super) fn show_to(&self, command: &mut Command) {
        command.env("LD_PRELOAD", self.0.join("clock.so"));
        command.env("SNOWMINT_REDIS_CLOCK", self.0.join("now"));
    }
}
