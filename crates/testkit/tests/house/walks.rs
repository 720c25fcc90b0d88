//! Walks of ARCHITECTURE.md: each file that they name exists, and has the function.

use std::fs;

use super::root;

/// Returns the file and the function of a line of a walk.
fn step(line: &str) -> Option<(&str, &str)> {
    let (number, rest) = line.split_once(". `")?;
    number.parse::<u32>().ok()?;
    let (file, rest) = rest.split_once("`, `")?;
    Some((file, rest.split_once('`')?.0))
}

#[test]
fn walks_name_functions_that_exist() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let steps: Vec<_> = text.lines().filter_map(step).collect();
    assert!(steps.len() >= 20, "{steps:?}");
    let is_missing = |(file, function): &&(&str, &str)| {
        let source = fs::read_to_string(root().join("crates").join(file)).unwrap_or_default();
        !source.contains(&format!("fn {function}(")) && !source.contains(&format!("fn {function}<"))
    };
    let missing: Vec<_> = steps.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what is not there: {missing:?}");
}
