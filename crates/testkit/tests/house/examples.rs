//! Rust and manifests in the documents: `cargo test --doc` compiles each block of Rust, and each
//! dependency on a crate of the workspace is possible.

use std::collections::BTreeSet;
use std::path::Path;

use super::{crates, manifest, names, root, sources, texts};

/// A block of code of a page.
#[derive(Debug)]
struct Block {
    /// Number of its first line.
    line: usize,
    /// Text after the fence: the language, and how to test the block.
    language: String,
    text: String,
}

/// Returns the blocks of code of a Markdown text.
fn blocks(text: &str) -> Vec<Block> {
    let (mut found, mut open) = (Vec::new(), None::<Block>);
    for (at, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(language)) => {
                open = Some(Block { line: at + 2, language: language.into(), text: String::new() });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => block.text += &format!("{}\n", line.trim_start()),
            (None, None) => {}
        }
    }
    found
}

/// Returns the pages that a source includes as documentation, as paths in the repository.
fn included(file: &Path, source: &str) -> Vec<String> {
    let pages = source.split("#[doc = include_str!(\"").skip(1);
    let page = |rest: &str| {
        let page = file.parent()?.join(rest.split_once('"')?.0).canonicalize().ok()?;
        Some(page.strip_prefix(root()).ok()?.to_str()?.to_owned())
    };
    pages.filter_map(page).collect()
}

/// Returns the pages whose blocks of Rust the tests of some crate's documentation compile.
fn tested_pages() -> BTreeSet<String> {
    let is_tested = |krate: &String| {
        let manifest = manifest(krate);
        let doctest = manifest.get("lib").and_then(|lib| lib.get("doctest"));
        doctest.and_then(toml::Value::as_bool) != Some(false)
    };
    let sources = crates().into_iter().filter(is_tested).flat_map(|krate| sources(&krate, "src"));
    sources.flat_map(|(path, text)| included(&path, &text)).collect()
}

/// Returns the faults of a page's blocks of Rust, and how many blocks it has.
fn untested(file: &str, text: &str, tested: &BTreeSet<String>) -> (Vec<String>, usize) {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for Block { line, language, .. } in blocks(text) {
        let mut words = language.split([',', ' ']);
        if !words.next().is_some_and(|word| ["rust", "rs"].contains(&word)) {
            continue;
        }
        count += 1;
        if !["rust", "rust,no_run"].contains(&language.as_str()) {
            wrong.push(format!("{file}:{line}: {language} does not compile; use rust,no_run"));
        }
        if !tested.contains(file) {
            wrong.push(format!("{file}:{line}: add the page to crates/snowmint/src/lib.rs"));
        }
    }
    (wrong, count)
}

#[test]
fn rust_in_documents_is_compiled() {
    let (tested, mut wrong, mut count) = (tested_pages(), Vec::new(), 0);
    for (file, text) in texts().iter().filter(|(file, _)| file.ends_with(".md")) {
        let (faults, blocks) = untested(file, text, &tested);
        wrong.extend(faults);
        count += blocks;
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count >= 12, "found only {count} blocks: the search has to follow the documents");
}

/// Returns the faults of the dependencies on crates of the workspace that a manifest declares.
fn impossible(block: &Block) -> Vec<String> {
    let table: toml::Table = match block.text.parse() {
        Ok(table) => table,
        Err(error) => return vec![error.to_string()],
    };
    let mut wrong = Vec::new();
    let dependencies = table.get("dependencies").and_then(toml::Value::as_table);
    for (name, wanted) in dependencies.into_iter().flatten() {
        let Some(krate) = name.strip_prefix("snowmint") else { continue };
        let krate = krate.strip_prefix('-').unwrap_or(name);
        if !crates().iter().any(|known| known == krate) {
            wrong.push(format!("no crate {name}"));
            continue;
        }
        let version = wanted.get("version").unwrap_or(wanted).as_str();
        if version.is_none_or(|version| !env!("CARGO_PKG_VERSION").starts_with(version)) {
            wrong.push(format!("{name} has no version {version:?}"));
        }
        let known = names(&manifest(krate), "features");
        let features = wanted.get("features").and_then(toml::Value::as_array);
        for feature in features.into_iter().flatten() {
            if !known.iter().any(|known| Some(known.as_str()) == feature.as_str()) {
                wrong.push(format!("{name} has no feature {feature}"));
            }
        }
    }
    wrong
}

#[test]
fn dependencies_in_documents_are_possible() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (file, text) in texts().iter().filter(|(file, _)| file.ends_with(".md")) {
        let is_manifest = |block: &Block| {
            block.language == "toml"
                && ["dependencies", "snowmint = "].iter().any(|word| block.text.contains(word))
        };
        for block in blocks(text).into_iter().filter(is_manifest) {
            count += 1;
            let faults = impossible(&block);
            wrong.extend(faults.iter().map(|fault| format!("{file}:{}: {fault}", block.line)));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count >= 1, "found no manifest: the search has to follow the documents");
}

#[test]
fn faults_of_examples_are_found() {
    let tested = BTreeSet::from(["a.md".to_owned()]);
    let faults = |file, text: &str| untested(file, text, &tested).0.len();
    assert_eq!(faults("a.md", "```rust,no_run\nlet a;\n```\n- b\n  ```rust\n  let c;\n  ```"), 0);
    assert_eq!(faults("b.md", "```sh\na\n```\n```rust\nlet a;\n```"), 1);
    assert_eq!(faults("b.md", "```rust ignore\nlet a;\n```"), 2);
    assert_eq!(faults("a.md", "```rust,ignore\nlet a;\n```"), 1);
    assert_eq!(faults("a.md", "```rs\nlet a;\n```"), 1);

    let here = root().join("crates/core/src/lib.rs");
    let source = "#[doc = include_str!(\"../README.md\")]\nlet a = include_str!(\"b.md\");";
    assert_eq!(included(&here, source), ["crates/core/README.md"]);

    let faults = |lines: &str| {
        let block = &blocks(&format!("```toml\n[dependencies]\n{lines}\n```"))[0];
        impossible(block).len()
    };
    assert_eq!(
        faults("snowmint = \"0.1\"\nsnowmint-core = { version = \"0.1.0\" }\ntokio = \"9\""),
        0
    );
    assert_eq!(faults("snowmint = { version = \"0.1\", features = [\"client\", \"clients\"] }"), 1);
    assert_eq!(faults("snowmint = \"0.2\""), 1);
    assert_eq!(faults("snowmint-clients = \"0.1\""), 1);
    assert_eq!(faults("snowmint = "), 1);
}
