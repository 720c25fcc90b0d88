//! Pages of the documents that other files name, and what pages list.

use std::collections::BTreeSet;
use std::fs;

use super::{root, texts};

/// Returns the pages below `docs/` that a text names; those of other sites are no pages of ours.
fn pages_named(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_./-:#".contains(c);
    let words = text.split(move |c| !is_part(c));
    let is_ours = |word: &&str| !word.contains("://") || word.contains("snowmint/snowmint/");
    words.filter(is_ours).filter_map(|word| {
        let (before, path) = word.split_once("docs/")?;
        let path = path.split('#').next()?.trim_end_matches(['.', ':']);
        let begins = before.is_empty() || before.ends_with('/');
        (begins && path.ends_with(".md")).then_some(path)
    })
}

/// An alert or a message that names no page leaves its reader alone.
#[test]
fn pages_that_files_name_exist() {
    let named = "see ../docs/a/b.md#c. or https://other/docs/x.md, docs/d.md: undocs/y.md";
    assert_eq!(pages_named(named).collect::<Vec<_>>(), ["a/b.md", "d.md"]);
    let (docs, mut found, mut missing) = (root().join("docs"), 0, Vec::new());
    for (file, text) in texts() {
        // This file has examples; `FOLDER` stands for any folder, and mdBook makes `index.md`.
        let is_example = |page: &&str| {
            file.ends_with("house/pages.rs") || page.starts_with("FOLDER/") || *page == "index.md"
        };
        for page in pages_named(&text).filter(|page| !is_example(page)) {
            found += 1;
            if !docs.join(page).exists() {
                missing.push(format!("{file}: docs/{page}"));
            }
        }
    }
    assert!(found > 100, "{found}");
    assert!(missing.is_empty(), "pages that do not exist:\n{}", missing.join("\n"));
}

#[test]
fn alerts_have_a_first_look() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let alerts = read("deploy/prometheus/alerts.yaml");
    let alerts: BTreeSet<&str> =
        alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let page = read("docs/how-to/watch-it.md");
    let looks = page.lines().filter(|line| line.starts_with("| `Snowmint"));
    let listed: BTreeSet<&str> =
        looks.flat_map(|row| row.split('`')).filter(|word| word.starts_with("Snowmint")).collect();
    assert_eq!(listed, alerts);
}

/// A page that no index names is hard to find.
#[test]
fn index_names_each_page_once() {
    const INDEX: &str = "docs/README.md";
    let index = fs::read_to_string(root().join(INDEX)).unwrap();
    let mut wrong = Vec::new();
    for (file, _) in texts() {
        let Some(page) = file.strip_prefix("docs/").filter(|page| page.ends_with(".md")) else {
            continue;
        };
        let count = index.matches(&format!("]({page})")).count();
        if file != INDEX && count != 1 {
            wrong.push(format!("{INDEX} names {page} {count} times"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
