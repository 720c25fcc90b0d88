//! Servers on one half of the processors and clients on the other, so that only the server is
//! measured.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Processor lists: the clients', then the servers'.
static HALVES: OnceLock<[String; 2]> = OnceLock::new();

/// Pins this thread, and what it starts, to the first half of the processors; [`served`] is the
/// exception. Returns the number of processors in that half.
pub(crate) fn part() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let half = processors / 2;
    assert!(half > 0, "one processor cannot be parted");
    let halves =
        HALVES.get_or_init(|| [format!("0-{}", half - 1), format!("{half}-{}", processors - 1)]);
    move_to(&halves[0]);
    half
}

/// Starts a server on the servers' processors.
pub fn served<T>(start: impl FnOnce() -> T) -> T {
    let Some([asking, answering]) = HALVES.get() else { return start() };
    move_to(answering);
    let started = start();
    move_to(asking);
    started
}

/// Pins this thread; processes that it starts inherit the setting.
fn move_to(processors: &str) {
    let thread = fs::read_link("/proc/thread-self").expect("Linux says which thread this is");
    let thread = thread.file_name().expect("its number").to_owned();
    let mut taskset = Command::new("taskset");
    taskset.args(["--cpu-list", "--pid", processors]).arg(thread).stdout(Stdio::null());
    assert!(taskset.status().expect("taskset is there").success(), "{taskset:?}");
}
