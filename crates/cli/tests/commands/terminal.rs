//! Output on a terminal, which `script` provides.

use std::process::{Command, Stdio};

use crate::common::{run, until};
use snowmint_testkit::{children, programs};

/// Returns the command that runs a shell's line on a terminal of 60 columns.
fn on_terminal(line: &str) -> Command {
    let mut command = children::command(programs::installed("script"));
    let line = format!("stty cols 60 rows 24; {line}");
    command.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
    command
}

fn program() -> String {
    format!("'{}'", env!("CARGO_BIN_EXE_snowmint"))
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs script: --features real-servers")]
fn table_fits_the_terminal_and_is_whole_in_a_pipe() {
    let whole = run(&["explain"]).ok();
    assert!(whole.lines().any(|line| line.len() > 60) && !whole.contains('\u{2026}'), "{whole}");
    let output = on_terminal(&format!("NO_COLOR=1 {} explain", program())).output().unwrap();
    let cut = String::from_utf8(output.stdout).unwrap();
    assert_eq!(cut.lines().count(), whole.lines().count(), "{cut}");
    for line in cut.lines() {
        assert!(line.trim_end().chars().count() <= 60, "{line}");
    }
    assert!(cut.contains('\u{2026}') && !cut.contains('\u{1b}'), "{cut}");
}

/// A word that a terminal breaks is hard to read.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs script: --features real-servers")]
fn explanation_is_filled_to_the_width_of_the_terminal() {
    let code = "store_rolled_back";
    let piped = run(&["explain", code]).ok();
    let longest = |text: &str| text.lines().map(|line| line.trim_end().chars().count()).max();
    assert!((70..=80).contains(&longest(&piped).unwrap()), "{piped}");
    let line = format!("NO_COLOR=1 {} explain {code}", program());
    let shown = String::from_utf8(on_terminal(&line).output().unwrap().stdout).unwrap();
    assert!((50..=60).contains(&longest(&shown).unwrap()), "{shown}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&shown), words(&piped));
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs script: --features real-servers")]
fn terminal_gets_a_hint_at_the_explanation() {
    let line = format!("NO_COLOR=1 {} health --server 127.9.9.9:9", program());
    let output = on_terminal(&line).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("`snowmint explain unavailable`"), "{text}");
    let ran = run(&["health", "--server", "127.9.9.9:9"]);
    assert!(!ran.err.contains("snowmint explain"), "{}", ran.err);
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs script: --features real-servers")]
fn terminal_is_greeted_once_the_server_is_ready() {
    let folder = tempfile::tempdir().unwrap();
    let (data, shown) = (folder.path().join("data"), folder.path().join("shown"));
    let line = format!(
        "NO_COLOR=1 exec setpriv --pdeathsig KILL -- {} serve --data-dir '{}' --http 127.0.0.1:0 --resp 127.0.0.1:0",
        program(),
        data.display()
    );
    let file = std::fs::File::create(&shown).unwrap();
    let mut child = on_terminal(&line).stdout(file).spawn().unwrap();
    let text = || std::fs::read_to_string(&shown).unwrap();
    until("the greeting", || text().contains("try it"));
    let shown = text();
    let address = shown.split("listening http=").nth(1).unwrap().split(' ').next().unwrap();
    for part in [
        "\nready\r\n",
        &format!("  console   http://{address}/\r\n"),
        &format!("  try it    curl 'http://{address}/v1/ids/default?count=2'\r\n"),
    ] {
        assert!(shown.contains(part), "{part:?}: {shown:?}");
    }
    // The end of its parent ends the server.
    child.kill().unwrap();
    child.wait().unwrap();
}
