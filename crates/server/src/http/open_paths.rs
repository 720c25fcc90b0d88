//! Paths that need no token.

/// Paths that wait for nothing: their callers end a server that does not respond.
pub(crate) const PROBES: [&str; 2] = ["/livez", "/readyz"];

/// Prefix of the paths of layouts, which are the same on every server.
const LAYOUTS: &str = "/v1/layouts";

/// Returns whether a path of this server's own interface needs no token.
pub(crate) fn is_open(path: &str) -> bool {
    path.starts_with(LAYOUTS) || PROBES.contains(&path)
}
