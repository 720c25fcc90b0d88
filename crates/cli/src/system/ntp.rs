//! Clock of an NTP server, for stores without a clock.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use rsntp::AsyncSntpClient;
use snowmint_coord::error::chain;
use snowmint_coord::{BootTimer, Error, Result, TimeReference, Timer as _};
use snowmint_core::{ElapsedMillis, UnixMillis};
use tokio::net::lookup_host;
use tokio::sync::Mutex;

/// Standard port of NTP.
const PORT: u16 = 123;
/// Shortest interval between two requests: public servers reject more frequent clients.
const ASK_EVERY_MS: u64 = 64_000;
/// Longest use of a response, advanced by elapsed time, while there is no newer one. A clock with
/// an error of 500 millionths is 1.8 s off after an hour.
const RESPONSE_VALID_MS: u64 = 3_600_000;
/// Longest wait for a response, besides the name lookup.
const RESPONSE_WAIT_MS: u64 = 2_000;

/// An NTP server, and its last response.
#[derive(Debug)]
pub(crate) struct Ntp {
    host: String,
    port: u16,
    timer: BootTimer,
    heard: Mutex<Heard>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    requested_at: Option<ElapsedMillis>,
    /// Time of the last response, and when it came.
    response: Option<(UnixMillis, ElapsedMillis)>,
}

impl Ntp {
    /// Returns the server at `HOST` or `HOST:PORT`; `None` if the text is neither.
    pub(crate) fn at(text: &str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            // An IPv6 address before a port has brackets.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host, port.parse().ok().filter(|port| *port > 0)?)
            }
            _ => (text, PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        is_host(host).then(|| Self {
            host: host.into(),
            port,
            timer: BootTimer,
            heard: Mutex::default(),
        })
    }

    /// Requests the time from the server now.
    pub(crate) async fn ask(&self) -> Result<UnixMillis> {
        match self.exchange().await {
            Ok(now) => Ok(now),
            Err(error) => {
                let message =
                    "NTP server did not respond; check that it runs and is reachable over UDP";
                Err(Error::unavailable(message).with_detail(self.place()).with_source(error))
            }
        }
    }

    /// Returns the address, as the detail of errors.
    pub(crate) fn place(&self) -> String {
        format!("at {}:{}", self.host, self.port)
    }

    async fn exchange(&self) -> std::result::Result<UnixMillis, rsntp::SynchronizationError> {
        let server = lookup_host((self.host.as_str(), self.port)).await?.next();
        let server = server.ok_or_else(|| std::io::Error::other("host name has no address"))?;
        let own: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let within = Duration::from_millis(RESPONSE_WAIT_MS);
        let config = rsntp::Config::default().bind_address(own).timeout(within);
        let response = AsyncSntpClient::with_config(config).synchronize(server).await?;
        let since = response.datetime().unix_timestamp().map_err(std::io::Error::other)?;
        Ok(UnixMillis::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// Returns whether a text is a name or an address; an address of version 6 may have its zone.
fn is_host(host: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let is_word = |text: &str| !text.is_empty() && text.chars().all(is_known);
    let is_v6 = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    match host.split_once('%') {
        Some((address, zone)) => is_v6(address) && is_word(zone),
        None => is_v6(host) || is_word(host),
    }
}

#[async_trait]
impl TimeReference for Ntp {
    fn name(&self) -> String {
        "the NTP server".to_owned()
    }

    fn address(&self) -> Option<String> {
        Some(self.place())
    }

    async fn now(&self) -> Result<UnixMillis> {
        let mut heard = self.heard.lock().await;
        let elapsed = self.timer.elapsed();
        if heard.requested_at.is_none_or(|at| elapsed.since(at) >= ASK_EVERY_MS) {
            heard.requested_at = Some(elapsed);
            match self.ask().await {
                Ok(now) => heard.response = Some((now, self.timer.elapsed())),
                Err(error) => tracing::warn!("{}", chain(&error)),
            }
        }
        let elapsed = self.timer.elapsed();
        match heard.response {
            Some((then, at)) if elapsed.since(at) <= RESPONSE_VALID_MS => {
                Ok(then.saturating_add(elapsed.since(at)))
            }
            _ => Err(Error::unavailable(format!(
                "NTP server sent no time within {RESPONSE_VALID_MS} ms; check that it runs and is \
                 reachable over UDP"
            ))
            .with_detail(self.place())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use snowmint_core::{Clock as _, SystemClock};
    use tokio::net::UdpSocket;

    use super::*;

    #[test]
    fn servers_are_named_with_and_without_a_port() {
        for (text, host, port) in [
            ("time.example", "time.example", 123),
            ("time.example:1123", "time.example", 1123),
            ("192.0.2.1:5", "192.0.2.1", 5),
            ("::1", "::1", 123),
            ("[::1]:7", "::1", 7),
        ] {
            let ntp = Ntp::at(text).unwrap();
            assert_eq!((ntp.host.as_str(), ntp.port), (host, port), "{text}");
        }
        for text in [
            "",
            ":123",
            "host:",
            "host:0",
            "host:x",
            "two words",
            "http://host",
            ":::",
            "[:::]:5",
            "a:b:c",
        ] {
            assert!(Ntp::at(text).is_none(), "{text}");
        }
    }

    /// Starts a responder on loopback that is this far ahead of this machine's clock, and counts
    /// requests.
    async fn responder(ahead_secs: u32) -> (String, Arc<AtomicUsize>) {
        /// Seconds from 1900 to 1970: RFC 5905.
        const NTP_TO_UNIX_SECS: u64 = 2_208_988_800;
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let requests = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&requests);
        tokio::spawn(async move {
            let mut packet = [0; 48];
            while let Ok((_, from)) = socket.recv_from(&mut packet).await {
                counted.fetch_add(1, Ordering::SeqCst);
                let secs = SystemClock.unix_ms().get() / 1000 + NTP_TO_UNIX_SECS;
                let secs = u32::try_from(secs).unwrap() + ahead_secs;
                let mut response = [0; 48];
                // Version 4, mode server, stratum 1.
                response[..2].copy_from_slice(&[0b0010_0100, 1]);
                response[12..16].copy_from_slice(b"LOCL");
                response[24..32].copy_from_slice(&packet[40..48]);
                for at in [16, 32, 40] {
                    response[at..at + 4].copy_from_slice(&secs.to_be_bytes());
                }
                socket.send_to(&response, from).await.unwrap();
            }
        });
        (address, requests)
    }

    #[tokio::test]
    async fn ntp_response_is_extrapolated_between_queries() {
        let (address, requests) = responder(3600).await;
        let begun = BootTimer.elapsed();
        // The loop ends with a client that got its response in time: on a machine that stands still
        // it comes too late.
        let (ntp, questions) = loop {
            let (ntp, before) = (Ntp::at(&address).unwrap(), requests.load(Ordering::SeqCst));
            if ntp.now().await.is_ok() {
                break (ntp, before + 1);
            }
            assert!(BootTimer.elapsed().since(begun) < 60_000, "no response");
        };
        for _ in 0..3 {
            let ahead_ms = ntp.now().await.unwrap().since(SystemClock.unix_ms());
            assert!((3_590_000..3_610_000).contains(&ahead_ms), "{ahead_ms}");
        }
        assert_eq!(requests.load(Ordering::SeqCst), questions, "asked once");
    }

    #[tokio::test]
    async fn a_silent_server_is_waited_for_no_longer_than_the_bound() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let ntp = Ntp::at(&socket.local_addr().unwrap().to_string()).unwrap();
        let begun = BootTimer.elapsed();
        assert_eq!(ntp.now().await.unwrap_err().kind().code(), "unavailable");
        let waited_ms = BootTimer.elapsed().since(begun);
        assert!((RESPONSE_WAIT_MS - 100..30_000).contains(&waited_ms), "{waited_ms}");
        // A second request is not sent at once.
        assert!(ntp.now().await.is_err());
        let mut packet = [0; 48];
        let mut questions = 0;
        while socket.try_recv(&mut packet).is_ok() {
            questions += 1;
        }
        assert_eq!(questions, 1);
    }
}
