//! The last hour of this server, and of its peers.

use snowmint_coord::Incarnation;
use snowmint_core::{Clock as _, SystemClock};
use snowmint_wire::error::Code;
use snowmint_wire::report::LastHour;

use super::state::Service;
use crate::access::Right;
use crate::cluster::remote_peer::{PeerFailure, RemotePeer};
use crate::error::Error;
use crate::observe::meter::history::SAMPLE_EVERY_MS;

impl Service {
    /// Samples the metrics until it is dropped.
    pub(crate) async fn record_history(self) {
        loop {
            let elapsed = self.peers().timer().elapsed();
            let ready = self.readiness().ready;
            self.meter.sample(&self.node, ready, elapsed, SystemClock.unix_ms());
            self.peers().timer().sleep_ms(SAMPLE_EVERY_MS).await;
        }
    }

    /// Returns the last hour of the server with this member ID; of this one without it.
    ///
    /// # Errors
    /// Without the right; an unknown member; a peer that does not respond.
    pub(crate) async fn history(&self, member: Option<&str>) -> Result<LastHour, Error> {
        self.caller().may_over_all(Right::Metrics)?;
        let Some(member) = member else { return Ok(self.meter.last_hour()) };
        let member: Incarnation = member
            .parse()
            .map_err(|error: snowmint_coord::Error| Error::bad_request(error.message()))?;
        if self.node.incarnation() == Some(member) {
            return Ok(self.meter.last_hour());
        }
        let (members, _) = self.listed().await;
        let server = members.into_iter().find(|other| other.live && other.member == Some(member));
        let Some(address) = server.and_then(|server| server.addrs.http) else {
            let message = format!("no live server has the member ID {member}; list the servers");
            return Err(Error::new(Code::NotFound, message));
        };
        let _share = self.peers().waits(&address, self.caller().client())?;
        let remote_peer = RemotePeer { peers: self.peers(), address: &address };
        remote_peer.history().await.map_err(|failure| match failure {
            PeerFailure::Refused(error) => error,
            PeerFailure::NoResponse(error) => {
                let message = format!("server with the member ID {member} did not respond; retry");
                self.peers().not_reached(message).with_detail(format!("{address}: {error}"))
            }
        })
    }
}
