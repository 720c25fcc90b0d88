//! `[server]`: listen addresses, and names for peers.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use snowmint_coord::member::LABEL_BYTES_MAX;
use snowmint_coord::model::name::check_label;
use snowmint_server::settings;

use crate::terminal::exit::{Failure, Outcome};

/// Longest host name in bytes.
const HOST_BYTES_MAX: usize = 253;

settings! {
    /// `[server]`
    pub(crate) struct ServerSection {
        /// Directory of the lock, the journal and the default store; one process at a time uses it.
        pub(crate) data_dir: PathBuf = "./snowmint-data".into(),
        /// Listen address of HTTP and gRPC, HOST:PORT; port 0 picks a free port.
        pub(crate) http: String = "127.0.0.1:7700".into(),
        /// Listen address of RESP, the protocol of Redis, HOST:PORT; port 0 picks a free port.
        pub(crate) resp: String = "127.0.0.1:7701".into(),
        /// Name of this process in listings. A process that starts under the same name claims the
        /// worker number that it had before, if that number is free. Empty: the host name.
        pub(crate) owner: String,
        /// Whether http and resp may be addresses that other machines can reach, without tokens and
        /// TLS.
        pub(crate) insecure: bool,
        /// Host name or IP by which peers, and clients that they redirect, reach this server:
        /// servers on one store share counters. Empty: the listen address, or the host name if the
        /// server listens on all addresses.
        pub(crate) announce: String,
    }
}

impl ServerSection {
    /// Checks conditions over several values. Peers and clients are sent to the announced host:
    /// only they would see a mistake in it, as a counter that does not respond.
    pub(super) fn check(&self) -> Outcome {
        check_label("owner", &self.owner, LABEL_BYTES_MAX)
            .map_err(|kind| Failure::usage(format!("server.owner: {kind}")))?;
        if self.data_dir.as_os_str().is_empty() {
            return Err(Failure::usage(
                "server.data_dir (--data-dir) is empty; name a directory, such as ./snowmint-data",
            ));
        }
        for (key, address) in [("server.http", &self.http), ("server.resp", &self.resp)] {
            let port = address.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
            if !matches!(port, Some(Ok(_))) {
                let message = format!("{key} {address:?} is not an address; write HOST:PORT");
                return Err(Failure::usage(message));
            }
        }
        let host = self.announce.as_str();
        let reason = match address(host) {
            Some(ip) if ip.is_unspecified() => "name one address, not all",
            Some(_) => return Ok(()),
            None if host.is_empty() || is_name(host) => return Ok(()),
            None => "leave out the port and the scheme",
        };
        Err(Failure::usage(format!(
            "server.announce {host:?} is not a host name or IP, such as ids-1.example or 10.0.0.7; \
             {reason}"
        )))
    }

    /// Returns the name by which peers call this server, unless they use an address.
    pub(crate) fn name(&self) -> String {
        match self.announce.as_str() {
            "" => rustix::system::uname().nodename().to_string_lossy().into_owned(),
            host => host.to_owned(),
        }
    }

    /// Returns the address at which peers and clients reach a listener.
    pub(crate) fn announced(&self, bound: SocketAddr) -> String {
        let (host, port) = (self.name(), bound.port());
        let ip = match bound.ip() {
            ip if self.announce.is_empty() && !ip.is_unspecified() => Some(ip),
            _ => address(&host),
        };
        match ip {
            Some(ip) => SocketAddr::new(ip, port).to_string(),
            None => format!("{host}:{port}"),
        }
    }
}

/// Parses an IP address; version 6 with brackets or without.
fn address(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bare {
        Some(bare) => bare.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

fn is_name(host: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    host.len() <= HOST_BYTES_MAX && host.bytes().all(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcing(host: &str) -> ServerSection {
        ServerSection { announce: host.into(), ..ServerSection::default() }
    }

    /// Kubernetes gives a pod's address without brackets.
    #[test]
    fn an_address_is_announced_with_its_port() {
        let bound = "0.0.0.0:7700".parse().unwrap();
        for (host, announced) in [
            ("ids-1.example", "ids-1.example:7700"),
            ("10.0.0.7", "10.0.0.7:7700"),
            ("fd00::7", "[fd00::7]:7700"),
            ("[fd00::7]", "[fd00::7]:7700"),
        ] {
            let section = announcing(host);
            assert!(section.check().is_ok(), "{host}");
            assert_eq!(section.announced(bound), announced, "{host}");
        }
        let listening = |bound: &str| announcing("").announced(bound.parse().unwrap());
        assert_eq!(listening("10.0.0.7:7700"), "10.0.0.7:7700");
        assert_eq!(listening("[fd00::7]:7700"), "[fd00::7]:7700");
        let own = listening("[::]:7700");
        assert!(own.ends_with(":7700") && !own.starts_with('['), "{own}");
    }

    #[test]
    fn unreachable_announced_address_is_rejected() {
        for host in [
            "ids-1.example:7700",
            "http://ids-1.example",
            "10.0.0.7:7700",
            "[fd00::7]:7700",
            "[10.0.0.7]",
            "0.0.0.0",
            "::",
            "two words",
            &"a".repeat(254),
        ] {
            let Err(Failure::Explained { message, .. }) = announcing(host).check() else {
                panic!("{host} was taken")
            };
            assert!(message.contains("server.announce"), "{message}");
        }
    }
}
