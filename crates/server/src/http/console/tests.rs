//! Rules that the files of the console must obey.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::super::openapi::described;
use super::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("console")
}

fn text(file: &File) -> &'static str {
    std::str::from_utf8(file.bytes).unwrap()
}

fn scripts() -> impl Iterator<Item = &'static File> {
    FILES.iter().filter(|file| file.content_type == SCRIPT)
}

fn is_library(file: &File) -> bool {
    file.name.starts_with("uplot/")
}

/// Returns the names of the files in a folder of the console.
fn files_in(name: &str) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder().join(name)).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|entry| entry.file_name().into_string().unwrap())
}

/// Returns each text between the two marks.
fn between<'a>(text: &'a str, begin: &'a str, end: char) -> impl Iterator<Item = &'a str> {
    text.split(begin).skip(1).map(move |rest| rest.split(end).next().unwrap_or_default())
}

#[test]
fn every_file_of_the_folder_is_served() {
    let library = files_in("uplot").map(|name| format!("uplot/{name}"));
    let mut there: BTreeSet<_> = files_in("").chain(library).collect();
    // For node alone, which tests the scripts; and for readers of the repository.
    assert!(there.remove("package.json") && there.remove("uplot/README.md"));
    let served: BTreeSet<_> = FILES.iter().map(|file| file.name.to_owned()).collect();
    assert_eq!(served, there);
    assert_eq!(served.len(), FILES.len(), "none is there twice");
    for file in FILES {
        let extension = file.name.rsplit('.').next().unwrap();
        let wanted = match extension {
            "html" => HTML,
            "css" => CSS,
            "js" => SCRIPT,
            "svg" => IMAGE,
            "uplot/LICENSE" => TEXT,
            other => panic!("no type for {other}"),
        };
        assert_eq!(file.content_type, wanted, "{}", file.name);
    }
}

#[test]
fn console_loads_nothing_from_other_sites() {
    // The name of the SVG namespace is an address that no client calls.
    const NAME: &str = "http://www.w3.org/2000/svg";
    for file in FILES.iter().filter(|file| !is_library(file)) {
        let text = text(file).replace(NAME, "");
        for word in ["://", "url(//", "\"//", "'//", "@import", "importScripts"] {
            assert!(!text.contains(word), "{} has {word}", file.name);
        }
    }
    let mut loaded = 0;
    let page = text(&FILES[0]);
    for part in between(page, "=\"console/", '"') {
        assert!(FILES.iter().any(|file| file.name == part), "the page loads {part}");
        loaded += 1;
    }
    for script in scripts().filter(|file| !is_library(file)) {
        for part in between(text(script), "from \"", '"') {
            let name =
                part.strip_prefix("./").unwrap_or_else(|| panic!("{part} is in another folder"));
            assert!(scripts().any(|other| other.name == name), "{} loads {name}", script.name);
            loaded += 1;
        }
    }
    assert!(loaded > 20, "{loaded}");
}

/// A reader of the repository can compare them with the package on npm.
#[test]
fn library_of_the_charts_is_unchanged() {
    let readme = std::fs::read_to_string(folder().join("uplot/README.md")).unwrap();
    let published = FILES.iter().filter(|file| is_library(file) && file.content_type != TEXT);
    assert_eq!(published.clone().count(), 2);
    for file in published {
        let digest = Sha256::digest(file.bytes);
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(readme.contains(&hash), "{} has the hash {hash}", file.name);
    }
    assert!(readme.contains("1.6.32") && text(find("uplot/LICENSE")).contains("MIT"));
    assert!(text(find("uplot/uPlot.iife.min.js")).contains("(v1.6.32)"));
}

fn find(name: &str) -> &'static File {
    FILES.iter().find(|file| file.name == name).unwrap()
}

#[test]
fn all_files_together_are_small() {
    let sum: usize = FILES.iter().map(|file| file.bytes.len()).sum();
    assert!(sum < 300_000, "{sum} bytes");
}

/// The policy of the page forbids it anyway; so the page must not need it.
#[test]
fn the_page_has_no_script_and_no_style_within() {
    let page = text(&FILES[0]).to_lowercase();
    assert!(!page.contains("<style") && !page.contains(" style="), "a style within the page");
    assert!(between(&page, "<script", '>').all(|rest| rest.contains("src=")));
    assert!(!page.contains("javascript:"));
    for rest in between(&page, " on", '=') {
        let is_word = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_lowercase());
        assert!(!is_word, "a listener within the page: on{rest}");
    }
    for script in scripts() {
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "cssText",
        ] {
            assert!(!text(script).contains(word), "{} has {word}", script.name);
        }
        assert!(!text(script).contains("style:"), "{} sets a style as an attribute", script.name);
    }
}

/// The console calls only described paths, so any client can do the same.
#[test]
fn every_call_is_one_that_is_described() {
    let (_, about) = described().split_for_parts();
    let about: serde_json::Value = serde_json::from_str(&about.to_json().unwrap()).unwrap();
    let mut calls = BTreeSet::new();
    for script in scripts() {
        let text = text(script);
        assert_eq!(text.contains("fetch("), script.name == "api.js", "{} asks", script.name);
        assert!(!text.contains("XMLHttpRequest") && !text.contains("WebSocket"));
        // Skips the definition of `call` itself: the only text with these names.
        for rest in between(text, " call(", ')').filter(|rest| !rest.starts_with("method, path")) {
            let quoted: Vec<_> = rest.split('"').collect();
            let [_, method, _, path, ..] = quoted[..] else { panic!("a call of {rest}") };
            calls.insert((method.to_lowercase(), path.to_owned()));
        }
    }
    assert!(calls.len() >= 13, "{calls:?}");
    for (method, path) in calls {
        assert!(about["paths"][&path][&method].is_object(), "{method} {path} is not described");
    }
}
