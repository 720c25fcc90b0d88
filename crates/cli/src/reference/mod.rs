//! The pages in docs/reference, made from what the program itself uses. A test compares them.

mod command_line;
mod configuration;
mod errors;
mod markdown;
mod sources;

use std::path::Path;

/// Environment variable that writes the pages instead of comparing them.
const WRITE: &str = "SNOWMINT_WRITE_GENERATED";

/// The name of a page, and the function that makes it.
type Page = (&'static str, fn() -> String);

const PAGES: [Page; 4] = [
    ("command-line.md", command_line::page),
    ("configuration.md", configuration::page),
    ("errors.md", errors::page),
    ("sources.md", sources::page),
];

#[test]
fn pages_are_made_from_the_code() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let mut differing = Vec::new();
    for (name, make) in PAGES {
        let (path, made) = (directory.join(name), make());
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        if std::fs::read_to_string(&path).ok() != Some(made) {
            differing.push(name);
        }
    }
    assert!(differing.is_empty(), "run the test with {WRITE}=1, and look at: {differing:?}");
}
