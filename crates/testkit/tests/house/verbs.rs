//! One way of a verb through a store: `Store::call`.

use super::{crates, root, sources};

/// Returns the names of the functions that `Store` has for its verbs.
fn verbs() -> Vec<String> {
    let path = root().join("crates/coord/src/store/mod.rs");
    let text = std::fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let (verb, rest) = line.trim().split_once("): fn ")?;
        verb.starts_with(char::is_uppercase).then(|| rest.split_once('(').unwrap().0.to_owned())
    };
    text.lines().filter_map(row).collect()
}

/// Returns the verbs that a source's implementations of `Store` define by themselves.
fn overridden<'v>(text: &str, verbs: &'v [String]) -> Vec<&'v str> {
    let starts = text.match_indices(" Store for ").map(|(at, _)| at);
    let bodies = starts.map(|at| text[at..].split("\n}\n").next().unwrap_or_default());
    let has = |body: &str, verb: &str| {
        body.contains(&format!("fn {verb}(")) || body.contains(&format!("fn {verb}<"))
    };
    bodies
        .flat_map(|body| verbs.iter().filter(move |verb| has(body, verb)))
        .map(String::as_str)
        .collect()
}

/// Each verb has a function in `Store`, which an implementation could replace. Wrappers forward the
/// call, not the function, so they would bypass it.
#[test]
fn no_store_has_a_verb_besides_its_call() {
    let verbs = verbs();
    assert!(verbs.len() >= 30, "{verbs:?}");
    let mut hits = Vec::new();
    for krate in crates() {
        for (path, text) in sources(&krate, "src").into_iter().chain(sources(&krate, "tests")) {
            let found = overridden(&text, &verbs).into_iter();
            hits.extend(found.map(|verb| format!("{}: {verb}", path.display())));
        }
    }
    assert!(hits.is_empty(), "implement Store::call alone:\n{}", hits.join("\n"));
    let wrong = ["impl Store", "for Wrapper {\n    fn now<'a>(&'a self) {}\n}\n"].join(" ");
    assert_eq!(overridden(&wrong, &verbs), ["now"]);
}
