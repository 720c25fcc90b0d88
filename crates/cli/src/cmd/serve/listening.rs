//! Listen addresses of a server, and the addresses under which peers and clients reach it.

use std::io::{self, ErrorKind, IsTerminal as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

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

/// Prints the listen addresses, and on a terminal also the console's. A closed standard output is
/// not an error.
pub(super) fn announce(handle: &Handle, scheme: &str) -> Outcome {
    let mut out = Output::new();
    let is_person = io::stdout().is_terminal();
    let lines = announcement(handle.http(), handle.resp(), is_person.then_some(scheme));
    match lines.iter().try_for_each(|line| out.line(line)).and_then(|()| out.flush()) {
        Err(Failure::ClosedPipe) => Ok(()),
        printed => printed,
    }
}

/// Returns a first line for programs; with a scheme, also a second one with the console's address.
/// Each is printed by itself: [`Output::line`] makes a line end within a line visible.
fn announcement(
    http: Option<SocketAddr>,
    resp: Option<SocketAddr>,
    scheme: Option<&str>,
) -> Vec<String> {
    let shown = |address: Option<SocketAddr>| {
        address.map_or_else(|| "-".to_owned(), |address| address.to_string())
    };
    let mut lines = vec![format!("listening http={} resp={}", shown(http), shown(resp))];
    if let (Some(mut address), Some(scheme)) = (http, scheme) {
        // A browser on this machine reaches a server that listens on all addresses by loopback.
        match address.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        lines.push(format!("console {scheme}://{address}/"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_sees_the_console() {
        let at = |text: &str| Some(text.parse().unwrap());
        let (http, resp) = (at("127.0.0.1:7700"), at("127.0.0.1:7701"));
        let line = "listening http=127.0.0.1:7700 resp=127.0.0.1:7701";
        assert_eq!(announcement(http, resp, None), [line]);
        let both = [line, "console http://127.0.0.1:7700/"];
        assert_eq!(announcement(http, resp, Some("http")), both);
        for (listens, console) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("[fd00::7]:80", "[fd00::7]:80"),
        ] {
            let lines = announcement(at(listens), None, Some("https"));
            let both =
                [format!("listening http={listens} resp=-"), format!("console https://{console}/")];
            assert_eq!(lines, both);
        }
    }
}
