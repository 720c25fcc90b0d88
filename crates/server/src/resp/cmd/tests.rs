//! The table of commands, compared with the rejected ones and with the page docs/reference/resp.md.

use std::collections::BTreeSet;
use std::path::Path;

use super::rejected::Rejected;
use super::{COMMANDS, client, cluster, command, config, find};

/// Arguments and options of commands, which the page names in its first columns.
const ARGUMENTS: [&str; 9] =
    ["count", "id", "keepttl", "name", "nx", "off", "on", "optin", "token"];

/// Returns the containers with the names of their sub-commands.
fn containers() -> [(&'static str, Vec<&'static str>); 4] {
    [
        (client::SPEC.name, client::SUBCOMMANDS.iter().map(|row| row.0).collect()),
        (cluster::SPEC.name, cluster::SUBCOMMANDS.iter().map(|row| row.0).collect()),
        (command::NAME, command::SUBCOMMANDS.iter().map(|row| row.0).collect()),
        (config::SPEC.name, config::SUBCOMMANDS.iter().map(|row| row.0).collect()),
    ]
}

/// Returns the words in upper case of a text's code spans, as the table of commands writes them.
fn named(text: &str) -> BTreeSet<String> {
    let spans = text.split('`').skip(1).step_by(2);
    let words = spans.flat_map(|span| span.split(|c: char| !c.is_ascii_alphabetic() && c != '-'));
    let is_name = |word: &&str| word.len() > 1 && !word.chars().any(|c| c.is_ascii_lowercase());
    words.filter(is_name).map(str::to_ascii_lowercase).collect()
}

fn page() -> String {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(home.join("../../docs/reference/resp.md")).unwrap()
}

/// Returns the names in the first cell of each row in the tables of commands.
fn first_cells(page: &str) -> Vec<BTreeSet<String>> {
    let tables = page.split("| command | reply |").skip(1);
    let rows =
        tables.flat_map(|table| table.lines().skip(1).take_while(|row| row.starts_with('|')));
    rows.filter_map(|row| row.split(" | ").next()).map(named).collect()
}

#[test]
fn command_of_the_table_is_not_rejected() {
    for spec in COMMANDS {
        let name = spec.name;
        assert!(Rejected::find(name.as_bytes()).is_none(), "remove {name} from rejected.rs");
    }
}

#[test]
fn page_names_every_command() {
    let page = page();
    let names = named(&page);
    let missing = COMMANDS.iter().map(|spec| spec.name).filter(|name| !names.contains(*name));
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "resp.md does not name {missing:?}");
    let cells = first_cells(&page);
    let mut missing = Vec::new();
    for (container, names) in containers() {
        let is_named =
            |name: &&str| cells.iter().any(|cell| cell.contains(container) && cell.contains(*name));
        missing.extend(names.iter().filter(|name| !is_named(name)).map(|name| (container, *name)));
    }
    assert!(missing.is_empty(), "no row of resp.md has container and sub-command: {missing:?}");
}

#[test]
fn commands_of_the_page_are_known_or_rejected() {
    let containers = containers();
    let is_known = |name: &String| {
        let text = name.as_bytes();
        let is_sub = containers.iter().any(|(_, names)| names.contains(&name.as_str()));
        let is_argument = ARGUMENTS.contains(&name.as_str());
        is_sub || is_argument || find(text).is_some() || Rejected::find(text).is_some()
    };
    let names = first_cells(&page()).into_iter().flatten();
    let unknown: Vec<_> = names.filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty(), "resp.md names commands that no table has: {unknown:?}");
}
