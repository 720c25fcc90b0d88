//! Route of a request: the servers that may handle it.

/// Servers that may handle a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// This server: a peer has forwarded the request.
    Here,
    /// This server, or the one that mints a global order. The client calls the section owner of a
    /// key itself.
    Ordered,
    /// Any: the owner handles it.
    Owner,
}
