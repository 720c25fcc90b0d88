//! Names of public types.

use std::collections::BTreeMap;

use super::{before_tests, crates, manifest, sources};

/// Names of two public types, and the reason.
const SHARED: [(&str, &str); 14] = [
    ("Access", "rights of callers in server; reading or writing rows in coord"),
    ("Counter", "the same source of snowmint for async and for blocking code"),
    ("Decoded", "an ID by its source in coord, and by its layout in snowmint"),
    ("Error", "each layer's own: store and service"),
    ("Key", "a key of a disguise in core, a key of a definition in coord"),
    ("Lane", "core's, and snowmint's with a worker number"),
    ("Mint", "the same node of snowmint for async and for blocking code"),
    ("Outcome", "of a clock step in core, of a batch of keys in stores"),
    ("RecoveryRequest", "coord's, and its form in JSON"),
    ("Segment", "numbers from the store in coord, and both sources of snowmint"),
    ("Settings", "each crate's own: generator, store, client and server"),
    ("Short", "core's, and snowmint's with an error of its own"),
    ("Stats", "core's, and snowmint's with a worker number"),
    ("TextSource", "the same source of snowmint for async and for blocking code"),
];

/// Returns the public type that a line declares.
fn public_type(line: &str) -> Option<&str> {
    let (kind, rest) = line.trim_start().strip_prefix("pub ")?.split_once(' ')?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = rest.split(|c| !is_part(c)).next()?;
    ["struct", "enum", "trait", "type", "union"].contains(&kind).then_some(name)
}

/// A reader of two crates finds one meaning for a name.
#[test]
fn public_type_names_are_unique() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for krate in crates() {
        let publish = manifest(&krate)["package"].get("publish").and_then(toml::Value::as_bool);
        if publish == Some(false) {
            continue;
        }
        for (path, text) in sources(&krate, "src") {
            for (at, line) in before_tests(&text).lines().enumerate() {
                if let Some(name) = public_type(line) {
                    let place = format!("{}:{}", path.display(), at + 1);
                    places.entry(name.to_owned()).or_default().push(place);
                }
            }
        }
    }
    assert!(places.len() > 300, "found only {} types: the search has to follow", places.len());
    places.retain(|_, places| places.len() > 1);
    let mut hits = Vec::new();
    for (name, places) in &places {
        if !SHARED.iter().any(|(shared, _)| shared == name) {
            hits.extend(places.iter().map(|place| format!("{place}: {name}")));
        }
    }
    for (name, _) in SHARED.iter().filter(|(name, _)| !places.contains_key(*name)) {
        hits.push(format!("{name} is listed, and one type has it"));
    }
    assert!(hits.is_empty(), "\n{}", hits.join("\n"));
}
