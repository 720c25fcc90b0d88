//! Destination of spans.

use hyper::Uri;
use snowmint_server::settings;

use crate::system::secret::Hidden;
use crate::terminal::exit::{Failure, Outcome};

/// Default port of collectors for OTLP over gRPC.
const PORT: u16 = 4317;

settings! {
    /// `[traces]`
    pub(crate) struct TracesSection {
        /// Address of the collector: http://HOST:PORT or https://HOST:PORT (default port 4317).
        /// Empty: no spans.
        ///
        /// More: docs/how-to/watch-it.md#traces.
        pub(crate) endpoint: Hidden,
        /// One request in this many has a span, unless a traceparent of the caller decides.
        #[within(1..)]
        pub(crate) one_in: u64 = 1,
        /// File (PEM) of the authority that signs the collector's certificate. Empty: those that
        /// the system trusts.
        pub(crate) ca: String,
    }
}

impl TracesSection {
    /// Returns whether the collector uses TLS, and its `HOST:PORT`; `None`: there are no spans.
    pub(crate) fn collector(&self) -> Outcome<Option<(bool, String)>> {
        if self.endpoint.is_empty() {
            return Ok(None);
        }
        let odd = || {
            Failure::usage(
                "traces.endpoint is not an address for OTLP over gRPC; write http://HOST:PORT or \
                 https://HOST:PORT",
            )
        };
        let uri: Uri = self.endpoint.text().parse().map_err(|_| odd())?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(odd()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(odd)?;
        if uri.path() != "/" || uri.authority().is_some_and(|all| all.as_str().contains('@')) {
            return Err(odd());
        }
        Ok(Some((tls, format!("{host}:{}", uri.port_u16().unwrap_or(PORT)))))
    }

    /// Checks conditions over several values.
    pub(super) fn check(&self) -> Outcome {
        let collector = self.collector()?;
        if !self.ca.is_empty() && !collector.is_some_and(|(tls, _)| tls) {
            return Err(Failure::usage("traces.ca needs https:// in traces.endpoint; set it"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectors_are_named_by_their_address() {
        let at = |endpoint: &str| {
            TracesSection { endpoint: endpoint.into(), ..TracesSection::default() }.collector()
        };
        assert!(at("").unwrap().is_none());
        for (endpoint, tls, address) in [
            ("http://collector", false, "collector:4317"),
            ("https://collector:443/", true, "collector:443"),
            ("http://[::1]:4317", false, "[::1]:4317"),
        ] {
            assert_eq!(at(endpoint).unwrap().unwrap(), (tls, address.to_owned()), "{endpoint}");
        }
        for endpoint in
            ["collector:4317", "grpc://a:1", "http://", "http://a/v1/traces", "http://u:p@a"]
        {
            assert!(at(endpoint).is_err(), "{endpoint}");
        }
    }
}
