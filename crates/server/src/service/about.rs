//! Description of the server and of its caller.

use snowmint_coord::{Capabilities, ClockOf, PresenceBy};
use snowmint_wire::http::{ServerBody, StoreBody};

use super::state::Service;
use crate::error::Error;

impl Service {
    /// Returns the description of this server, and of the caller's token. The store is not called:
    /// a caller that polls this causes no load.
    ///
    /// # Errors
    /// Without a token, where tokens are required.
    pub fn about(&self) -> Result<ServerBody, Error> {
        let token = self.caller().described()?;
        let (node, store) = (&self.node, self.node.store());
        let non_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Ok(ServerBody {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            namespace: store.namespace().to_owned(),
            owner: non_empty(node.owner()),
            host: non_empty(node.host()),
            member: self.incarnation().map(|member| member.to_string()),
            store: store_body(store.capabilities(), store.warnings()),
            tokens_required: self.access().is_some(),
            token,
        })
    }
}

fn store_body(can: Capabilities, warnings: Vec<String>) -> StoreBody {
    let Capabilities { clock, durable_on_reply, safe_over_failover, presence } = can;
    let clock = match clock {
        ClockOf::Store => "store",
        ClockOf::Caller => "caller",
    };
    let presence = match presence {
        PresenceBy::Record => "record",
        PresenceBy::Session => "session",
    };
    StoreBody {
        clock: clock.to_owned(),
        durable_on_reply,
        safe_over_failover,
        presence: presence.to_owned(),
        warnings,
    }
}
