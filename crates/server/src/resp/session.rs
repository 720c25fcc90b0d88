//! What the server remembers of a connection between requests.

use std::str;
use std::sync::Arc;

use snowmint_coord::Source;
use snowmint_wire::resp::{Encoder, Protocol};

use super::Door;
use crate::roster::Ticket;
use crate::service::{Error, shown};

/// A connection's memory.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) door: Arc<Door>,
    pub(super) ticket: Ticket,
    pub(super) protocol: Protocol,
    /// The source asked last: most clients ask one again and again.
    source: Option<(String, Source)>,
}

impl Session {
    pub(super) fn new(door: Arc<Door>, ticket: Ticket) -> Self {
        Self { door, ticket, protocol: Protocol::default(), source: None }
    }

    /// Writes replies in the version that this client speaks.
    #[inline]
    pub(super) fn reply<'a>(&self, output: &'a mut Vec<u8>) -> Encoder<'a> {
        Encoder::new(output, self.protocol)
    }

    /// The source of this name, if it is the one asked last.
    #[inline]
    pub(super) fn source_at_hand(&self, name: &[u8]) -> Option<&Source> {
        match &self.source {
            Some((at_hand, source)) if at_hand.as_bytes() == name => Some(source),
            _ => None,
        }
    }

    /// Keeps a source at hand.
    pub(super) fn keep_source(&mut self, name: &str, source: Source) {
        if self.source_at_hand(name.as_bytes()).is_none() {
            self.source = Some((name.to_owned(), source));
        }
    }

    /// Forgets the source at hand, after it refused: it may have been deleted or replaced.
    pub(super) fn forget_source(&mut self) {
        self.source = None;
    }

    /// As after connecting.
    pub(super) fn reset(&mut self) {
        self.protocol = Protocol::default();
        self.source = None;
        crate::roster::lock(&self.ticket.entry().label).name.clear();
    }
}

/// Which IDs are asked for: `source`, or `source:key`.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) source: String,
    pub(super) key: Option<String>,
}

impl Target {
    pub(super) fn read(arg: &[u8]) -> Result<Self, Error> {
        let text = text(arg)?;
        Ok(match text.split_once(':') {
            None => Self { source: text.to_owned(), key: None },
            Some((source, key)) => Self { source: source.to_owned(), key: Some(key.to_owned()) },
        })
    }
}

/// An argument that must be text.
pub(super) fn text(arg: &[u8]) -> Result<&str, Error> {
    str::from_utf8(arg).map_err(|_| {
        let lossy = String::from_utf8_lossy(arg);
        Error::bad_request(format!("{} is not UTF-8", shown(&lossy)))
    })
}
