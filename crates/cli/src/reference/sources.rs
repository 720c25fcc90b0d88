//! The page of a source's keys, made from their table.

use std::fmt::Write as _;

use snowmint_coord::spec::{Key, Kind, Takes, keys, words};

use super::markdown::{coded, linked};

const HEAD: &str = "\
# Keys of a source: what can be set

<!-- Made from the table of the keys: CONTRIBUTING.md says how. -->

The keys are the same in `[sources.NAME]` of the [configuration](configuration.md), `source define --KEY`,
`POST /v1/sources` and the library. None is required. A key without a meaning for the kind of the source is an error.
Defaults are written into the definition when a source is defined: a later version with others does not change it.

*Fixed* keys are part of the source's identity, which no `source alter` changes; `source restripe` changes stripes. Of
`stores`, only whether there are several is fixed. `source alter` removes keys that lose their meaning (`lead_max` when
`on_rollback` becomes `wait`), unless the command names them itself.

How the kinds work: [kinds.md](kinds.md). Which kind to choose:
[which-kind-of-id.md](../explanation/which-kind-of-id.md).
";

/// Returns the page.
pub(super) fn page() -> String {
    let mut page = HEAD.to_owned();
    table(&mut page, "All kinds", |key| (key.kinds == "all").then_some(""));
    for name in words::<Kind>() {
        let kind = kind(name);
        let has_own = |key: &Key| key.kinds != "all" && key.is_for(kind);
        if keys::all().any(has_own) {
            table(&mut page, name, |key| has_own(key).then(|| key.condition(kind)));
        } else {
            let _ = write!(page, "\n## {name}\n\nNo further keys.\n");
        }
    }
    page
}

fn kind(name: &str) -> Kind {
    serde_json::from_value(name.into()).unwrap()
}

/// Writes the keys for which there is a condition, which may be empty.
fn table<'k>(page: &mut String, title: &str, condition: impl Fn(&'k Key) -> Option<&'k str>) {
    let _ = write!(page, "\n## {title}\n\n");
    page.push_str("| key | default | values | fixed | meaning |\n|---|---|---|---|---|\n");
    for key in keys::all() {
        let Some(condition) = condition(key) else { continue };
        let condition = match condition.split_at_checked(1) {
            None => String::new(),
            Some((first, rest)) => format!("*{}{rest}:* ", first.to_ascii_uppercase()),
        };
        let fixed = if key.fixed { "fixed" } else { "" };
        let default = match key.takes {
            _ if key.default.is_empty() => String::new(),
            // Some defaults are sentences.
            _ if key.default.contains(' ') => key.default.into(),
            _ => format!("`{}`", key.default),
        };
        let (name, values, doc) = (key.name, values(key), linked(&key.doc()));
        let _ = writeln!(page, "| `{name}` | {default} | {values} | {fixed} | {condition}{doc} |");
    }
}

/// Returns the values that a key takes.
fn values(key: &Key) -> String {
    match key.takes {
        Takes::Flag => coded(["true", "false"]),
        Takes::Word(words) => coded(words().iter().copied()),
        Takes::Text => "text".into(),
        Takes::Duration => key.bounds().unwrap_or_else(|| "duration".into()),
        Takes::Number => key.bounds().unwrap_or_else(|| "number".into()),
    }
}

/// A key that the page lacked would have no reference at all.
#[test]
fn page_has_every_key_under_each_of_its_kinds() {
    let page = page();
    let mut sections = page.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap());
    let has = |section: &str, key: &Key| section.contains(&format!("\n| `{}` | ", key.name));
    let (title, all) = sections.next().unwrap();
    assert_eq!(title, "All kinds");
    let mut rows = keys::all().filter(|key| has(all, key)).count();
    assert_eq!(rows, keys::all().filter(|key| key.kinds == "all").count());
    for (title, section) in sections {
        for key in keys::all().filter(|key| key.kinds != "all") {
            assert_eq!(has(section, key), key.is_for(kind(title)), "{title}: {}", key.name);
            rows += usize::from(has(section, key));
        }
    }
    assert!(rows >= keys::all().count(), "{rows}");
    for key in keys::all() {
        assert!(has(&page, key), "{} is missing", key.name);
    }
}
