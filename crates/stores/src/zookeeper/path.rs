//! Where keys stand in the tree.

/// A key's path below `base`. The names `.` and `..` have a meaning in paths, so they are written
/// otherwise; no name has a percent sign.
pub(super) fn path(base: &str, key: &str) -> String {
    let mut path = base.to_owned();
    for part in key.split('/') {
        path.push('/');
        match part {
            "." => path.push_str("%2E"),
            ".." => path.push_str("%2E%2E"),
            part => path.push_str(part),
        }
    }
    path
}

/// The name that a node stands for.
pub(super) fn name(node: &str) -> String {
    node.replace("%2E", ".")
}

#[test]
fn names_that_mean_something_in_paths_are_written_otherwise() {
    for (key, expected) in [
        ("slot/a.b/7", "/x/slot/a.b/7"),
        ("source/..", "/x/source/%2E%2E"),
        ("pool/.", "/x/pool/%2E"),
    ] {
        let path = path("/x", key);
        assert_eq!(path, expected);
        assert_eq!(
            name(path.rsplit('/').next().unwrap_or("")),
            key.rsplit('/').next().unwrap_or("")
        );
    }
}
