//! An error in one line, with all its causes.

use std::error::Error;
use std::fmt;

use crate::error::label::Visible;

/// Formats an error with all its causes, as logs show it: `extend: store is unavailable: socket
/// closed`. The text is one line, whatever characters a cause has. Causes that the text already
/// contains, as in an error with a text that ends in its cause, are not repeated.
pub fn chain(error: &dyn Error) -> impl fmt::Display {
    Chain(error)
}

struct Chain<'a>(&'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut message = self.0.to_string();
        let mut next = self.0.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            next = cause.source();
        }
        write!(f, "{}", Visible(&message))
    }
}

#[cfg(test)]
mod tests {
    use super::chain;
    use crate::error::{Error, Verb};

    /// An error of a driver; some drivers include the cause in their text.
    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct TestError {
        text: &'static str,
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    }

    fn with_cause(text: &'static str, cause: Option<TestError>) -> TestError {
        TestError { text, source: cause.map(Into::into) }
    }

    fn away(cause: TestError) -> Error {
        Error::unavailable("store is unavailable").with_verb(Verb::Extend).with_source(cause)
    }

    #[test]
    fn chain_shows_every_cause_once() {
        let closed = || with_cause("socket closed", None);
        let error = away(with_cause("the connection ended", Some(closed())));
        let all = "extend: store is unavailable: the connection ended: socket closed";
        assert_eq!(chain(&error).to_string(), all);
        let error = away(with_cause("ended: socket closed", Some(with_cause("", Some(closed())))));
        assert_eq!(chain(&error).to_string(), "extend: store is unavailable: ended: socket closed");
        let error = away(with_cause("gone\n\u{1b}[2J", None));
        assert!(chain(&error).to_string().ends_with("gone\\n\\u{1b}[2J"), "{}", chain(&error));
        let alone = Error::invalid("no pool").with_verb(Verb::Claim);
        assert_eq!(chain(&alone).to_string(), alone.to_string());
    }
}
