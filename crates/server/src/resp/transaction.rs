//! Commands from `MULTI` to `EXEC`: queued, to run together.

use std::fmt;

use snowmint_wire::resp::{Command, Encoder, Next, Parser, Protocol};

use super::buffered_bytes::BufferedBytes;
use crate::clients::tracker::TrackedConnection;
use crate::requests::quota::Full;
use crate::requests::reading::WaitingRequests;

/// Longest transaction, in bytes of requests: about 8,000 times `INCR`.
pub(super) const TRANSACTION_BYTES_MAX: usize = 256 * 1024;

/// Commands since `MULTI`.
#[derive(Default)]
pub(super) struct Transaction {
    /// Requests, one after the other.
    requests: Vec<u8>,
    count: usize,
    /// Whether a command failed, after which `EXEC` runs none.
    is_aborted: bool,
    /// Whether a command names the key of a counter.
    has_keys: bool,
    buffered_bytes: BufferedBytes,
}

/// Reason why a command is not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotQueued {
    /// The transaction would have this many bytes.
    TooLong(usize),
    /// It would have this many bytes, and the client's kept bytes reach a bound.
    Full(usize, Full),
}

impl Transaction {
    /// Queues a command.
    ///
    /// # Errors
    /// If the transaction would be too long, or the client's kept bytes reach a bound. It is
    /// aborted then.
    pub(super) fn queue(
        &mut self,
        command: &Command<'_>,
        requests: &WaitingRequests,
        connection: &TrackedConnection,
    ) -> Result<(), NotQueued> {
        if self.is_aborted {
            return Ok(());
        }
        let mut request = Encoder::new(&mut self.requests, Protocol::Resp2);
        request.array(command.len());
        command.args().for_each(|arg| request.bulk(arg));
        let length = self.requests.len();
        let queued = if length > TRANSACTION_BYTES_MAX {
            Err(NotQueued::TooLong(length))
        } else {
            let held = self.buffered_bytes.set(self.requests.capacity(), requests, connection);
            held.map_err(|full| NotQueued::Full(length, full))
        };
        match queued {
            Ok(()) => self.count = self.count.saturating_add(1),
            Err(_) => self.abort(),
        }
        queued
    }

    /// Aborts: none of the commands will run.
    pub(super) fn abort(&mut self) {
        self.is_aborted = true;
        self.requests = Vec::new();
        self.buffered_bytes = BufferedBytes::default();
    }

    /// Records that a command names the key of a counter.
    pub(super) const fn note_key(&mut self) {
        self.has_keys = true;
    }

    /// Returns whether a command names the key of a counter.
    pub(super) const fn has_keys(&self) -> bool {
        self.has_keys
    }

    pub(super) const fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// Returns the number of commands.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the commands, as requests one after the other.
    pub(super) fn requests(&self) -> &[u8] {
        &self.requests
    }

    /// Returns the first result that `find` has for a command.
    pub(super) fn find_map<T>(&self, find: impl Fn(&Command<'_>) -> Option<T>) -> Option<T> {
        let mut parser = Parser::new();
        let mut unread = self.requests();
        while let Ok(Next::Command { command, bytes }) = parser.next(unread) {
            if let Some(found) = find(&command) {
                return Some(found);
            }
            unread = unread.get(bytes..).unwrap_or_default();
        }
        None
    }
}

/// Hides the requests, which may contain a token (`AUTH`).
impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("count", &self.count).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::quota::Bounds;

    /// Queues `ECHO` of this many bytes.
    fn echo(
        to: &mut Transaction,
        bytes: usize,
        requests: &WaitingRequests,
    ) -> Result<(), NotQueued> {
        let mut sent = Vec::new();
        let mut request = Encoder::new(&mut sent, Protocol::Resp2);
        request.array(2);
        request.bulk(b"ECHO");
        request.bulk(&vec![b'x'; bytes]);
        let mut parser = Parser::new();
        let Ok(Next::Command { command, .. }) = parser.next(&sent) else { panic!("a request") };
        to.queue(&command, requests, &TrackedConnection::new(1, "10.0.0.1:1".parse().unwrap(), 0))
    }

    #[test]
    fn transactions_of_a_client_have_a_share_of_kept_bytes() {
        let requests =
            WaitingRequests::within(Bounds { all: 100_000, share: 10_000, connection: 100_000 });
        let mut transactions = Vec::new();
        let refused = loop {
            let mut transaction = Transaction::default();
            if let Err(refused) = echo(&mut transaction, 14_000, &requests) {
                assert!(transaction.is_aborted() && transaction.requests().is_empty());
                assert_eq!(echo(&mut transaction, 14_000, &requests), Ok(()), "as after any error");
                break refused;
            }
            transactions.push(transaction);
            assert!(transactions.len() < 10, "half of the limit, and no more");
        };
        assert!(matches!(refused, NotQueued::Full(14_000.., Full::Share)), "{refused:?}");
        // A finished transaction frees its bytes.
        transactions.pop();
        assert_eq!(echo(&mut Transaction::default(), 14_000, &requests), Ok(()));
    }
}
