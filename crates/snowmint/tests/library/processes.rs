//! Many processes with one worker: this test binary, started again and again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{Seen, TempDir};
use snowmint::{Layout, Snowflake};

const DIR: &str = "SNOWMINT_TEST_DIR";
const COUNT: &str = "SNOWMINT_TEST_COUNT";

/// Mints in a child process if the environment requests it; does nothing in an ordinary run of the
/// tests.
#[test]
fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let count: usize = std::env::var(COUNT).unwrap().parse().unwrap();
    let ids = Snowflake::builder()
        .layout(Layout::TWITTER)
        .worker(7)
        .data_dir(dir)
        .lock_wait_ms(120_000)
        .build()
        .unwrap();
    let mut out = std::io::stdout().lock();
    for _ in 0..count {
        writeln!(out, "id {}", ids.mint().unwrap()).unwrap();
    }
    out.flush().unwrap();
}

fn start(dir: &TempDir, count: usize) -> Child {
    start_by(Command::new(std::env::current_exe().unwrap()), dir, count)
}

/// Does the same by a command that ends in this binary's name.
fn start_by(mut command: Command, dir: &TempDir, count: usize) -> Child {
    command
        .args(["processes::child", "--exact", "--nocapture", "--test-threads=1"])
        .env(DIR, dir.path())
        .env(COUNT, count.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Parses the ID in a child's line. A line cut short by a kill is left out.
fn id(line: &str) -> Option<u64> {
    line.split_once("id ")?.1.strip_suffix('\n')?.parse().ok()
}

/// Reads the child's whole output.
fn read_all(child: &mut Child) -> Vec<u64> {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let (mut ids, mut line) = (Vec::new(), String::new());
    while out.read_line(&mut line).unwrap() > 0 {
        ids.extend(id(&line));
        line.clear();
    }
    ids
}

#[test]
fn eight_processes_at_once_make_no_duplicate() {
    let dir = TempDir::new();
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let mut child = start(&dir, 1_000);
            std::thread::spawn(move || {
                let ids = read_all(&mut child);
                assert!(child.wait().unwrap().success());
                ids
            })
        })
        .collect();
    let mut seen = Seen::default();
    for reader in readers {
        let ids = reader.join().unwrap();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.is_sorted_by(|a, b| a < b));
        ids.into_iter().for_each(|id| seen.add(id));
    }
    assert_eq!(seen.len(), 8_000);
}

#[test]
fn processes_killed_in_the_middle_make_no_duplicate() {
    let dir = TempDir::new();
    let mut seen = Seen::default();
    let mut last = 0;
    for round in 0..8 {
        let mut child = start(&dir, usize::MAX);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        // Some rounds end in the first window, some in a later one.
        let mut left = 1 + round * 5_000;
        while left > 0 && out.read_line(&mut line).unwrap() > 0 {
            if let Some(id) = id(&line) {
                assert!(id > last);
                last = id;
                seen.add(id);
                left -= 1;
            }
            line.clear();
        }
        // SIGKILL.
        child.kill().unwrap();
        while out.read_line(&mut line).unwrap() > 0 {
            if let Some(id) = id(&line) {
                last = id;
                seen.add(id);
            }
            line.clear();
        }
        child.wait().unwrap();
    }
    assert!(seen.len() > 8 * 7 / 2 * 5_000);
}

/// A process that can open the lock file can hold the lock, and one that can write a mark can lower
/// it.
#[test]
fn worker_files_are_private_under_any_umask() {
    let dir = TempDir::new();
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 0; exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
    let mut child = start_by(shell, &dir, 10);
    assert_eq!(read_all(&mut child).len(), 10);
    assert!(child.wait().unwrap().success());
    let workers = dir.path().join("workers");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&workers), 0o700);
    assert_eq!(mode(&dir.mark_file()), 0o600);
    for file in std::fs::read_dir(&workers).unwrap() {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}
