//! Where a server listens, and where others reach it.

use std::io::{self, ErrorKind};

use snowmint_server::Reach;
use tokio::net::TcpListener;

use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::security::check_public;

/// Where other servers, and clients that they send here, reach this one.
pub(super) fn reach(config: &Config, http: &TcpListener, resp: &TcpListener) -> Reach {
    let scheme = if config.tls.is_on() { "https" } else { "http" };
    let at = |listener: &TcpListener| Some(config.server.announced(listener.local_addr().ok()?));
    Reach { resp: at(resp), http: at(http).map(|address| format!("{scheme}://{address}")) }
}

pub(super) async fn listen(config: &Config, address: &str, key: &str) -> Outcome<TcpListener> {
    let failed = |error: io::Error| {
        let message = format!("{key} = {address:?} cannot be listened on: {error}");
        match error.kind() {
            ErrorKind::InvalidInput => Failure::usage(message),
            ErrorKind::AddrInUse => Failure::unavailable(format!(
                "{message}: end the program that has this port, or take another; port 0 picks a free one"
            )),
            ErrorKind::AddrNotAvailable => {
                Failure::unavailable(format!("{message}: this machine has no such address"))
            }
            ErrorKind::PermissionDenied => Failure::unavailable(format!(
                "{message}: ports below 1024 take a right (CAP_NET_BIND_SERVICE); take a higher one"
            )),
            _ => Failure::unavailable(message),
        }
    };
    let addresses: Vec<_> = tokio::net::lookup_host(address).await.map_err(failed)?.collect();
    check_public(config, key, &addresses)?;
    TcpListener::bind(addresses.as_slice()).await.map_err(failed)
}
