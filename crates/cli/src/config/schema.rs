//! The JSON Schema of the configuration file, for editors. It is made from the rows that the check
//! and the template use. What depends on several keys, or on the machine, only the check knows.

use serde_json::{Map, Value as Json, json};
use snowmint_coord::spec::{Key, Takes, keys};
use snowmint_server::{Documented as _, SettingRow, SettingValues};
use toml::{Table, Value};

use super::layers::defaults;
use super::sections::Config;
use super::template::with_bounds;

/// Form of a duration. Its bounds are in the descriptions: a schema compares no durations.
const DURATION: &str = "^[0-9]+(ms|s|m|h|d)$";
/// Form of the name of a source, store or upstream.
const NAME: &str = "^[A-Za-z0-9_.-]{1,63}$";

/// Returns the schema. Editors for TOML know draft 7.
pub(crate) fn schema() -> Json {
    let mut schema = section(&Config::takes(), &defaults());
    let source = json!({ "$ref": "#/definitions/source" });
    schema["properties"]["sources"]["additionalProperties"] = source;
    schema["properties"]["sources"]["propertyNames"] = json!({ "pattern": NAME });
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = "Configuration of Snowmint".into();
    schema["definitions"] = json!({ "source": source_keys() });
    schema
}

/// Returns an object that has only these keys.
fn object(properties: Map<String, Json>) -> Json {
    let mut object = json!({ "type": "object", "additionalProperties": false });
    object["properties"] = properties.into();
    object
}

/// Returns the schema of a section.
fn section(takes: &SettingValues, defaults: &Table) -> Json {
    let mut properties = Map::new();
    if let SettingValues::Section(rows) = takes {
        for row in rows {
            // What has no default is no key of the file.
            if let Some(default) = defaults.get(row.key) {
                properties.insert(row.key.into(), setting(row, default));
            }
        }
    }
    object(properties)
}

/// Returns the schema of a key.
fn setting(row: &SettingRow, default: &Value) -> Json {
    let number = |most: u64| {
        let mut number = json!({ "type": "integer", "minimum": row.least.unwrap_or(0) });
        let most = row.most.unwrap_or(most);
        if most < u64::MAX {
            number["maximum"] = most.into();
        }
        number
    };
    let mut schema = match (&row.takes, default) {
        (takes @ SettingValues::Section(_), Value::Table(defaults)) => section(takes, defaults),
        (SettingValues::Flag, _) => json!({ "type": "boolean" }),
        (SettingValues::Number(most), _) => number(*most),
        (SettingValues::NumberOr(most, words), _) => {
            let pattern = format!("^([0-9]+|{})$", words.join("|"));
            json!({ "anyOf": [number(*most), { "type": "string", "pattern": pattern }] })
        }
        (SettingValues::Word(words), _) => json!({ "enum": words }),
        (SettingValues::Duration, _) => json!({ "type": "string", "pattern": DURATION }),
        (SettingValues::Texts, _) => json!({ "type": "array", "items": { "type": "string" } }),
        (SettingValues::Named, _) => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        _ => json!({ "type": "string" }),
    };
    let text = with_bounds(row.paragraphs().join("\n\n"), row);
    if !text.is_empty() {
        schema["description"] = text.into();
    }
    if !matches!(default, Value::Table(_)) {
        // Plain values of TOML are values of JSON.
        schema["default"] = json!(default);
    }
    schema
}

/// Returns the schema of a source.
fn source_keys() -> Json {
    let mut properties = Map::new();
    for key in keys::all() {
        match key.name.split_once('.') {
            None => properties.insert(key.name.into(), source_key(key)),
            Some((table, name)) => {
                let table = properties.entry(table).or_insert_with(|| object(Map::new()));
                table["properties"][name] = source_key(key);
                None
            }
        };
    }
    object(properties)
}

/// Returns the schema of a source's key.
fn source_key(key: &Key) -> Json {
    let mut schema = match key.takes {
        Takes::Text => json!({ "type": "string" }),
        Takes::Word(words) => json!({ "enum": words() }),
        Takes::Duration => json!({ "type": "string", "pattern": DURATION }),
        Takes::Flag => json!({ "type": "boolean" }),
        Takes::Number => {
            let (least, most) = key.within.unwrap_or((0, u64::MAX));
            let mut number = json!({ "type": "integer", "minimum": least });
            if most < u64::MAX {
                number["maximum"] = most.into();
            }
            number
        }
    };
    let bounds = key.bounds().map(|bounds| format!(" Allowed: {bounds}.")).unwrap_or_default();
    let default = if key.default.is_empty() { "none" } else { key.default };
    let text = format!("{} (for {}).{bounds} Default: {default}.", key.doc(), key.kinds);
    schema["description"] = text.into();
    schema
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use boon::{Compiler, Schemas};

    use super::super::layers;
    use super::super::template::template;
    use super::super::tests::load;
    use super::*;

    /// Returns what the schema says about a file, as an editor would.
    fn faults(file: &str) -> Option<String> {
        let file: Json = toml::from_str(file).unwrap();
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("snowmint.schema.json", schema()).unwrap();
        // This validates the schema itself, too.
        let compiled = compiler.compile("snowmint.schema.json", &mut schemas).unwrap();
        schemas.validate(&file, compiled).err().map(|error| error.to_string())
    }

    #[test]
    fn schema_accepts_the_printed_file() {
        assert_eq!(faults(&template()), None);
        assert_eq!(faults(""), None);
        let uncommented = template().replace("\n#[", "\n[").replace("\n#kind", "\nkind");
        assert_eq!(faults(&uncommented), None);
    }

    /// Each file is accepted, or rejected, by the schema and by the check of the configuration.
    #[test]
    fn schema_agrees_with_the_check() {
        for file in [
            "[worker]\nnumber = 7",
            "[worker]\nnumber = \"ordinal\"\nwindow = \"1d\"",
            "[worker]\nafter_crash = \"other-worker\"",
            "[http]\nhosts = [\"ids.example\"]\nhead_bytes_max = 8192",
            "[limits]\nbatch_max = 1\nbound_max = 4611686018427387904",
            "[stores]\na = \"sqlite:a.db\"",
            "[disguise.keys]\n1 = \"env:KEY\"",
            "[compat.leaf.keys]\n\"leaf-test\" = \"orders\"",
            "[sources]\nbuiltin = false\n[sources.orders]\n[sources.\"a.b\"]\nkind = \"segment\"\nstep.min = 7",
            "[sources.orders]\nburst = \"5ms\"\nprefill = { enabled = true, threshold = 99 }",
        ] {
            assert_eq!(faults(file), None, "{file}");
            load(file, &[], Vec::new()).expect(file);
        }
        for file in [
            "port = 1",
            "server = 5",
            "[server]\nhtpp = \"x\"",
            "[server]\nhttp = 7700",
            "[server.http]\nx = 1",
            "[limits]\nbatch_max = 0",
            "[limits]\nbatch_max = 4294967296",
            "[limits]\nbound_max = 9000000000000000000",
            "[limits]\npassed_on_max = 2",
            "[store]\nattempts_max = 10001",
            "[store]\noffered = \"yes\"",
            "[traces]\none_in = 0",
            "[compat.cosid]\nmachines_max = 0",
            "[compat.tinyid]\nsegment_length = 0",
            "[compat.zero]\nenabled = true",
            "[compat.leaf.keys]\nx = 5",
            "[http]\nhosts = \"ids.example\"",
            "[http]\nhead_bytes_max = 8191",
            "[worker]\nnumber = -1",
            "[worker]\nnumber = 9000000000000000000",
            "[worker]\nnumber = \"first\"",
            "[worker]\nwindow = \"5\"",
            "[worker]\nafter_crash = \"hope\"",
            "[sources.\"a/b\"]",
            "[sources.a]\nlayuot = \"x\"",
            "[sources.a]\nkind = \"snowfalke\"",
            "[sources.a]\nlayout = 5",
            "[sources.a]\nprefill = 5",
            "[sources.a]\nprefill = { enabled = true, threshold = 100 }",
            "[sources.a]\nkind = \"segment\"\nstep.min = \"5\"",
            "[sources.a]\nburst = \"5\"",
        ] {
            assert!(faults(file).is_some(), "{file}");
            load(file, &[], Vec::new()).expect_err(file);
        }
    }

    /// Returns the Markdown files of a folder and of those below it.
    fn documents(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        let files =
            files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "md"));
        files.chain(folders.iter().flat_map(|folder| documents(folder))).collect()
    }

    /// Returns the configurations that a document shows, in fences or indented: from a section's
    /// head on.
    fn examples(document: &str) -> Vec<String> {
        let sections = defaults();
        let mut examples: Vec<String> = Vec::new();
        let (mut fence, mut is_inside) = (None, false);
        for line in document.lines() {
            let text = line.trim_start();
            if text.starts_with("```") {
                let indent = line.len() - text.len();
                fence = if fence.is_none() { Some(indent) } else { None };
                is_inside = false;
                continue;
            }
            let code = match fence {
                // END ends a file that a script writes.
                Some(indent) => {
                    Some(line.get(indent..).unwrap_or("")).filter(|line| *line != "END")
                }
                None => line.strip_prefix("    ").filter(|line| !line.trim().is_empty()),
            };
            let Some(line) = code else {
                is_inside = false;
                continue;
            };
            let section = line.strip_prefix('[').and_then(|rest| rest.split(['.', ']']).next());
            if !is_inside && section.is_some_and(|section| sections.contains_key(section)) {
                examples.push(String::new());
                is_inside = true;
            }
            if let Some(example) = examples.last_mut().filter(|_| is_inside) {
                example.push_str(line);
                example.push('\n');
            }
        }
        examples
    }

    #[test]
    fn schema_accepts_every_example_in_the_documents() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let files = ["docs", "deploy"].map(|folder| documents(&root.join(folder))).concat();
        let mut count = 0;
        for path in files.iter().chain([&root.join("README.md")]) {
            for example in examples(&std::fs::read_to_string(path).unwrap()) {
                assert_eq!(faults(&example), None, "{path:?}: {example}");
                count += 1;
            }
        }
        assert!(count >= 8, "{count}");
    }

    /// An editor shows texts and defaults as the file has them.
    #[test]
    fn schema_describes_every_key() {
        let schema = schema();
        for key in layers::keys(&defaults()) {
            let place = format!("/properties/{}", key.replace('.', "/properties/"));
            let found = schema.pointer(&place).unwrap_or_else(|| panic!("{place} is missing"));
            assert!(found["description"].as_str().is_some_and(|text| text.len() > 9), "{key}");
        }
        for key in keys::all() {
            let place =
                format!("/definitions/source/properties/{}", key.name.replace('.', "/properties/"));
            let found = schema.pointer(&place).unwrap_or_else(|| panic!("{place} is missing"));
            assert!(found["description"].as_str().unwrap().contains(&key.doc()), "{}", key.name);
        }
        let window = &schema["properties"]["worker"]["properties"]["window"];
        assert_eq!(window["default"], "30s");
        assert!(
            window["description"].as_str().unwrap().ends_with(" Allowed: 1s to 1d."),
            "{window}"
        );
    }
}
