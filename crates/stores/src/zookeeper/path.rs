//! Paths of keys in the tree.

/// Returns a key's path below `base`. The names `.` and `..` have a meaning in paths, so they are
/// encoded; no name has a percent sign.
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

/// Returns the name that a node encodes.
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
