//! bash, which splits words at colons and equal signs: `--server 10.0.0.1:7700` are four words.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::engine;
use clap_complete::env::{Bash, EnvCompleter};

/// The completions of [`Bash`], for words that are joined again.
pub(super) struct JoinedBash;

impl EnvCompleter for JoinedBash {
    fn name(&self) -> &'static str {
        Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        Bash.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        script: &mut dyn Write,
    ) -> io::Result<()> {
        Bash.write_registration(var, name, bin, completer, script)
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        directory: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        // The variables of the script.
        let index = env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
        let separator = env::var("_CLAP_IFS").unwrap_or_else(|_| "\n".to_owned());
        let (words, index, typed) = joined(words, index.unwrap_or_default());
        let candidates = engine::complete(command, words, index, directory)?;
        let candidates = candidates.iter().map(|candidate| {
            let value = candidate.get_value().to_string_lossy();
            // bash replaces the word after the last joint only.
            value.strip_prefix(typed.as_str()).map_or_else(|| value.to_string(), str::to_owned)
        });
        write!(out, "{}", candidates.collect::<Vec<_>>().join(&separator))
    }
}

/// Joins what bash split. Returns the words, the index of the one to complete, and its part before
/// the last joint.
fn joined(split: Vec<OsString>, index: usize) -> (Vec<OsString>, usize, String) {
    let is_joint = |word: &OsStr| word == ":" || word == "=";
    let mut words: Vec<OsString> = Vec::new();
    let (mut at, mut typed, mut after_joint) = (0, String::new(), false);
    for (place, word) in split.into_iter().enumerate() {
        let joint = is_joint(&word);
        let before = match words.last_mut() {
            // The first word is the program.
            Some(last) if place > 1 && (joint || after_joint) => {
                let before = last.to_string_lossy().into_owned();
                last.push(&word);
                before
            }
            _ => {
                words.push(word);
                String::new()
            }
        };
        if place == index {
            at = words.len() - 1;
            typed = before;
        }
        after_joint = joint;
    }
    (words, at, typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_as_the_user_wrote_them() {
        for (split, index, expected, at, typed) in [
            ("snowmint mint ord", 2, "snowmint mint ord", 2, ""),
            ("snowmint mint --server h : 77 ord", 6, "snowmint mint --server h:77 ord", 4, ""),
            ("snowmint mint --format = ba", 4, "snowmint mint --format=ba", 2, "--format="),
            ("snowmint mint --server http : //h", 5, "snowmint mint --server http://h", 3, "http:"),
        ] {
            let words = split.split(' ').map(OsString::from).collect();
            let (words, place, before) = joined(words, index);
            let expected: Vec<_> = expected.split(' ').map(OsString::from).collect();
            assert_eq!((words, place, before.as_str()), (expected, at, typed), "{split}");
        }
    }
}
