//! Memory that the server keeps for a client over RESP: commands since `MULTI`, a partial request,
//! and unread replies. It counts toward the limit of all waiting requests, with its shares.

use snowmint_wire::error::Code;

use crate::quota::{Full, Taken};
use crate::reading::Requests;
use crate::roster::Entry;
use crate::service::Error;

/// Bytes of each kind that are a connection's own: most connections need no more, and count
/// nothing.
const OWN_BYTES: usize = 4 * 1024;

/// Bytes of one kind that a connection keeps.
#[derive(Debug, Default)]
pub(super) struct Kept {
    taken: Option<Taken>,
    bytes: usize,
}

impl Kept {
    /// Sets the current number of bytes. A drop frees them.
    ///
    /// # Errors
    /// The bound that is reached.
    pub(super) fn hold(
        &mut self,
        bytes: usize,
        requests: &Requests,
        connection: &Entry,
    ) -> Result<(), Full> {
        let more = bytes.saturating_sub(OWN_BYTES).saturating_sub(self.bytes);
        if more > 0 {
            self.taken.get_or_insert_with(|| requests.over(connection)).grow(more)?;
            self.bytes = self.bytes.saturating_add(more);
        }
        Ok(())
    }
}

/// Returns the error for a client that exceeds the limit.
pub(super) fn refusal(what: &str, bytes: usize, full: Full, requests: &Requests) -> Error {
    let (whose, most) = (full.whose(), requests.most(full));
    let message = format!(
        "{what} with {bytes} bytes exceeds the {most} bytes for waiting requests {whose}; send \
         fewer at once, each as a whole, and EXEC soon after MULTI"
    );
    Error::new(Code::Overloaded, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::Bounds;

    fn entry(address: &str) -> Entry {
        Entry::new(1, address.parse().unwrap(), 0)
    }

    #[test]
    fn kept_bytes_count_beyond_the_connections_own() {
        let requests = Requests::within(Bounds { all: 40_000, share: 5_000, connection: 40_000 });
        let (one, other) = (entry("10.0.0.1:1"), entry("10.0.0.2:1"));
        let mut small = Kept::default();
        small.hold(OWN_BYTES, &requests, &one).unwrap();
        assert!(small.taken.is_none(), "most take no part of the limit");
        let mut large = Kept::default();
        for bytes in [10_000, 15_000, 12_000, OWN_BYTES + 20_000] {
            large.hold(bytes, &requests, &one).unwrap();
        }
        let mut more = Kept::default();
        assert_eq!(more.hold(OWN_BYTES + 1, &requests, &one), Err(Full::Share));
        let said = refusal("a request", 7, Full::Share, &requests).to_string();
        for part in ["a request with 7 bytes", "of one token or address", "5000 bytes", "EXEC"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let mut others = Kept::default();
        others.hold(OWN_BYTES + 5_000, &requests, &other).expect("its own share");
        drop((large, others));
        small.hold(OWN_BYTES + 20_000, &requests, &one).unwrap();
    }
}
