//! Other servers that did not answer are tried again and again, so that whoever most others cannot reach gives up
//! what it answers for, and takes it up again once it is reached.

use futures_util::future::join_all;
use snowmint_coord::Node;
use snowmint_coord::sources::Server;
use tokio::sync::mpsc;

use crate::peers::Peers;
use crate::reach::Reach;

/// How often those are tried that may not be reached.
const TRY_EVERY_MS: u64 = 1_000;

/// Tries them for as long as it is let. `unanswered` are the addresses where a request was not answered.
pub(crate) async fn try_others(node: Node, peers: Peers, mut unanswered: mpsc::Receiver<String>) {
    loop {
        tokio::select! {
            biased;
            Some(address) = unanswered.recv() => suspect(&node, &address),
            servers = node.to_try() => {
                join_all(servers.iter().map(|server| try_one(&node, &peers, server))).await;
                peers.timer().sleep_ms(TRY_EVERY_MS).await;
            }
        }
    }
}

fn suspect(node: &Node, address: &str) {
    let shares = node.shares();
    let is_there = |server: &&Server| Reach::read(&server.address).http.as_deref() == Some(address);
    shares.servers().iter().filter(is_there).for_each(|server| node.suspect(server.member));
}

async fn try_one(node: &Node, peers: &Peers, server: &Server) {
    // One that speaks no HTTP is sent no requests either.
    let answered = match Reach::read(&server.address).http {
        Some(address) => peers.is_reached(&address).await,
        None => true,
    };
    node.tried(server.member, answered);
}
