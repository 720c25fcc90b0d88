//! A worker number given by hand.

use std::collections::HashSet;
use std::process::{Child, Stdio};

use super::server::{Folder, snowmint};

#[test]
fn a_hundred_commands_at_once_with_one_worker_make_no_duplicate() {
    let folder = Folder::new("by-hand");
    let commands: Vec<Child> = (0..100)
        .map(|_| {
            snowmint()
                .args(["mint", "--layout", "twitter", "--worker", "7", "-n", "1000"])
                .arg("--data-dir")
                .arg(folder.path())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut seen = HashSet::new();
    for command in commands {
        let output = command.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let ids: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        seen.extend(ids);
    }
    assert_eq!(seen.len(), 100_000);
}
