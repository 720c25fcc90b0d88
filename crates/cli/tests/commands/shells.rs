//! Completions and manual pages, in a real shell and with a real formatter.

use std::path::Path;
use std::process::Command;

use crate::common::{run, snowmint};
use crate::server::{Server, serve};
use snowmint_testkit::programs;

/// Returns the PATH with the binary in it: the scripts call it by name.
fn path() -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_snowmint")).parent().unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

/// Returns the completions that bash offers for the last of these words.
fn offered(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("snowmint.bash");
    std::fs::write(&script, run(&["completions", "bash"]).ok()).unwrap();
    let last = words.len() - 1;
    let (word, before) = (words[last], words[last - 1]);
    let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
    let quoted = quoted.join(" ");
    let completion_script = format!(
        "set -u; source {}; COMP_WORDS=({quoted}); COMP_CWORD={last}; COMP_TYPE=9; \
         _clap_complete_snowmint snowmint '{word}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let mut bash = Command::new("bash");
    let output = bash.args(["--norc", "-c", &completion_script]).env("PATH", path()).output();
    let output = output.unwrap();
    let (out, err) = (output.stdout, String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && err.is_empty(), "{err}");
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    assert_eq!(offered(&["snowmint", "wor"]), ["worker"]);
    assert_eq!(offered(&["snowmint", "worker", "fast"]), ["fast-forward"]);
    assert_eq!(offered(&["snowmint", "mint", "--form"]), ["--format"]);
    let shells = offered(&["snowmint", "completions", ""]);
    for word in ["bash", "zsh", "fish", "powershell", "--help"] {
        assert!(shells.contains(&word.to_owned()), "{word}: {shells:?}");
    }
    // Options of one command are not offered for another.
    assert_eq!(offered(&["snowmint", "bench", "--pipe"]), ["--pipeline"]);
    assert_eq!(offered(&["snowmint", "decode", "--pipe"]).concat(), "");
}

#[test]
fn bash_completes_values() {
    assert_eq!(offered(&["snowmint", "mint", "--format", "base3"])[..2], ["base36", "base32"]);
    assert_eq!(offered(&["snowmint", "decode", "--layout", "sony"]), ["sonyflake"]);
    let kinds = offered(&["snowmint", "source", "define", "x", "--kind", "s"]);
    assert_eq!(kinds, ["snowflake", "segment"]);
    assert_eq!(offered(&["snowmint", "explain", "pool"]), ["pool_full"]);
    // bash makes three words of an equal sign in a word, and replaces the last.
    assert_eq!(offered(&["snowmint", "mint", "--format", "=", "base62-"]), ["base62-padded"]);
}

#[test]
fn bash_completes_the_sources_of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(serve(folder.path(), &[]));
    let address = server.http.clone();
    let (host, port) = address.rsplit_once(':').unwrap();
    let words = ["snowmint", "mint", "--server", host, ":", port, "num"];
    assert_eq!(offered(&words), ["numbers"]);
    let words = ["snowmint", "source", "disable", "--server", host, ":", port, "count"];
    assert_eq!(offered(&words), ["counters"]);
    drop(server);
    // Without a server there is nothing to offer, and no error in the middle of a line.
    assert_eq!(offered(&["snowmint", "mint", "--server", host, ":", port, "num"]).concat(), "");
}

/// Their shells are not there: the scripts are checked for their signs, and the program is called
/// as they call it.
#[test]
fn other_shells_complete_values_too() {
    for (shell, sign) in [
        ("zsh", "#compdef snowmint"),
        ("fish", "complete --keep-order --exclusive --command snowmint"),
        ("powershell", "Register-ArgumentCompleter -Native -CommandName snowmint"),
    ] {
        let script = run(&["completions", shell]).ok();
        assert!(
            script.contains(sign) && script.contains("_SNOWMINT_COMPLETE"),
            "{shell}: {script}"
        );
        let mut command = snowmint(&["--", "snowmint", "mint", "--format", "base62-"]);
        command.env("_SNOWMINT_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "3");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{shell}: {output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "base62-padded", "{shell}");
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
    for part in ["NAME", "snowmint", "SYNOPSIS", "SUBCOMMANDS", "snowmint-serve(1)", "EXIT STATUS"]
    {
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
    let known = known.strip_suffix(" [not_found]").unwrap();
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
        let page = formatted(&page);
        let command = name.trim_end_matches(".1");
        let (_, examples) = page.split_once(" EXAMPLES ").unwrap_or_else(|| panic!("{page}"));
        let (examples, status) = examples.split_once(" EXIT STATUS 0 done 1 ").unwrap();
        assert!(!examples.contains("Exit codes") && status.contains("4 not available"), "{page}");
        // A name may have a dash: worker fast-forward.
        let is_own = format!(" {examples}").split(" snowmint ").any(|words| {
            let of_page = command.trim_start_matches("snowmint").trim_start_matches('-');
            words.replace(' ', "-").starts_with(of_page)
        });
        assert!(is_own, "{name} has no example of its own: {examples}");
    }
}
