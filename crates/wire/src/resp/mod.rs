//! RESP versions 2 and 3, the protocol of Redis.
//!
//! Requests are the same in both versions: an array of bulk strings, or one line of words. Only the
//! replies differ, and only after a client requested version 3 with `HELLO 3`.

mod inline;
mod protocol;
mod reply;
mod request;

pub use protocol::{ARGS_MAX, BULK_BYTES_MAX, FRAME_BYTES_MAX, INLINE_BYTES_MAX, ProtocolError};
pub use reply::{Encoder, Protocol};
pub use request::{Command, Next, Parser};
