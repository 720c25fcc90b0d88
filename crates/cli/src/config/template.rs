//! The complete configuration file, with every key, its meaning and its default.

use std::fmt::Write as _;

use snowmint_coord::spec::keys;
use snowmint_server::{Documented as _, SettingRow, SettingValues};
use toml::{Table, Value};

use super::layers::defaults;
use super::sections::Config;

/// Width of comment lines.
const WIDTH: usize = 100;

/// Example of a source; lines commented out with `#` alone can be used unchanged.
const EXAMPLE: &str = r#"#[sources.orders]
#kind = "snowflake"
#layout = "twitter,epoch=2026-01-01T00:00:00Z"
#on_rollback = "wait"
#prefill.enabled = false
"#;

/// Returns the file. Reading it back changes nothing: every value is its default.
pub(crate) fn template() -> String {
    let mut file = String::new();
    comment(
        &mut file,
        "Complete configuration of Snowmint, with every default. A key is also the environment variable \
         SNOWMINT_SECTION__KEY. A flag overrides the environment, and the environment overrides this file.",
    );
    section(&mut file, "", &Config::takes(), &defaults());
    file.push('\n');
    file.push_str(EXAMPLE);
    comment(&mut file, "The keys of a source:");
    for key in keys::all() {
        let default =
            if key.default.is_empty() { String::new() } else { format!(" [{}]", key.default) };
        comment(&mut file, &format!("  {}: {} (for {}){default}", key.name, key.doc(), key.kinds));
    }
    file
}

/// Writes the keys of a section and those below them, each under its text.
fn section(file: &mut String, above: &str, takes: &SettingValues, defaults: &Table) {
    let SettingValues::Section(rows) = takes else { return };
    for row in rows {
        let key = row.key;
        let text = row.first_paragraph();
        // Writing to a string cannot fail.
        match defaults.get(key) {
            Some(Value::Table(defaults)) => {
                let name = format!("{above}{key}");
                // A section of sections only has no text, and no place of its own.
                if !text.is_empty() {
                    file.push('\n');
                    comment(file, &text);
                    let _ = writeln!(file, "[{name}]");
                }
                section(file, &format!("{name}."), &row.takes, defaults);
            }
            Some(default) => {
                comment(file, &with_bounds(text, row));
                let _ = writeln!(file, "{key} = {default}");
            }
            // Not a key of the file.
            None => {}
        }
    }
}

/// Returns a text with the bounds of its key as a sentence.
pub(super) fn with_bounds(text: String, row: &SettingRow) -> String {
    match row.bounds() {
        None => text,
        Some(bounds) => format!("{text} Allowed: {bounds}."),
    }
}

/// Writes a comment, broken into lines.
fn comment(file: &mut String, text: &str) {
    let indent = text.len() - text.trim_start().len();
    let mut line = format!("# {}", &text[..indent]);
    let start = line.len();
    for word in text.split_whitespace() {
        if line.len() > start && line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(file, "{line}");
            line.truncate(start);
        }
        if line.len() > start {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(file, "{line}");
}
