//! The complete configuration file, with every key, its meaning and its default.

use std::fmt::Write as _;

use snowmint_coord::spec::keys;
use toml::Value;

use super::docs::SECTIONS;
use super::layers::schema;

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
    let schema = schema();
    let mut file = String::new();
    comment(
        &mut file,
        "Complete configuration of Snowmint, with every default. A key is also the environment variable \
         SNOWMINT_SECTION__KEY. A flag overrides the environment, and the environment overrides this file.",
    );
    for (section, about, docs) in SECTIONS {
        file.push('\n');
        comment(&mut file, about);
        // Writing to a string cannot fail.
        let _ = writeln!(file, "[{section}]");
        let table = section.split('.').try_fold(&schema, |table, part| match table.get(part) {
            Some(Value::Table(inner)) => Some(inner),
            _ => None,
        });
        for (key, doc) in *docs {
            comment(&mut file, doc);
            if let Some(value) = table.and_then(|table| table.get(*key)) {
                let _ = writeln!(file, "{key} = {value}");
            }
        }
    }
    file.push('\n');
    file.push_str(EXAMPLE);
    comment(&mut file, "The keys of a source:");
    for key in keys::KEYS {
        let default =
            if key.default.is_empty() { String::new() } else { format!(" [{}]", key.default) };
        comment(&mut file, &format!("  {}: {} (for {}){default}", key.name, key.doc, key.kinds));
    }
    file
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
