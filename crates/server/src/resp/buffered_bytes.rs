//! Memory that the server keeps for a client over RESP: commands since `MULTI`, a partial request,
//! and unread replies. It counts toward the limit of all waiting requests, with its shares.

use snowmint_wire::error::Code;

use crate::clients::tracker::TrackedConnection;
use crate::error::Error;
use crate::requests::quota::{Full, QuotaPermit};
use crate::requests::reading::WaitingRequests;

/// Bytes of each kind that are a connection's own: most connections need no more, and count
/// nothing.
const OWN_BYTES: usize = 4 * 1024;

/// Bytes of one kind that a connection keeps.
#[derive(Debug, Default)]
pub(super) struct BufferedBytes {
    permit: Option<QuotaPermit>,
    bytes: usize,
}

impl BufferedBytes {
    /// Sets the current number of bytes. A drop frees them.
    ///
    /// # Errors
    /// The bound that is reached.
    pub(super) fn set(
        &mut self,
        bytes: usize,
        requests: &WaitingRequests,
        connection: &TrackedConnection,
    ) -> Result<(), Full> {
        let more = bytes.saturating_sub(OWN_BYTES).saturating_sub(self.bytes);
        if more > 0 {
            self.permit.get_or_insert_with(|| requests.over(connection)).grow(more)?;
            self.bytes = self.bytes.saturating_add(more);
        }
        Ok(())
    }
}

/// Returns the error for a client that exceeds the limit.
pub(super) fn limit_error(
    what: &str,
    bytes: usize,
    full: Full,
    requests: &WaitingRequests,
) -> Error {
    let (scope, most) = (full.scope(), requests.most(full));
    let message = format!(
        "{what} with {bytes} bytes exceeds the {most} bytes for waiting requests {scope}; send \
         fewer at once, each as a whole, and EXEC soon after MULTI"
    );
    Error::new(Code::Overloaded, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::quota::Bounds;

    fn connection(address: &str) -> TrackedConnection {
        TrackedConnection::new(1, address.parse().unwrap(), 0)
    }

    #[test]
    fn kept_bytes_count_beyond_the_connections_own() {
        let requests =
            WaitingRequests::within(Bounds { all: 40_000, share: 5_000, connection: 40_000 });
        let (one, other) = (connection("10.0.0.1:1"), connection("10.0.0.2:1"));
        let mut small = BufferedBytes::default();
        small.set(OWN_BYTES, &requests, &one).unwrap();
        assert!(small.permit.is_none(), "most take no part of the limit");
        let mut large = BufferedBytes::default();
        for bytes in [10_000, 15_000, 12_000, OWN_BYTES + 20_000] {
            large.set(bytes, &requests, &one).unwrap();
        }
        let mut more = BufferedBytes::default();
        assert_eq!(more.set(OWN_BYTES + 1, &requests, &one), Err(Full::Share));
        let text = limit_error("a request", 7, Full::Share, &requests).to_string();
        for part in ["a request with 7 bytes", "of one token or address", "5000 bytes", "EXEC"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let mut others = BufferedBytes::default();
        others.set(OWN_BYTES + 5_000, &requests, &other).expect("its own share");
        drop((large, others));
        small.set(OWN_BYTES + 20_000, &requests, &one).unwrap();
    }
}
