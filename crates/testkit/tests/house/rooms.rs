//! Order of the rooms of each crate. A room is a file or a folder directly below `src`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::imports::{Files, Imports, TOPS, imports};
use super::{crates, root, sources};

/// Rooms of each crate from the ground up: a room imports only those before a `<` on its left.
const ROOMS: [(&str, &str); 10] = [
    ("cli", "system < terminal < audit < config < unique < open < security < client < cmd"),
    (
        "client",
        "budget < call_failure < credentials < handshake < servers_url < connect_options \
         < settings < link < servers < owners < store",
    ),
    (
        "coord",
        "ids < error < platform < model < stats < journal < machine < spec < store < sources \
         < node",
    ),
    (
        "core",
        "sync < time < advance < civil < clock < cursor < layout < disguise < generator < text",
    ),
    (
        "server",
        "advertised_addrs < clients < trail < error < access < config < requests < observe < net \
         < cluster < service < grpc, http, resp < port < handle",
    ),
    (
        "snowmint",
        "clock < observer < runtime < values < stored < worker < snowflake < builder < lane < mint \
         < options < blocking",
    ),
    (
        "store-rpc",
        "malformed < codec < definitions, describe, error, members, segments, slots, whole_store \
         < method",
    ),
    (
        "stores",
        "cluster_url < opening < tls < failure < keyed < sql \
         < etcd, mysql, postgres, redis, sqlite, zookeeper < scheme < legacy",
    ),
    ("testkit", "contract, history, programs, proxy < audited_store < children < sim < servers"),
    ("wire", "error < grpc < lines < report < http < resp"),
];

/// Circles of files: the first file of each, the number of its files, and the reason.
const CIRCLES: &[(&str, usize, &str)] = &[
    ("coord/node/secondary/mod.rs", 3, "a node has the nodes of its secondary stores"),
    ("coord/sources/backing.rs", 5, "a multi-store source is made of sources"),
    ("testkit/sim/density.rs", 15, "a world has machines, and machines act in the world"),
];

fn room(file: &str) -> &str {
    let top = file.split('/').next().unwrap_or_default();
    top.strip_suffix(".rs").unwrap_or(top)
}

/// Returns the level of each room of a row.
fn levels(row: &str) -> BTreeMap<&str, usize> {
    let levels = row.split(" < ").enumerate();
    levels.flat_map(|(level, rooms)| rooms.split(", ").map(move |room| (room, level))).collect()
}

/// Returns the texts of a crate's files.
fn files(krate: &str) -> Files {
    let src = root().join("crates").join(krate).join("src");
    let below = |path: &Path| path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
    sources(krate, "src").into_iter().map(|(path, text)| (below(&path), text)).collect()
}

/// Returns the imports of a room that is not below the one that imports.
fn upwards<'t>(imports: &Imports<'t>, levels: &BTreeMap<&str, usize>) -> Vec<(&'t str, &'t str)> {
    let mut found = Vec::new();
    for (file, targets) in imports.iter().filter(|(file, _)| !TOPS.contains(*file)) {
        for target in targets.iter().filter(|target| room(target) != room(file)) {
            // The top is above all rooms, and has no level.
            let level = levels.get(room(target));
            if level.is_none_or(|level| Some(level) >= levels.get(room(file))) {
                found.push((*file, *target));
            }
        }
    }
    found
}

/// Returns the files that a file imports, directly or through others.
fn reached<'t>(imports: &Imports<'t>, from: &str) -> BTreeSet<&'t str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for target in &imports[file] {
            if found.insert(*target) {
                open.push(*target);
            }
        }
    }
    found
}

/// Returns the circles: sets of files, each of which reaches all others.
fn circles<'t>(imports: &Imports<'t>) -> BTreeSet<Vec<&'t str>> {
    let reached: BTreeMap<&str, BTreeSet<&'t str>> =
        imports.keys().map(|file| (*file, reached(imports, file))).collect();
    let in_circles = reached.iter().filter(|(file, targets)| targets.contains(*file));
    in_circles
        .map(|(file, targets)| {
            targets.iter().copied().filter(|target| reached[target].contains(file)).collect()
        })
        .collect()
}

#[test]
fn every_room_is_in_the_table() {
    assert_eq!(ROOMS.map(|(krate, _)| krate).to_vec(), crates());
    for (krate, row) in ROOMS {
        let files = files(krate);
        let imports = imports(&files);
        let rooms: BTreeSet<&str> =
            imports.keys().filter(|file| !TOPS.contains(*file)).map(|file| room(file)).collect();
        let listed: BTreeSet<&str> = levels(row).into_keys().collect();
        assert_eq!(rooms, listed, "rooms of {krate}");
    }
}

/// Returns the words in backticks.
fn named(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Rooms of stores that ARCHITECTURE.md names together: a folder for each database.
const DATABASES: [&str; 6] = ["etcd", "mysql", "postgres", "redis", "sqlite", "zookeeper"];

#[test]
fn every_room_stands_in_the_architecture() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = |head: String| -> BTreeSet<&str> {
        let (_, rows) = text.split_once(&head).unwrap_or_else(|| panic!("no {head}"));
        let rows = rows.lines().skip(2).take_while(|line| line.starts_with('|'));
        rows.flat_map(|row| named(row.split('|').nth(1).unwrap())).collect()
    };
    for (krate, row) in ROOMS {
        let start = format!("| `{krate}` | ");
        let line = text.lines().find(|line| line.starts_with(&start)).unwrap();
        let contents = line.split('|').nth(3).unwrap();
        let listed = match contents.trim() {
            "below" => table(format!("| room of `{krate}` |")),
            _ => named(contents),
        };
        let mut rooms: BTreeSet<&str> = levels(row).into_keys().collect();
        if krate == "stores" {
            rooms.retain(|room| !DATABASES.contains(room));
        }
        assert_eq!(listed, rooms, "rooms of {krate}");
    }
}

#[test]
fn no_room_imports_a_room_above_it() {
    let (mut hits, mut count) = (Vec::new(), 0);
    for (krate, row) in ROOMS {
        let files = files(krate);
        let imports = imports(&files);
        count += imports.values().map(BTreeSet::len).sum::<usize>();
        for (file, target) in upwards(&imports, &levels(row)) {
            hits.push(format!("crates/{krate}/src/{file}: imports {target}"));
        }
    }
    assert!(hits.is_empty(), "\n{}", hits.join("\n"));
    assert!(count > 2_000, "found only {count} imports: the search has to follow the code");
}

#[test]
fn circles_of_files_are_named() {
    let mut listed = CIRCLES.to_vec();
    let mut hits = Vec::new();
    for (krate, _) in ROOMS {
        let files = files(krate);
        for circle in circles(&imports(&files)) {
            let first = format!("{krate}/{}", circle[0]);
            let count = circle.len();
            let len = listed.len();
            listed.retain(|row| (row.0, row.1) != (first.as_str(), count));
            if listed.len() == len {
                hits.push(format!("{first}: a circle of {count} files: {}", circle.join(", ")));
            }
        }
    }
    let gone = listed
        .iter()
        .map(|(file, count, _)| format!("{file}: no circle of {count} files any more"));
    hits.extend(gone);
    assert!(hits.is_empty(), "\n{}", hits.join("\n"));
}

/// Paths of protocols, which files of the server's `service` do not name.
const PROTOCOLS: [&str; 9] = [
    "axum::",
    "hyper::",
    "http::",
    "prost",
    "tonic",
    "tower",
    "snowmint_wire::grpc",
    "snowmint_wire::http",
    "snowmint_wire::resp",
];

#[test]
fn the_service_names_no_protocol() {
    let (mut hits, mut count) = (Vec::new(), 0);
    for (file, text) in files("server").iter().filter(|(file, _)| room(file) == "service") {
        count += 1;
        for (number, line) in (1..).zip(text.lines()) {
            if PROTOCOLS.iter().any(|path| line.contains(path)) {
                hits.push(format!("crates/server/src/{file}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(hits.is_empty(), "\n{}", hits.join("\n"));
    assert!(count > 20, "found only {count} files: the search has to follow the code");
}

#[test]
fn circles_and_imports_of_higher_rooms_are_found() {
    let graph: [(&str, &[&str]); 9] = [
        ("lib.rs", &["top.rs"]),
        ("top.rs", &["mid/a.rs", "ground.rs"]),
        ("mid/a.rs", &["mid/b.rs"]),
        ("mid/b.rs", &["mid/c.rs", "ground.rs"]),
        ("mid/c.rs", &["mid/a.rs", "twin.rs"]),
        ("ground.rs", &["high/mod.rs"]),
        ("twin.rs", &["ground.rs"]),
        ("high/mod.rs", &[]),
        ("leaf.rs", &["lib.rs"]),
    ];
    let graph: Imports<'_> = graph
        .into_iter()
        .map(|(file, targets)| (file, targets.iter().copied().collect()))
        .collect();
    let found: Vec<_> = circles(&graph).into_iter().collect();
    assert_eq!(found, [["mid/a.rs", "mid/b.rs", "mid/c.rs"]]);
    let found = upwards(&graph, &levels("ground, twin < mid < top, high, leaf"));
    let wanted = [("ground.rs", "high/mod.rs"), ("leaf.rs", "lib.rs"), ("twin.rs", "ground.rs")];
    assert_eq!(found, wanted);
}
