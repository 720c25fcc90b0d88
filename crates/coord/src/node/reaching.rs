//! Which other servers are reached at their addresses, as those find out who send requests there.

use super::Node;
use crate::member::Incarnation;
use crate::sources::Server;

impl Node {
    /// A request to a server that shares counters or a global order with this one was not answered: it is
    /// [tried](Self::to_try), and most others' word that it cannot be reached has it give up what it answers for.
    pub fn suspect(&self, server: Incarnation) {
        let around = &self.core().around;
        if around.reaching.suspect(server) {
            around.wake.notify_one();
        }
    }

    /// The servers that are to be tried at their addresses now, since a request was not answered or another server
    /// cannot reach them. Waits until there are some. What becomes of it is to be [told](Self::tried).
    pub async fn to_try(&self) -> Vec<Server> {
        self.core().around.reaching.to_try().await
    }

    /// A server answered at its address when it was tried, or not.
    pub fn tried(&self, server: Incarnation, answered: bool) {
        let around = &self.core().around;
        if around.reaching.tried(server, answered) {
            around.wake.notify_one();
        }
    }
}
