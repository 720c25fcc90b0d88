//! Imports between the files of a crate, followed through re-exports to the file that defines the
//! name: a `mod.rs` that re-exports its children's names makes no circle.
//!
//! An import is a path of a `use`, or one in the code. A `pub use` is a re-export, unless its file
//! also mentions the name. Calls of methods name no file. Code for tests is left out, as are files
//! that a `path` attribute names.

use std::collections::{BTreeMap, BTreeSet};

use super::prose::after_quote;
use super::quoted;

/// Texts of a crate's files, by their paths below `src`.
pub(super) type Files = BTreeMap<String, String>;

/// Files of a crate, each with the files that define the names it imports.
pub(super) type Imports<'t> = BTreeMap<&'t str, BTreeSet<&'t str>>;

/// Files that begin a tree of modules.
pub(super) const TOPS: [&str; 2] = ["lib.rs", "main.rs"];

/// Re-exports on the way of one name. A `use` of a crate that names an item like itself leads back
/// to itself.
const REEXPORTS_MAX: usize = 20;

/// Attributes of items for tests.
const TESTS: [&[&str]; 3] = [
    &["#", "[", "cfg", "(", "test"],
    &["#", "[", "cfg", "(", "all", "(", "test"],
    &["#", "[", "cfg", "(", "doctest"],
];

/// Keywords before the name of an item.
const ITEMS: [&str; 7] = ["fn", "struct", "enum", "trait", "type", "const", "static"];

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_name(token: &str) -> bool {
    token.chars().all(is_part)
}

/// Returns the length of the first token: a space, a comment, a literal, a name or a mark.
fn first_len(text: &str) -> usize {
    let up_to = |rest: &str| text.len() - rest.len();
    let name = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let (prefix, after) = text.split_at(name);
    let unhashed = after.trim_start_matches('#');
    if ["r", "br"].contains(&prefix) && unhashed.starts_with('"') {
        let close = format!("\"{}", "#".repeat(after.len() - unhashed.len()));
        unhashed[1..].split_once(&close).map_or(text.len(), |(_, rest)| up_to(rest))
    } else if name > 0 {
        name
    } else if text.starts_with(char::is_whitespace) {
        up_to(text.trim_start())
    } else if text.starts_with("//") {
        text.find('\n').unwrap_or(text.len())
    } else if text.starts_with("/*") {
        text.split_once("*/").map_or(text.len(), |(_, rest)| up_to(rest))
    } else if text.starts_with('"') {
        quoted(text).map_or(text.len(), |(_, rest)| up_to(rest))
    } else if let Some(after) = text.strip_prefix('\'') {
        match up_to(after_quote(text)) {
            // A lifetime.
            1 => up_to(after.trim_start_matches(is_part)),
            len => len,
        }
    } else if ["::", "..", "->", "=>"].iter().any(|mark| text.starts_with(*mark)) {
        2
    } else {
        text.chars().next().map_or(0, char::len_utf8)
    }
}

/// Returns the tokens of a source, without spaces and comments.
fn tokens(text: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (token, after) = rest.split_at(first_len(rest));
        let is_comment = token.starts_with("//") || token.starts_with("/*");
        if !is_comment && !token.starts_with(char::is_whitespace) {
            found.push(token);
        }
        rest = after;
    }
    found
}

/// Returns the place after the bracket that closes the one at `at`.
fn end_of_group(tokens: &[&str], at: usize) -> usize {
    let mut depth = 0;
    for (offset, token) in tokens[at..].iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + offset + 1;
        }
    }
    tokens.len()
}

/// Returns the place after the item, field or variant whose attributes begin at `at`.
fn end_of_item(tokens: &[&str], mut at: usize) -> usize {
    while tokens.get(at) == Some(&"#") {
        at = end_of_group(tokens, at + 1);
    }
    let mut angles = 0;
    while let Some(token) = tokens.get(at) {
        match *token {
            "{" => {
                let end = end_of_group(tokens, at);
                // A `use` ends after its braces.
                return end + usize::from(tokens.get(end) == Some(&";"));
            }
            "(" | "[" => {
                at = end_of_group(tokens, at);
                continue;
            }
            "<" => angles += 1,
            ">" => angles -= 1,
            ";" => return at + 1,
            "," if angles == 0 => return at + 1,
            "}" | ")" | "]" => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Returns the tokens of a source that are no code for tests.
fn shipped(text: &str) -> Vec<&str> {
    let tokens = tokens(text);
    let (mut left, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if TESTS.iter().any(|test| tokens[at..].starts_with(test)) {
            at = end_of_item(&tokens, at);
        } else {
            left.push(tokens[at]);
            at += 1;
        }
    }
    left
}

/// Returns the path at the begin of `tokens`.
fn path<'t>(tokens: &[&'t str]) -> Vec<&'t str> {
    let mut path = vec![tokens[0]];
    let mut rest = &tokens[1..];
    while let ["::", name, after @ ..] = rest
        && is_name(name)
    {
        path.push(*name);
        rest = after;
    }
    path
}

/// Returns the paths in the tree of a `use`, each with the name that it binds, `*` for all names.
fn use_paths<'t>(tree: &[&'t str]) -> Vec<(Vec<&'t str>, &'t str)> {
    let (mut found, mut alias) = (Vec::new(), None);
    let mut path: Vec<&str> = Vec::new();
    // The lengths of the path where braces opened.
    let mut open = vec![0];
    for (at, token) in tree.iter().chain(&[","]).enumerate() {
        match *token {
            "::" | "as" => {}
            "{" => open.push(path.len()),
            "," | "}" => {
                if path.len() > open[open.len() - 1] {
                    if path[path.len() - 1] == "self" {
                        path.pop();
                    }
                    let name = alias.take().unwrap_or(path[path.len() - 1]);
                    found.push((path.clone(), name));
                }
                if *token == "}" {
                    open.pop();
                }
                path.truncate(open[open.len() - 1]);
            }
            name if at > 0 && tree[at - 1] == "as" => alias = Some(name),
            name => path.push(name),
        }
    }
    found
}

#[derive(Default)]
struct Module<'t> {
    file: &'t str,
    parent: Option<usize>,
    children: BTreeMap<&'t str, usize>,
    items: BTreeSet<&'t str>,
    /// Paths of `use`, by the names that they bind.
    uses: BTreeMap<&'t str, Vec<&'t str>>,
    globs: Vec<Vec<&'t str>>,
    /// Paths that count as imports, if they lead to another file.
    paths: Vec<Vec<&'t str>>,
}

impl<'t> Module<'t> {
    /// Adds a path of a `use`, which binds `name`.
    fn bind(&mut self, mut path: Vec<&'t str>, name: &'t str, is_import: bool) {
        if name == "*" {
            path.pop();
            self.globs.push(path.clone());
            self.paths.push(path);
        } else {
            if is_import {
                self.paths.push(path.clone());
            }
            self.uses.entry(name).or_insert(path);
        }
    }
}

/// Modules of a crate. A number is a place among them.
struct Modules<'t> {
    files: &'t Files,
    all: Vec<Module<'t>>,
}

impl<'t> Modules<'t> {
    /// Reads a module and those below it; returns its number.
    fn read(&mut self, file: &'t str, parent: Option<usize>, tokens: &[&'t str]) -> usize {
        let number = self.all.len();
        self.all.push(Module::default());
        let mut module = Module { file, parent, ..Module::default() };
        let (mut uses, mut names) = (Vec::new(), BTreeSet::new());
        let (mut at, mut depth) = (0, 0_usize);
        while at < tokens.len() {
            let rest = &tokens[at..];
            let before = if at > 0 { tokens[at - 1] } else { "" };
            match rest {
                ["mod", name, ";", ..] => {
                    module.children.insert(*name, self.read_file(file, number, name));
                    at += 3;
                    continue;
                }
                ["mod", name, "{", ..] => {
                    let end = end_of_group(tokens, at + 2);
                    let child = self.read(file, Some(number), &tokens[at + 3..end - 1]);
                    module.children.insert(*name, child);
                    at = end;
                    continue;
                }
                // Bounds of a generic return type have the keyword, too.
                ["use", first, ..] if *first != "<" => {
                    let len = rest.iter().position(|token| *token == ";").unwrap_or(rest.len());
                    let is_public = ["pub", ")"].contains(&before);
                    uses.push((is_public, use_paths(&rest[1..len])));
                    at += len;
                    continue;
                }
                // `pub(in crate::room)` limits who sees an item, and imports nothing.
                ["(", "in", ..] => {
                    at = end_of_group(tokens, at);
                    continue;
                }
                [keyword, name, ..] if depth == 0 && ITEMS.contains(keyword) => {
                    module.items.insert(*name);
                }
                ["macro_rules", "!", name, ..] => {
                    module.items.insert(*name);
                }
                ["{" | "(" | "[", ..] => depth += 1,
                ["}" | ")" | "]", ..] => depth = depth.saturating_sub(1),
                _ => {}
            }
            if is_name(rest[0]) {
                names.insert(rest[0]);
                let path = path(rest);
                if path.len() > 1 && before != "::" && before != "." {
                    module.paths.push(path);
                }
            }
            at += 1;
        }
        for (is_public, paths) in uses {
            for (path, name) in paths {
                module.bind(path, name, !is_public || names.contains(name));
            }
        }
        self.all[number] = module;
        number
    }

    /// Reads the module `name`, which `file` declares.
    fn read_file(&mut self, file: &str, parent: usize, name: &str) -> usize {
        let folder =
            file.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        let paths = [format!("{folder}{name}.rs"), format!("{folder}{name}/mod.rs")];
        let files = self.files;
        let found = paths.iter().find_map(|path| files.get_key_value(path));
        let (path, text) = found.unwrap_or_else(|| panic!("{file}: module {name} has no file"));
        self.read(path, Some(parent), &shipped(text))
    }

    /// Returns the module that defines the last known name of a path in module `at`, and whether
    /// the path names the module itself.
    fn follow(&self, mut at: usize, path: &[&'t str], reexports: usize) -> Option<(usize, bool)> {
        let mut rest = path;
        while let [first, after @ ..] = rest {
            match *first {
                "crate" => {
                    while let Some(parent) = self.all[at].parent {
                        at = parent;
                    }
                }
                "super" => at = self.all[at].parent?,
                "self" => {}
                _ => break,
            }
            rest = after;
        }
        self.find(at, rest, reexports)
    }

    /// Does the same for a path whose first name stands in module `at`.
    fn find(&self, at: usize, path: &[&'t str], reexports: usize) -> Option<(usize, bool)> {
        let [first, rest @ ..] = path else { return Some((at, true)) };
        let module = &self.all[at];
        if let Some(child) = module.children.get(first) {
            return Some(self.find(*child, rest, reexports).unwrap_or((*child, false)));
        }
        if module.items.contains(first) {
            return Some((at, false));
        }
        let reexports = reexports.checked_sub(1)?;
        if let Some(used) = module.uses.get(first) {
            let (found, is_module) = self.follow(at, used, reexports)?;
            let inner = if is_module { self.find(found, rest, reexports) } else { None };
            return Some(inner.unwrap_or((found, false)));
        }
        module.globs.iter().find_map(|glob| {
            let (found, _) = self.follow(at, glob, reexports)?;
            if found == at { None } else { self.find(found, path, reexports) }
        })
    }
}

/// Returns the imports of every file that the modules of a crate have.
pub(super) fn imports(files: &Files) -> Imports<'_> {
    let mut modules = Modules { files, all: Vec::new() };
    for top in TOPS {
        if let Some(text) = files.get(top) {
            modules.read(top, None, &shipped(text));
        }
    }
    let mut imports = Imports::new();
    for (at, module) in modules.all.iter().enumerate() {
        let found = module.paths.iter().filter_map(|path| modules.follow(at, path, REEXPORTS_MAX));
        let files = found.map(|(found, _)| modules.all[found].file);
        let others = files.filter(|file| *file != module.file);
        imports.entry(module.file).or_default().extend(others);
    }
    imports
}

#[test]
fn imports_lead_to_the_file_that_defines_a_name() {
    let others = [
        ("lib.rs", "mod ground;\nmod user;\npub use ground::Thing;\npub mod own;\n"),
        (
            "ground/mod.rs",
            "mod deep;\nmod kinds;\npub use deep::{Thing, inner as outer};\npub use kinds::*;\n\
             pub const fn made() {}\nmacro_rules! shown { () => {}; }\npub(crate) use shown;\n",
        ),
        ("ground/deep.rs", "pub struct Thing;\npub fn inner() {}\n"),
        ("ground/kinds.rs", "pub enum Kind { One }\n"),
        ("own.rs", ""),
    ];
    let (all, deep, kinds) = ("ground/mod.rs", "ground/deep.rs", "ground/kinds.rs");
    let cases: [(&str, &[&str]); 20] = [
        ("use crate::Thing;", &[deep]),
        ("use super::ground::outer;", &[deep]),
        ("use crate::{ground::{self as g, Kind}, own};", &[kinds, all, "own.rs"]),
        ("fn f() { let _ = crate::ground::Kind::One; }", &[kinds]),
        ("use crate::ground as g;\nfn f() { g::Thing::new::<u8>() }", &[deep, all]),
        ("fn f() { crate::ground::made() }", &[all]),
        ("crate::ground::shown!();", &[all]),
        // A name that no item has, such as one that a macro makes.
        ("fn f() { super::own::CASES; }", &["own.rs"]),
        ("use crate::ground::*;\nfn f(_: Kind) {}", &[all]),
        ("mod inner { use super::super::Thing; }", &[deep]),
        ("#[cfg(any(test, x))]\nuse crate::Thing;", &[deep]),
        ("fn f() -> impl Copy + use<'static> { crate::Thing }", &[deep]),
        // A re-export, and one that the file uses itself.
        ("pub use crate::Thing;", &[]),
        ("pub(crate) use crate::Thing;\nfn f(_: Thing) {}", &[deep]),
        ("pub(in crate::ground) fn f() {}", &[]),
        ("use std::{fmt, io::Write as _};\nuse own::own;\nfn f(_: own::Own, _: fmt::A) {}", &[]),
        ("// crate::Thing\n/* crate::Thing */ const A: &str = \"\\\"crate::Thing\";", &[]),
        ("const A: [char; 2] = ['\"', '\\''];\nconst B: &str = r#\"\"crate::Thing\"#;", &[]),
        ("#[cfg(test)]\nmod tests { use crate::Thing; }\nfn f<'a>(_: &'a u8) {}", &[]),
        (
            "#[cfg(all(test, x))]\n#[inline]\nfn f<A, B>() -> A { crate::Thing }\n\
             struct A { #[cfg(test)] b: crate::Thing, c: u8 }\n#[cfg(test)]\nuse crate::{Thing};",
            &[],
        ),
    ];
    for (text, wanted) in cases {
        let files = others.into_iter().chain([("user.rs", text)]);
        let files: Files = files.map(|(file, text)| (file.to_owned(), text.to_owned())).collect();
        let found: Vec<_> = imports(&files)["user.rs"].iter().copied().collect();
        assert_eq!(found, wanted, "{text}");
    }
}
