//! Rules of the repository: dependencies of crates, the order of the files in them, the places of
//! real time, the length of files and names, the form of errors, words and sentences.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

mod evidence;
mod examples;
mod imports;
mod limits;
mod pages;
mod prose;
mod rooms;
mod types;
mod verbs;
mod volume;
mod walks;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a source file before its tests.
const LINES_MAX: usize = 450;

/// Words of a sentence.
const WORDS_MAX: usize = 35;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn crates() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn manifest(krate: &str) -> toml::Table {
    let path = root().join("crates").join(krate).join("Cargo.toml");
    fs::read_to_string(path).unwrap().parse().unwrap()
}

/// Returns the names in a table of dependencies.
fn names(manifest: &toml::Table, table: &str) -> Vec<String> {
    let table = manifest.get(table).and_then(toml::Value::as_table);
    table.map(|table| table.keys().cloned().collect()).unwrap_or_default()
}

/// Returns the sources below a crate's folder `within`, with their text.
fn sources(krate: &str, within: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates").join(krate).join(within)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

/// Returns the texts of the repository, by their paths in it: sources, documents, scripts and
/// manifests, without generated files, data and licences.
fn texts() -> Vec<(String, String)> {
    const FOLDERS: [&str; 11] = [
        ".ci", ".config", ".github", "bench", "ci", "crates", "deploy", "docs", "examples", "fuzz",
        "vectors",
    ];
    const MADE: [&str; 5] = ["target", "generated", "node_modules", "corpus", "artifacts"];
    let is_data = |name: &str| {
        let is_vector = name.starts_with("vectors/") && name.ends_with(".json");
        let is_licence = name.contains("LICENSE-");
        // A library of other authors, unchanged.
        let is_library = name.starts_with("crates/server/console/uplot/") && !name.ends_with(".md");
        let is_made = name.ends_with(".lock") || name == "docs/openapi.json";
        is_vector || is_licence || is_library || is_made
    };
    let root = root();
    let (mut found, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                let is_ours = name.split('/').next().is_some_and(|top| FOLDERS.contains(&top));
                if is_ours && !MADE.iter().any(|made| path.ends_with(made)) {
                    folders.push(path);
                }
            } else if !is_data(&name)
                && let Ok(text) = fs::read_to_string(&path)
            {
                found.push((name, text));
            }
        }
    }
    found
}

fn before_tests(text: &str) -> &str {
    let begin = ["#[cfg(test)]\nmod tests {", "#[cfg(test)]\nmod test {"];
    begin
        .iter()
        .filter_map(|begin| text.split_once(begin))
        .map(|(before, _)| before)
        .next()
        .unwrap_or(text)
}

/// Returns a line without its comment. The slashes of a URL begin no comment: `redis://` is code.
fn code(line: &str) -> &str {
    let mut slashes = line.match_indices("//").map(|(at, _)| at);
    let comment = slashes.find(|at| !line[..*at].ends_with(':'));
    comment.map_or(line, |at| &line[..at])
}

/// Returns the word that a line of code names, also with a letter or two more; the scheme of a URL
/// matches with all that follows.
fn named<'a>(line: &str, words: &[&'a str]) -> Option<&'a str> {
    let code = code(line).to_lowercase();
    let mut parts = code.split(|c: char| !c.is_alphanumeric() && !":/".contains(c));
    parts.find_map(|part| {
        let is_named = |word: &&&str| {
            let is_url = word.ends_with("://");
            part.starts_with(**word) && (is_url || part.len() <= word.len() + 2)
        };
        words.iter().find(is_named).copied()
    })
}

#[test]
fn crates_follow_the_dependency_law() {
    let law: BTreeMap<&str, &[&str]> = [
        ("core", &[][..]),
        ("coord", &["core"]),
        ("stores", &["coord", "core"]),
        ("snowmint", &["coord", "stores", "client", "core"]),
        ("wire", &[]),
        ("store-rpc", &["coord", "wire", "core"]),
        ("server", &["store-rpc", "coord", "wire", "core"]),
        ("client", &["store-rpc", "coord", "wire", "core"]),
        ("cli", &["server", "client", "snowmint", "stores", "coord", "wire", "core"]),
        ("testkit", &["stores", "coord", "core"]),
    ]
    .into();
    for krate in crates() {
        let allowed = law[krate.as_str()];
        for name in names(&manifest(&krate), "dependencies") {
            let inner = match name.as_str() {
                "snowmint" => "snowmint",
                name => match name.strip_prefix("snowmint-") {
                    Some(inner) => inner,
                    None => continue,
                },
            };
            assert!(allowed.contains(&inner), "{krate} must not depend on {name}");
        }
    }
}

#[test]
fn core_has_no_dependencies_but_for_the_model_checker() {
    let manifest = manifest("core");
    assert_eq!(names(&manifest, "dependencies"), Vec::<String>::new());
    let only = manifest["target"].as_table().unwrap();
    assert_eq!(only.keys().collect::<Vec<_>>(), ["cfg(snowmint_loom)"]);
}

#[test]
fn only_stores_name_a_database_and_they_name_no_protocol() {
    let databases = [
        "sqlite",
        "mysql",
        "mariadb",
        "postgres",
        "zookeeper",
        "etcd",
        "redis://",
        "rediss://",
        "sqlx",
    ];
    let protocols = ["axum", "hyper", "tonic", "resp", "http", "grpc"];
    let nameless = ["core", "coord", "wire", "store-rpc", "server", "client"]
        .map(|krate| (krate, &databases[..]));
    for (krate, banned) in nameless.into_iter().chain([("stores", &protocols[..])]) {
        for name in names(&manifest(krate), "dependencies") {
            // etcd speaks gRPC, and a store may speak the protocol of its server.
            let etcds = krate == "stores" && name == "tonic";
            assert!(etcds || !banned.contains(&name.as_str()), "{krate} depends on {name}");
        }
        for (path, text) in sources(krate, "src") {
            if krate == "stores" && path.components().any(|part| part.as_os_str() == "etcd") {
                continue;
            }
            for line in before_tests(&text).lines() {
                let word = named(line, banned);
                assert!(word.is_none(), "{}: names {word:?}: {line}", path.display());
            }
        }
    }
}

#[test]
fn real_time_and_randomness_enter_only_in_named_files() {
    let homes = [
        ("core", "src/clock/system.rs"),
        ("coord", "src/platform/timer/mod.rs"),
        ("coord", "src/platform/timer/"),
        ("coord", "src/platform/random.rs"),
    ];
    let banned =
        ["SystemTime::now", "Instant::now", "thread::sleep", "tokio::time::sleep", "getrandom::"];
    for krate in crates().into_iter().filter(|krate| krate != "testkit") {
        for (path, text) in sources(&krate, "src") {
            let at_home = homes.iter().any(|(home, place)| {
                *home == krate && path.to_string_lossy().contains(&format!("{home}/{place}"))
            });
            for line in before_tests(&text).lines().filter(|_| !at_home) {
                let word = banned.iter().find(|word| code(line).contains(**word));
                assert!(word.is_none(), "{}: {word:?}: {line}", path.display());
            }
        }
    }
}

/// ARCHITECTURE.md gives the reason for each of them.
#[test]
fn process_wide_state_is_only_where_it_is_named() {
    let homes = [
        "core/src/clock/system.rs",
        "coord/src/platform/timer/mod.rs",
        "stores/src/sqlite/file.rs",
        // Tables, which nothing changes.
        "core/src/text/radix.rs",
    ];
    for krate in crates().into_iter().filter(|krate| krate != "testkit") {
        for (path, text) in sources(&krate, "src") {
            let at_home = homes.iter().any(|home| path.ends_with(home));
            for line in before_tests(&text).lines().filter(|_| !at_home) {
                let is_static = line.trim_start().split(' ').take(2).any(|word| word == "static");
                let (_, of) = line.split_once(": ").unwrap_or_default();
                let is_constant = of.starts_with('&') || of.starts_with('[');
                assert!(!is_static || is_constant, "{}: {line}", path.display());
            }
        }
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for krate in crates() {
        let manifest = manifest(&krate);
        let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        assert_eq!(lints.and_then(toml::Value::as_bool), Some(true), "{krate}");
    }
}

/// Equal settings let `ci/test --all` compile third-party crates once for both workspaces.
#[test]
fn bench_has_the_development_profile_of_the_workspace() {
    let profile = |manifest: &str| {
        let text = fs::read_to_string(root().join(manifest)).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        manifest["profile"]["dev"].clone()
    };
    assert_eq!(profile("bench/Cargo.toml"), profile("Cargo.toml"));
}

#[test]
fn published_package_describes_itself() {
    for krate in crates() {
        let manifest = manifest(&krate);
        let package = manifest["package"].as_table().unwrap();
        if package.get("publish").and_then(toml::Value::as_bool) == Some(false) {
            continue;
        }
        let len = |key: &str| package[key].as_array().unwrap().len();
        assert!(package["description"].as_str().unwrap().ends_with('.'), "{krate}");
        assert!((1..=5).contains(&len("keywords")), "{krate}");
        assert!((1..=5).contains(&len("categories")), "{krate}");
        assert_eq!(package["readme"].as_str(), Some("README.md"), "{krate}");
        assert_eq!(package["include"]["workspace"].as_bool(), Some(true), "{krate}");
        assert_eq!(package["metadata"]["docs"]["rs"]["all-features"].as_bool(), Some(true));
        let folder = root().join("crates").join(&krate);
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let own = fs::read(folder.join(licence)).unwrap();
            assert_eq!(own, fs::read(root().join(licence)).unwrap(), "{krate}/{licence}");
        }
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        assert!(readme.contains("https://github.com/snowmint/snowmint"), "{krate}");
        // A registry shows the text without the files of the repository.
        assert!(!readme.contains("](../") && !readme.contains("](docs/"), "{krate}");
    }
}

#[test]
fn files_are_short_and_finished() {
    // Spelled apart, so that this file does not find itself.
    let unfinished = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
    ];
    let mut wrong = Vec::new();
    for krate in crates() {
        for within in ["src", "tests"] {
            for (path, text) in sources(&krate, within) {
                for word in unfinished.iter().filter(|word| text.contains(**word)) {
                    wrong.push(format!("{}: {word}", path.display()));
                }
                // An ignored test may announce that others are skipped, if it states how to run
                // them.
                let ignored = concat!("#[", "ignore");
                let unsaid = |line: &str| {
                    line.contains(ignored) && !line.contains("--features real-servers")
                };
                if text.lines().any(unsaid) {
                    wrong.push(format!("{}: a test that does not run", path.display()));
                }
                let lines = before_tests(&text).lines().count();
                if within == "src" && !path.ends_with("tests.rs") && lines > LINES_MAX {
                    wrong.push(format!("{}: {lines} lines, at most {LINES_MAX}", path.display()));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Constructors of `snowmint_coord::Error` that take a sentence.
const ERRORS: [&str; 20] = [
    "unavailable",
    "fenced",
    "not_found",
    "conflict",
    "invalid",
    "store_mismatch",
    "journal_refused",
    "locked",
    "exhausted",
    "epoch_spent",
    "closed",
    "disabled",
    "limit_exceeded",
    "corrupt",
    "storage_full",
    "store_read_only",
    "store_permission_denied",
    "unsafe_store",
    "unsupported",
    "internal",
];

/// Returns the text of the string literal at the begin of `code`, without the breaks between its
/// lines, and the code after it.
fn quoted(code: &str) -> Option<(String, &str)> {
    let mut rest = code.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match rest.next()? {
            '"' => return Some((text, rest.as_str())),
            '\\' => match rest.next()? {
                '\n' => rest = rest.as_str().trim_start().chars(),
                'n' => text.push('\n'),
                escaped => text.push(escaped),
            },
            plain => text.push(plain),
        }
    }
}

/// Returns the text of a string literal at the begin of `code`, also as the first argument of
/// `format!`.
fn literal(code: &str) -> Option<String> {
    let code = code.trim_start();
    let code = code.strip_prefix("format!(").map_or(code, str::trim_start);
    quoted(code).map(|(text, _)| text)
}

/// Returns what is wrong with the sentence of an error, by the rules of CONTRIBUTING.md.
fn wrong_with(constructor: &str, sentence: &str) -> Option<&'static str> {
    // Names keep their form, such as URL and SQLite.
    let is_name = |word: &str| word.chars().filter(char::is_ascii_uppercase).count() > 1;
    let first = sentence.split_whitespace().next().unwrap_or_default();
    let bug = ("internal error: ", "please report it");
    if first.starts_with(|letter: char| letter.is_ascii_uppercase()) && !is_name(first) {
        Some("begins with a capital letter")
    } else if sentence.ends_with('.') {
        Some("ends with a full stop")
    } else if sentence.split_whitespace().count() > WORDS_MAX {
        Some("is longer than 35 words")
    } else if constructor == "internal"
        && !(sentence.starts_with(bug.0) && sentence.ends_with(bug.1))
    {
        Some("is not of the form \"internal error: ...; please report it\"")
    } else {
        None
    }
}

#[test]
fn error_sentences_have_the_form() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for krate in crates() {
        for (path, text) in sources(&krate, "src") {
            for constructor in ERRORS {
                let call = format!("Error::{constructor}(");
                for (at, _) in before_tests(&text).match_indices(&call) {
                    let Some(sentence) = literal(&text[at + call.len()..]) else { continue };
                    count += 1;
                    if let Some(problem) = wrong_with(constructor, &sentence) {
                        wrong.push(format!("{}: {sentence:?} {problem}", path.display()));
                    }
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(count > 300, "found only {count} sentences: the search has to follow the code");
    for (constructor, sentence) in [
        ("invalid", "Name is empty"),
        ("invalid", "name is empty."),
        ("internal", "minted 0 IDs"),
        ("invalid", &"word ".repeat(36)),
    ] {
        assert!(wrong_with(constructor, sentence).is_some(), "{sentence}");
    }
}

/// Returns the name of the function that a line declares.
fn declared(line: &str) -> Option<&str> {
    let (_, after) = line.split_once("fn ")?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    after.split(|c| !is_part(c)).next()
}

/// A reader sees the whole name in a list of failures.
#[test]
fn names_of_functions_are_short() {
    const CHARS_MAX: usize = 60;
    let mut wrong = Vec::new();
    for krate in crates() {
        for within in ["src", "tests"] {
            for (path, text) in sources(&krate, within) {
                for name in text.lines().filter_map(declared) {
                    if name.len() > CHARS_MAX {
                        wrong.push(format!("{}: {name}", path.display()));
                    }
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
