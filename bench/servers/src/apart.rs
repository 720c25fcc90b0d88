//! Servers on one half of the processors and whoever asks on the other, so that what is measured is the server's.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The processors of whoever asks, and those of the servers.
static HALVES: OnceLock<[String; 2]> = OnceLock::new();

/// From now on. What this thread starts is on the first half; but for [`served`]. Answers how many processors
/// that are.
pub(crate) fn part() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let half = processors / 2;
    assert!(half > 0, "one processor cannot be parted");
    let halves =
        HALVES.get_or_init(|| [format!("0-{}", half - 1), format!("{half}-{}", processors - 1)]);
    move_to(&halves[0]);
    half
}

/// Starts what answers.
pub fn served<T>(start: impl FnOnce() -> T) -> T {
    let Some([asking, answering]) = HALVES.get() else { return start() };
    move_to(answering);
    let started = start();
    move_to(asking);
    started
}

/// Moves this thread: what it starts goes with it.
fn move_to(processors: &str) {
    let thread = fs::read_link("/proc/thread-self").expect("Linux says which thread this is");
    let thread = thread.file_name().expect("its number").to_owned();
    let mut taskset = Command::new("taskset");
    taskset.args(["--cpu-list", "--pid", processors]).arg(thread).stdout(Stdio::null());
    assert!(taskset.status().expect("taskset is there").success(), "{taskset:?}");
}
