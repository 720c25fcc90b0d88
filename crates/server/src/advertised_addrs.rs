//! Addresses of a server, as it announces them to the peers that share counters with it.

use std::fmt;

/// The addresses of one server. Its text form, which the store keeps: `resp=HOST:PORT
/// http=HOST:PORT`, and `https=HOST:PORT` where TLS is spoken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdvertisedAddrs {
    /// Address of RESP.
    pub resp: Option<String>,
    /// Address of HTTP: `http://HOST:PORT` or `https://HOST:PORT`.
    pub http: Option<String>,
}

impl AdvertisedAddrs {
    /// Reads the text form. Skips unknown parts: a newer server may announce more.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let part = |name: &str| {
            let mut parts = text.split(' ').filter_map(|part| part.split_once('='));
            parts.find(|(key, _)| *key == name).map(|(_, address)| address.to_owned())
        };
        let base = |scheme: &str| Some(format!("{scheme}://{}", part(scheme)?));
        Self { resp: part("resp"), http: base("https").or_else(|| base("http")) }
    }
}

impl fmt::Display for AdvertisedAddrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resp = self.resp.as_deref().map(|address| ("resp", address));
        let http = self.http.as_deref().and_then(|base| base.split_once("://"));
        let mut addresses = [resp, http].into_iter().flatten();
        if let Some((name, address)) = addresses.next() {
            write!(f, "{name}={address}")?;
        }
        addresses.try_for_each(|(name, address)| write!(f, " {name}={address}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip_and_ignore_unknown_parts() {
        let both =
            AdvertisedAddrs { resp: Some("a:1".into()), http: Some("http://[::1]:2".into()) };
        assert_eq!(both.to_string(), "resp=a:1 http=[::1]:2");
        let tls = AdvertisedAddrs { http: Some("https://b:3".into()), resp: None };
        assert_eq!(tls.to_string(), "https=b:3");
        for advertised_addrs in [both, AdvertisedAddrs::default(), tls] {
            assert_eq!(AdvertisedAddrs::read(&advertised_addrs.to_string()), advertised_addrs);
        }
        assert_eq!(AdvertisedAddrs::read("grpc=c:4 resp=a:1 x").resp.as_deref(), Some("a:1"));
    }
}
