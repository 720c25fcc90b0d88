//! Completions and manual pages, in a real shell and with a real formatter.

use std::path::Path;
use std::process::Command;

use crate::common::run;
use snowmint_testkit::programs;

/// Returns the completions that bash offers for the last of these words.
fn offered(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("snowmint.bash");
    std::fs::write(&script, run(&["completions", "bash"]).ok()).unwrap();
    let last = words.len() - 1;
    let (word, before) = (words[last], words[last - 1]);
    let quoted = words.join(" ");
    let completion_script = format!(
        "set -u; source {}; COMP_WORDS=({quoted}); COMP_CWORD={last}; \
         _snowmint snowmint '{word}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let output = Command::new("bash").args(["--norc", "-c", &completion_script]).output().unwrap();
    let (out, err) = (output.stdout, String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && err.is_empty(), "{err}");
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    assert_eq!(offered(&["snowmint", "wor"]), ["worker"]);
    assert_eq!(offered(&["snowmint", "worker", "fast"]), ["fast-forward"]);
    assert_eq!(offered(&["snowmint", "mint", "--form"]), ["--format"]);
    assert_eq!(offered(&["snowmint", "completions", ""])[..3], ["-h", "-V", "--help"]);
    assert!(offered(&["snowmint", "completions", "f"]).contains(&"fish".to_owned()));
    // Options of one command are not offered for another.
    assert_eq!(offered(&["snowmint", "bench", "--pipe"]), ["--pipeline"]);
    assert_eq!(offered(&["snowmint", "decode", "--pipe"]).concat(), "");
}

#[test]
fn other_shells_are_given_every_command_too() {
    for (shell, sign) in [("zsh", "#compdef snowmint"), ("fish", "complete -c snowmint")] {
        let script = run(&["completions", shell]).ok();
        assert!(script.contains(sign), "{shell}");
        for command in ["serve", "mint", "bench", "restripe", "fast-forward"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    assert_eq!(run(&["completions", "tcsh"]).code, 2);
}

/// Returns the page in the reader's form.
fn formatted(page: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.1");
    std::fs::write(&file, page).unwrap();
    // man calls groff; all its warnings are errors here, except for lines that it cannot fill.
    let output = Command::new(programs::installed("groff"))
        .args(["-man", "-Kutf8", "-Tutf8", "-ww", "-Wbreak", "-P-cbou"])
        .arg(&file)
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && err.is_empty(), "{err}");
    // groff fills lines with spaces.
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs groff: --features real-servers")]
fn manual_pages_can_be_read() {
    let page = formatted(&run(&["man"]).ok());
    for part in ["NAME", "snowmint", "SYNOPSIS", "SUBCOMMANDS", "snowmint-serve(1)", "Exit codes"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = formatted(&run(&["man", "source", "define"]).ok());
    for part in ["snowmint-source-define", "--layout"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let ran = run(&["man", "nothing"]);
    assert_eq!(ran.code, 1);
    let (wrong, known) = ran.err.trim().split_once("; expected one of ").unwrap();
    assert!(wrong.ends_with("unknown command snowmint nothing"), "{}", ran.err);
    let known: Vec<_> = known.split(", ").collect();
    for command in ["serve", "mint", "worker", "man"] {
        assert!(known.contains(&command), "{command}: {}", ran.err);
    }
    assert!(!known.contains(&"fast-forward"), "a command of worker: {}", ran.err);
}

/// Writes all pages into a subfolder, and returns their names.
fn pages(folder: &Path) -> Vec<String> {
    let dir = folder.join("man1");
    run(&["man", "--dir", dir.to_str().unwrap()]).ok();
    let mut names: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let names = pages(folder.path());
    for name in ["snowmint.1", "snowmint-serve.1", "snowmint-worker-fast-forward.1"] {
        assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
    }
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs groff: --features real-servers")]
fn every_page_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let names = pages(folder.path());
    assert!(names.len() > 20, "{names:?}");
    for name in &names {
        let page = std::fs::read_to_string(folder.path().join("man1").join(name)).unwrap();
        assert!(formatted(&page).contains("NAME"), "{name}");
    }
}
