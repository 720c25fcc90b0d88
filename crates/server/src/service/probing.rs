//! Probes of peers that did not respond: a peer that most servers cannot reach gives up its
//! sections and its global orders, and acquires them again once it is reached.

use futures_util::future::join_all;
use snowmint_coord::Node;
use snowmint_coord::sources::Server;
use tokio::sync::mpsc;

use crate::advertised_addrs::AdvertisedAddrs;
use crate::cluster::peers::Peers;

/// Interval of probes of peers that may be unreachable.
const PROBE_EVERY_MS: u64 = 1_000;

/// Probes peers until it is dropped. `silent_peers` receives the addresses of peers that did not
/// respond to a request.
pub(crate) async fn probe_peers(
    node: Node,
    peers: Peers,
    mut silent_peers: mpsc::Receiver<String>,
) {
    loop {
        tokio::select! {
            biased;
            Some(address) = silent_peers.recv() => suspect(&node, &address),
            servers = node.peers_to_probe() => {
                join_all(servers.iter().map(|server| probe(&node, &peers, server))).await;
                peers.timer().sleep_ms(PROBE_EVERY_MS).await;
            }
        }
    }
}

/// Requests a probe of the peer at this address.
fn suspect(node: &Node, address: &str) {
    let section_assignment = node.section_assignment();
    let has_address =
        |server: &&Server| AdvertisedAddrs::read(&server.address).http.as_deref() == Some(address);
    section_assignment
        .servers()
        .iter()
        .filter(has_address)
        .for_each(|server| node.suspect_peer(server.member));
}

async fn probe(node: &Node, peers: &Peers, server: &Server) {
    // A peer without HTTP gets no requests either.
    let responded = match AdvertisedAddrs::read(&server.address).http {
        Some(address) => peers.is_reached(&address).await,
        None => true,
    };
    node.peer_probed(server.member, responded);
}
