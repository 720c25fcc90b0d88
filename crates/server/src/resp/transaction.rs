//! From `MULTI` to `EXEC`: commands that are kept, to be answered together.

use std::fmt;

use snowmint_wire::resp::{Command, Encoder, Protocol};

/// The longest transaction, in bytes of requests: some 8,000 times `INCR`.
pub(super) const TRANSACTION_BYTES_MAX: usize = 256 * 1024;

/// The commands since `MULTI`.
#[derive(Default)]
pub(super) struct Transaction {
    /// As requests, one after the other.
    requests: Vec<u8>,
    count: usize,
    /// Whether one was refused, after which `EXEC` runs none.
    is_aborted: bool,
}

impl Transaction {
    /// Keeps a command.
    ///
    /// # Errors
    /// How long the transaction would be, if that is too long. It is aborted then.
    pub(super) fn queue(&mut self, command: &Command<'_>) -> Result<(), usize> {
        if self.is_aborted {
            return Ok(());
        }
        let begin = self.requests.len();
        let mut request = Encoder::new(&mut self.requests, Protocol::Resp2);
        request.array(command.len());
        command.args().for_each(|arg| request.bulk(arg));
        let length = self.requests.len();
        if length > TRANSACTION_BYTES_MAX {
            self.requests.truncate(begin);
            self.abort();
            return Err(length);
        }
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    /// None of the commands will run.
    pub(super) fn abort(&mut self) {
        self.is_aborted = true;
        self.requests = Vec::new();
    }

    pub(super) const fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// How many commands there are.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// The commands, as requests one after the other.
    pub(super) fn requests(&self) -> &[u8] {
        &self.requests
    }
}

/// A request may hold a token (`AUTH`).
impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("count", &self.count).finish_non_exhaustive()
    }
}
