//! Listen addresses of a server, and the addresses under which peers and clients reach it.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use snowmint_server::{AdvertisedAddrs, Handle};
use tokio::net::TcpListener;

use crate::config::Config;
use crate::security::check_public;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::Output;

/// Returns the addresses at which peers, and clients that they redirect, reach this server.
pub(super) fn reach(config: &Config, http: &TcpListener, resp: &TcpListener) -> AdvertisedAddrs {
    let scheme = if config.tls.is_on() { "https" } else { "http" };
    let at = |listener: &TcpListener| Some(config.server.announced(listener.local_addr().ok()?));
    AdvertisedAddrs {
        resp: at(resp),
        http: at(http).map(|address| format!("{scheme}://{address}")),
    }
}

pub(super) async fn listen(config: &Config, address: &str, key: &str) -> Outcome<TcpListener> {
    let failed = |error: io::Error| {
        let message = format!("server cannot listen on {key} {address:?}: {error}");
        match error.kind() {
            ErrorKind::InvalidInput => Failure::usage(message),
            ErrorKind::AddrInUse => Failure::unavailable(format!(
                "{message}; end the program that has this port, or use another (0 picks a free one)"
            )),
            ErrorKind::AddrNotAvailable => {
                Failure::unavailable(format!("{message}; use an address of this machine"))
            }
            ErrorKind::PermissionDenied => Failure::unavailable(format!(
                "{message}; use a port from 1024 on, or grant CAP_NET_BIND_SERVICE"
            )),
            _ => Failure::unavailable(message),
        }
    };
    let addresses: Vec<_> = tokio::net::lookup_host(address).await.map_err(failed)?.collect();
    check_public(config, key, &addresses)?;
    TcpListener::bind(addresses.as_slice()).await.map_err(failed)
}

/// Prints the listen addresses. A closed standard output is not an error.
pub(super) fn announce(handle: &Handle) -> Outcome {
    let mut out = Output::new();
    match out.line(announcement(handle.http(), handle.resp())).and_then(|()| out.flush()) {
        Err(Failure::ClosedPipe) => Ok(()),
        printed => printed,
    }
}

/// Returns the line for programs.
fn announcement(http: Option<SocketAddr>, resp: Option<SocketAddr>) -> String {
    let shown = |address: Option<SocketAddr>| {
        address.map_or_else(|| "-".to_owned(), |address| address.to_string())
    };
    format!("listening http={} resp={}", shown(http), shown(resp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_both_addresses() {
        let at = |text: &str| Some(text.parse().unwrap());
        let line = announcement(at("127.0.0.1:7700"), at("127.0.0.1:7701"));
        assert_eq!(line, "listening http=127.0.0.1:7700 resp=127.0.0.1:7701");
        assert_eq!(announcement(at("[::]:80"), None), "listening http=[::]:80 resp=-");
    }
}
