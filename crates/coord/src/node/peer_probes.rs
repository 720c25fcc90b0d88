//! Which peers are reached at their addresses, as whoever sends requests there finds out.

use super::Node;
use crate::member::Incarnation;
use crate::sources::Server;

impl Node {
    /// A request to a peer that shares counters or a global order with this node got no response: the peer is
    /// [probed](Self::peers_to_probe), and it gives up all it owns once most of its peers report that they cannot
    /// reach it.
    pub fn suspect_peer(&self, peer: Incarnation) {
        let around = &self.core().around;
        if around.peer_probes.suspect(peer) {
            around.wake.notify_one();
        }
    }

    /// The peers to probe at their addresses now, since a request got no response or another peer cannot reach them.
    /// Waits until there are some. Report each result with [`peer_probed`](Self::peer_probed).
    pub async fn peers_to_probe(&self) -> Vec<Server> {
        self.core().around.peer_probes.to_probe().await
    }

    /// A peer responded when it was probed, or did not.
    pub fn peer_probed(&self, peer: Incarnation, responded: bool) {
        let around = &self.core().around;
        if around.peer_probes.probed(peer, responded) {
            around.wake.notify_one();
        }
    }
}
