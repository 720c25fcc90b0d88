//! Calls to the servers that mint for all, in the batches of [`Batcher`].

use snowmint_coord::batcher::{Batcher, Forward};

use crate::cluster::peers::Peers;
use crate::cluster::remote_peer::{PeerFailure, RemotePeer};
use crate::error::Error;
use crate::observe::live::Live;

/// Client of the minting servers. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct OrderForwarder {
    owner_caller: OwnerCaller,
    batches: Batcher<OwnerCaller>,
}

/// Caller of a minting server.
#[derive(Clone, Debug)]
struct OwnerCaller {
    peers: Peers,
    /// Source of two limits: the most IDs of one call, and the longest time of a whole response.
    live: Live,
}

impl OrderForwarder {
    pub(super) fn new(peers: Peers, live: Live) -> Self {
        let owner_caller = OwnerCaller { peers, live };
        Self { batches: Batcher::new(owner_caller.clone()), owner_caller }
    }

    pub(super) const fn peers(&self) -> &Peers {
        &self.owner_caller.peers
    }

    /// Returns `count` IDs of a source from the server at this address.
    pub(super) async fn fetch(
        &self,
        source: &str,
        address: String,
        count: u32,
    ) -> Result<Vec<u64>, Error> {
        self.batches.fetch(source, address, count).await
    }
}

impl OwnerCaller {
    fn not_reached(&self, reason: &str) -> Error {
        self.peers.not_reached(format!("owner of the source did not respond: {reason}; retry"))
    }
}

impl Forward for OwnerCaller {
    type Error = Error;

    async fn ask(&self, source: &str, address: &str, count: u64) -> Result<Vec<u64>, Error> {
        let remote_peer = RemotePeer { peers: &self.peers, address };
        remote_peer.ids(source, count, None).await.map_err(|failure| match failure {
            PeerFailure::Refused(error) => error,
            PeerFailure::NoResponse(error) => {
                tracing::warn!(%source, %address, %error, "failed to call the section owner of a source");
                self.not_reached(&error.to_string()).with_detail(format!("server {address}"))
            }
        })
    }

    fn batch_max(&self) -> u32 {
        self.live.limit(|limits| limits.batch_max)
    }

    fn ends(&self) -> Error {
        self.not_reached("this server is stopping")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::config::Limits;

    use snowmint_coord::spec::Span;
    use snowmint_wire::error::Code;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that begins a response and never ends it delays callers only for a bounded time.
    #[tokio::test]
    async fn late_peer_is_not_waited_for() {
        for raw in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"ids\":["] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            let stalls = tokio::spawn(async move {
                let mut held = Vec::new();
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let mut head = [0; 16];
                    stream.read_exact(&mut head).await.unwrap();
                    stream.write_all(raw.as_bytes()).await.unwrap();
                    held.push(stream);
                }
            });
            let limits = Limits { wait_max: Span::from_ms(100), ..Limits::default() };
            let live = Live::new(limits, false, None);
            let peers = Peers::of_tests(live.clone());
            let order_forwarder = OrderForwarder::new(peers, live);
            let fetch = || order_forwarder.fetch("orders", address.clone(), 1);
            let both = async { tokio::join!(fetch(), fetch()) };
            let (one, other) = tokio::time::timeout(Duration::from_secs(30), both).await.unwrap();
            for refused in [one.unwrap_err(), other.unwrap_err()] {
                assert_eq!(refused.code(), Code::Unavailable, "{raw:?}: {refused}");
                assert_eq!(refused.retry_after_ms(), Some(1_000), "{raw:?}: {refused}");
            }
            stalls.abort();
        }
    }
}
