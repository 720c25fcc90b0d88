//! Sockets: accepted, encrypted, written, and closed at the stop.

pub(crate) mod http_socket;
pub(crate) mod listener;
pub(crate) mod read_deadline_body;
pub(crate) mod shutdown;
pub(crate) mod stream;
pub(crate) mod tls;
