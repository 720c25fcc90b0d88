//! Values that shells complete: layouts, text forms, words of keys, and sources, for which a server
//! is asked.

use std::env;

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use serde_json::Value;
use snowmint_core::layout::{PRESETS, Preset};
use snowmint_core::text::Format;
use snowmint_wire::error::Code;
use snowmint_wire::http::{SourceBody, SourcesBody};

use crate::client::{ApiClient, DEFAULT_SERVER};

/// Longest wait for a server while a user waits for the shell.
const SERVER_MS_MAX: u64 = 1_000;

pub(super) fn layouts() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let candidate = |preset: &Preset| {
            CompletionCandidate::new(preset.name()).help(Some(preset.about().into()))
        };
        PRESETS.iter().map(candidate).collect()
    })
}

pub(super) fn formats() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(Format::ALL.map(Format::name)))
}

pub(super) fn codes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(Code::ALL.iter().map(|code| code.as_str())))
}

/// Returns the completion of a key that takes one of these words.
pub(super) fn words(words: &'static [&'static str]) -> ArgValueCandidates {
    ArgValueCandidates::new(move || candidates(words.iter().copied()))
}

/// Returns the completion of a source's name. It asks the server of the command line.
pub(super) fn sources() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let words = env::args_os().filter_map(|word| word.into_string().ok());
        let server = server_of(words).unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        // Without a response there is nothing to offer, and no place for an error.
        let client = ApiClient::new(&server).ok();
        let listed = client.and_then(|client| client.get_within(SERVER_MS_MAX, "/v1/sources").ok());
        let Some(listed): Option<SourcesBody> = listed else { return Vec::new() };
        let candidate = |body: &SourceBody| {
            let kind = body.keys.get("kind").and_then(Value::as_str);
            CompletionCandidate::new(&body.name).help(kind.map(|kind| kind.to_owned().into()))
        };
        listed.sources.iter().map(candidate).collect()
    })
}

fn candidates(words: impl IntoIterator<Item = &'static str>) -> Vec<CompletionCandidate> {
    words.into_iter().map(CompletionCandidate::new).collect()
}

/// Returns the last server in the words of a command line. bash splits an address at its colons.
fn server_of(words: impl Iterator<Item = String>) -> Option<String> {
    let (mut server, mut is_open) = (None::<String>, false);
    for word in words {
        let is_joint = word == "=" || word == ":";
        match &mut server {
            _ if word == "--server" => (server, is_open) = (Some(String::new()), true),
            _ if word.starts_with("--server=") => {
                (server, is_open) = (word.strip_prefix("--server=").map(str::to_owned), true);
            }
            Some(address) if is_open && address.is_empty() && word == "=" => {}
            Some(address)
                if is_open && (address.is_empty() || is_joint || address.ends_with(':')) =>
            {
                address.push_str(&word);
            }
            _ => is_open = false,
        }
    }
    server.filter(|server| !server.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_read_as_each_shell_passes_it() {
        for (line, expected) in [
            ("snowmint mint --server 10.0.0.1:7700 ord", Some("10.0.0.1:7700")),
            ("snowmint mint --server=10.0.0.1:7700 ord", Some("10.0.0.1:7700")),
            ("snowmint mint --server 10.0.0.1 : 7700 ord", Some("10.0.0.1:7700")),
            ("snowmint mint --server = http : //ids : 7700 ord", Some("http://ids:7700")),
            ("snowmint mint ord", None),
            ("snowmint mint --server", None),
        ] {
            let words = line.split(' ').map(str::to_owned);
            assert_eq!(server_of(words).as_deref(), expected, "{line}");
        }
    }
}
