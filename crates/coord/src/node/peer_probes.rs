//! Probes of peers at their addresses, in the same way as clients reach them.

use super::state::Node;
use crate::ids::Incarnation;
use crate::machine::section_assignment::Server;

impl Node {
    /// Records that a peer sharing counters or a global order with this node did not respond to a
    /// request. The peer is then [probed](Self::peers_to_probe), and it gives up all its sections
    /// once most of its peers report that they cannot reach it.
    pub fn suspect_peer(&self, peer: Incarnation) {
        let ctx = &self.core().ctx;
        if ctx.peer_probes.suspect(peer) {
            ctx.wake.notify_one();
        }
    }

    /// Returns the peers to probe at their addresses now: a request got no response, or another
    /// peer cannot reach them. Waits until there are some. Report each result with
    /// [`peer_probed`](Self::peer_probed).
    pub async fn peers_to_probe(&self) -> Vec<Server> {
        self.core().ctx.peer_probes.to_probe().await
    }

    /// Records whether a peer responded to a probe.
    pub fn peer_probed(&self, peer: Incarnation, responded: bool) {
        let ctx = &self.core().ctx;
        if ctx.peer_probes.probed(peer, responded) {
            ctx.wake.notify_one();
        }
    }
}
