//! Helpers that run the real binary.
#![allow(clippy::unwrap_used, reason = "a test reports by a panic")]
#![allow(clippy::disallowed_methods, reason = "real servers are waited for in real time")]
#![allow(dead_code, reason = "each test uses its own share")]

use std::io::Write as _;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use snowmint_testkit::children;

/// Returns the command under test, without inherited state that could change it. It ends with these
/// tests.
pub(crate) fn snowmint(args: &[&str]) -> Command {
    let mut command = children::command(env!("CARGO_BIN_EXE_snowmint"));
    command.args(args).env_clear().stdin(Stdio::null());
    command
}

/// Longest wait for anything on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the end of a process.
#[track_caller]
pub(crate) fn ended(child: &mut Child) -> ExitStatus {
    let mut status = None;
    until("the process ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

/// Output and exit code of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: i32,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().expect("ended by a signal"),
        }
    }
}

impl Ran {
    /// Returns the output of a command that must succeed without messages.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }
}

pub(crate) fn run(args: &[&str]) -> Ran {
    snowmint(args).output().unwrap().into()
}

pub(crate) fn run_with(args: &[&str], stdin: &str) -> Ran {
    let mut child = snowmint(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let input = stdin.to_owned();
    // A separate thread writes: the command may print before it has read everything.
    let writer = std::thread::spawn(move || {
        let _ = pipe.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.into()
}

pub(crate) fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}
