//! The page of the configuration, made from the rows that the check and the template use.

use std::fmt::Write as _;

use snowmint_server::{Documented as _, SettingRow, SettingValues};
use toml::{Table, Value};

use super::markdown::{coded, filled, linked};
use crate::config::{Config, defaults, keys};

const HEAD: &str = "\
# Configuration: every key of a server

<!-- Made from the comments of the settings: CONTRIBUTING.md says how. -->

The configuration is a TOML file, `serve --config FILE`. `snowmint config` prints the complete file with every default.
Every key is also the environment variable `SNOWMINT_SECTION__KEY` (`__` for each dot; the name is lower-cased), and
common keys have flags. A flag overrides the environment, and the environment overrides the file. An unknown key, a
wrong type or an impossible value is an error that names file, line and key (exit code 2). Durations carry their unit:
`250ms`, `5s`, `10m`, `1h`, `30d`.

`snowmint config schema` prints a JSON Schema of the file. Editors that use Taplo complete keys and show mistakes by it,
if the file begins with a line such as `#:schema ./snowmint.schema.json`.
";

const SOURCES: &str = "
Each table `[sources.NAME]` defines a source: [sources.md](sources.md) has its keys.
";

/// Returns the page.
pub(super) fn page() -> String {
    let mut page = HEAD.to_owned();
    section(&mut page, "", &Config::takes(), &defaults());
    page.push_str(SOURCES);
    page
}

/// Writes a section: its text, a table of its values, and the sections below it.
fn section(page: &mut String, name: &str, takes: &SettingValues, defaults: &Table) {
    let SettingValues::Section(rows) = takes else { return };
    let rows = || rows.iter().filter_map(|row| Some((row, defaults.get(row.key)?)));
    let is_section = |row: &SettingRow| matches!(row.takes, SettingValues::Section(_));
    let is_named = |row: &SettingRow| matches!(row.takes, SettingValues::Named);
    // Tables of the operator's own names are sections, too; they have nothing but their text.
    let values: Vec<_> = rows().filter(|(row, _)| !is_section(row) && !is_named(row)).collect();
    if !values.is_empty() {
        page.push_str("\n| key | default | values | meaning |\n|---|---|---|---|\n");
    }
    for (row, default) in values {
        let default = match default {
            Value::String(text) if text.is_empty() => String::new(),
            Value::Array(items) if items.is_empty() => String::new(),
            default => format!("`{default}`"),
        };
        let text = linked(&row.paragraphs().join(" "));
        let _ = writeln!(page, "| `{}` | {default} | {} | {text} |", row.key, setting(row));
    }
    for (row, default) in rows().filter(|(row, _)| is_section(row) || is_named(row)) {
        let name = if name.is_empty() { row.key.into() } else { format!("{name}.{}", row.key) };
        let text = row.paragraphs().join("\n\n");
        if !text.is_empty() {
            let _ = write!(page, "\n## `[{name}]`\n\n{}", filled(&linked(&text)));
        }
        section(page, &name, &row.takes, default.as_table().unwrap_or(&Table::new()));
    }
}

/// Returns the values that a setting takes.
fn setting(row: &SettingRow) -> String {
    let words = |words: &[&str]| {
        let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        coded(quoted.iter().map(String::as_str))
    };
    let form = match row.takes {
        SettingValues::Flag => coded(["true", "false"]),
        SettingValues::Number(_) => "number".into(),
        SettingValues::NumberOr(_, other) => format!("number, {}", words(other)),
        SettingValues::Word(these) => words(these),
        SettingValues::Duration => "duration".into(),
        SettingValues::Texts => "list of texts".into(),
        _ => "text".into(),
    };
    row.bounds().unwrap_or(form)
}

/// A key that the page lacked would have no reference at all.
#[test]
fn page_has_a_row_for_every_key() {
    let page = page();
    for key in keys(&defaults()) {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", &key));
        let is_row = page.split("\n## ").any(|part| {
            let is_section = part.starts_with(&format!("`[{section}]`"));
            is_section && part.contains(&format!("\n| `{name}` | "))
        });
        assert!(is_row || page.contains(&format!("\n## `[{key}]`\n")), "{key} is missing");
    }
}
