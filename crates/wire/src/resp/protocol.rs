//! The limits of a request, and the error of bytes that are not a request.

use std::fmt;

/// The longest request, in bytes. Every command of the server fits many times over.
pub const FRAME_BYTES_MAX: usize = 64 * 1024;
/// The most arguments of a request, its name included.
pub const ARGS_MAX: usize = 1024;
/// The longest argument, in bytes.
pub const BULK_BYTES_MAX: usize = 16 * 1024;
/// The longest request written as a line of words, in bytes.
pub const INLINE_BYTES_MAX: usize = 16 * 1024;

/// The position of an argument: `start..end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArgSpan {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The error of bytes that are not a request. Its texts follow Redis, so that clients and people
/// recognise them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number of arguments is not a number, or more than [`ARGS_MAX`].
    ArrayLength,
    /// The length of an argument is not a number, negative, or more than [`BULK_BYTES_MAX`].
    BulkLength,
    /// An item inside a request is not a bulk string.
    NotABulk {
        /// The byte found.
        got: u8,
    },
    /// An argument is not followed by CR LF.
    BulkEnd,
    /// The arguments together are longer than [`FRAME_BYTES_MAX`].
    FrameTooLong,
    /// A line of words is longer than [`INLINE_BYTES_MAX`], or has more than [`ARGS_MAX`] words.
    InlineTooLong,
    /// A line of words has a quote that is not closed, or is closed inside a word.
    Quotes,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            Self::ArrayLength => write!(f, "invalid multibulk length, at most {ARGS_MAX}"),
            Self::BulkLength => write!(f, "invalid bulk length, at most {BULK_BYTES_MAX} bytes"),
            Self::NotABulk { got } => write!(f, "expected '$', got '{}'", got.escape_ascii()),
            Self::BulkEnd => f.write_str("bulk string not followed by CR LF"),
            Self::FrameTooLong => write!(f, "request longer than {FRAME_BYTES_MAX} bytes"),
            Self::InlineTooLong => write!(
                f,
                "too big inline request, at most {INLINE_BYTES_MAX} bytes and {ARGS_MAX} words"
            ),
            Self::Quotes => f.write_str("unbalanced quotes in request"),
        }
    }
}

impl std::error::Error for ProtocolError {}
