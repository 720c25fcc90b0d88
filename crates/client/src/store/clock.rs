//! Clocks of servers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::{Result, TimeReference};
use snowmint_core::UnixMillis;
use snowmint_wire::grpc::store::NowRequest;

use super::ask::ask;
use crate::servers::Servers;

/// Clock of whichever server responds: a time reference for a node on a store without one.
#[derive(Clone)]
pub(super) struct ServerClock {
    servers: Arc<Servers>,
}

impl ServerClock {
    pub(super) fn new(servers: Arc<Servers>) -> Self {
        Self { servers }
    }
}

impl fmt::Debug for ServerClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerClock").field("servers", &self.servers).finish()
    }
}

#[async_trait]
impl TimeReference for ServerClock {
    fn name(&self) -> String {
        "the server's clock".into()
    }

    async fn now(&self) -> Result<UnixMillis> {
        Ok(ask::<NowRequest>(&self.servers, true, ()).await?.server)
    }
}
