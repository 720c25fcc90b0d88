//! What everything that we build with is licensed as, where it comes from, and what must not be in it.
//! Asks cargo about the packages that are there already, so it needs no network.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::process::Command;

use serde_json::Value;
use spdx::{Expression, ParseMode};

/// Licences that ask for no more than their text and a notice. A package may offer others beside one.
const ALLOWED: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// What must not be there, and why.
const BANNED: [(&str, &str); 4] = [
    ("openssl", "TLS is rustls, the same on every machine"),
    ("openssl-sys", "TLS is rustls, the same on every machine"),
    ("native-tls", "TLS is rustls, the same on every machine"),
    ("chrono", "dates are jiff, and core's own"),
];

/// Every package of the workspace, and what it is built with here.
fn packages() -> Vec<Value> {
    let host = Command::new("rustc").arg("-vV").output().unwrap();
    let host = String::from_utf8(host.stdout).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let arguments =
        ["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform"];
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .arg(host)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let used: Vec<&Value> =
        metadata["resolve"]["nodes"].as_array().unwrap().iter().map(|node| &node["id"]).collect();
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().filter(|package| used.contains(&&package["id"])).cloned().collect()
}

fn is_allowed(licence: &str) -> bool {
    let expression = Expression::parse_mode(licence, ParseMode::LAX).unwrap();
    expression.evaluate(|wanted| wanted.license.id().is_some_and(|id| ALLOWED.contains(&id.name)))
}

#[test]
fn every_licence_is_one_that_we_may_ship() {
    let packages = packages();
    assert!(packages.len() > 100, "{}", packages.len());
    for package in &packages {
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(is_allowed(licence), "{} {}: {licence:?}", package["name"], package["version"]);
    }
}

#[test]
fn the_check_of_licences_can_fail() {
    for (licence, allowed) in [
        ("GPL-3.0-only", false),
        ("MIT AND GPL-2.0-only", false),
        ("MIT OR GPL-3.0-or-later", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("MIT/Apache-2.0", true),
        ("AGPL-3.0-only OR SSPL-1.0", false),
    ] {
        assert_eq!(is_allowed(licence), allowed, "{licence}");
    }
}

#[test]
fn packages_come_from_here_or_from_a_registry() {
    for package in packages() {
        let from = package["source"].as_str();
        assert!(from.is_none_or(|from| from.starts_with("registry+")), "{package}");
    }
}

#[test]
fn nothing_that_is_banned_is_there() {
    for package in packages() {
        let banned = BANNED.iter().find(|(name, _)| package["name"] == *name);
        assert_eq!(banned, None, "{}", package["version"]);
    }
}
