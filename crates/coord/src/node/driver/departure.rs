//! Hand-over of sections and global-order slots before this node stops, while it still serves: the
//! peers first learn that it serves nothing any more, and then get what it holds.

use tokio::sync::oneshot;

use super::state::{Departure, Driver};
use crate::machine::Now;

impl Driver {
    pub(super) fn announce_stop(&mut self, reply: oneshot::Sender<bool>) {
        self.serving.stop();
        self.sections.keep(true);
        self.departure = Some(Departure::Announces(reply));
    }

    pub(super) fn begin_hand_over(&mut self, reply: oneshot::Sender<()>) {
        self.sections.keep(false);
        self.departure = Some(Departure::HandsOver(reply));
    }

    pub(super) fn poll_departure(&mut self, now: Now) {
        let Some(departure) = self.departure.take() else { return };
        match departure {
            Departure::Announces(reply) if !self.serves_peers() => {
                let _ = reply.send(false);
            }
            Departure::Announces(reply) if self.serving.is_stop_announced() => {
                let _ = reply.send(true);
            }
            Departure::HandsOver(reply) if self.is_handed_over(now) => {
                let _ = reply.send(());
            }
            pending => self.departure = Some(pending),
        }
    }

    fn serves_peers(&self) -> bool {
        self.actor().is_some_and(|actor| !actor.address.is_empty())
    }

    /// Gives up the next sections that peers serve. Returns whether none is left.
    fn is_handed_over(&mut self, now: Now) -> bool {
        let Some(actor) = self.actor().filter(|_| self.serves_peers()) else { return true };
        if self.sections.is_relinquishing() {
            return false;
        }
        let leaving = self.sections.give_up(now.elapsed, &actor);
        self.hand_over(&leaving);
        leaving.is_empty()
    }
}
