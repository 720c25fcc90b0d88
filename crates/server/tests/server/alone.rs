//! Helpers for tests that read state of the whole process: its memory, its log, its limits.

use std::any::type_name;
use std::process::Command;

/// Environment variable with the name of the test that a process was started for.
const ALONE: &str = "SNOWMINT_TEST_ALONE";

/// Runs a test, which passes itself, in a process of its own: this binary, started again for it. No
/// other test runs there, whatever the test runner does.
pub(crate) fn alone<T>(_: T, test: impl Future<Output = ()>) {
    let name = type_name::<T>().split_once("::").unwrap().1;
    if std::env::var(ALONE).is_ok_and(|wanted| wanted == name) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(test);
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(ALONE, name);
    let output = again.output().unwrap();
    let streams =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{}{}", streams[0], streams[1]);
    assert!(streams[0].contains("1 passed"), "{name} is no test: {}", streams[0]);
}

/// Returns the memory that this process has allocated and uses, in KiB. Pages of its code do not
/// count: which of them are in memory depends on the build, and on what else ran.
pub(crate) fn anonymous_kib() -> u64 {
    status("RssAnon:")
}

/// Returns the peak of its memory, with the pages of its code, in KiB.
pub(crate) fn peak_kib() -> u64 {
    status("VmHWM:")
}

fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
