//! Messages that have no value: what a server says of a request, and a client of a response.

use snowmint_coord::Error;
use snowmint_wire::error::Code;

/// Reason why a message has no value.
#[derive(Debug)]
pub enum Malformed {
    /// A part of this name is missing.
    Missing(&'static str),
    /// A choice is open: the part's name, and what a server asks for.
    Unspecified(&'static str, &'static str),
    /// The text names no member.
    Member(String, Error),
    /// The value named here is of a newer version.
    Newer(String),
    /// A part is longer than callers may send, by this sentence.
    TooLong(String),
    /// A list has more items than callers may send, by this sentence.
    TooMany(String),
}

impl Malformed {
    /// Returns the code and the sentence for the caller that sent the message as a request.
    #[must_use]
    pub fn of_request(self) -> (Code, String) {
        match self {
            Self::Missing(part) => (Code::BadRequest, format!("message has no {part}; send it")),
            Self::Unspecified(_, sentence) => (Code::BadRequest, sentence.to_owned()),
            Self::Member(_, error) => (Code::BadRequest, error.to_string()),
            Self::Newer(value) => {
                let message = format!("{value} is unknown to this version; update the server");
                (Code::Unsupported, message)
            }
            Self::TooLong(sentence) => (Code::BadRequest, sentence),
            Self::TooMany(sentence) => (Code::LimitExceeded, sentence),
        }
    }

    /// Returns the error of a call whose response is the message.
    #[must_use]
    pub fn of_response(self) -> Error {
        let has = match self {
            Self::Newer(value) => {
                let message = format!("{value}, unknown to this version; update this program");
                return Error::unsupported(message);
            }
            Self::Missing(part) | Self::Unspecified(part, _) => format!("no {part}"),
            Self::Member(text, _) => format!("member {text:?}, expected 32 hexadecimal digits"),
            // Only parts of requests have a maximum.
            Self::TooLong(sentence) | Self::TooMany(sentence) => sentence,
        };
        Error::internal(format!("internal error: server's response has {has}; please report it"))
    }
}
