//! Addresses that other machines can reach.

use std::net::SocketAddr;

use crate::config::Config;
use crate::terminal::exit::{Failure, Outcome};

/// Rejects an address that other machines can reach, unless callers need tokens and connections are
/// encrypted, or the operator has allowed it.
pub(crate) fn check(config: &Config, key: &str, addresses: &[SocketAddr]) -> Outcome {
    if config.server.insecure {
        return Ok(());
    }
    let lacks = match (config.tokens.file.is_empty(), config.tls.is_on()) {
        (false, true) => return Ok(()),
        (true, true) => "without tokens (tokens.file) any caller may request anything",
        (false, false) => "without TLS (tls.cert, tls.key) tokens can be intercepted",
        (true, false) => {
            "without tokens (tokens.file) and TLS (tls.cert, tls.key) any caller may request \
             anything"
        }
    };
    let Some(public) = addresses.iter().find(|address| !address.ip().is_loopback()) else {
        return Ok(());
    };
    Err(Failure::usage(format!(
        "{key} = {public} is open to other machines, and {lacks}; configure them \
         (docs/how-to/give-access.md), or set --insecure (server.insecure) if a firewall limits \
         access"
    )))
}

/// Checks the addresses in their configured form. Names are resolved when the server starts.
pub(crate) fn check_texts(config: &Config) -> Outcome {
    for (key, address) in
        [("server.http", &config.server.http), ("server.resp", &config.server.resp)]
    {
        check(config, key, address.parse().ok().as_slice())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Given;

    fn error_of(keys: &[(&'static str, &str)], address: &str) -> Option<String> {
        let given = keys.iter().map(|(key, value)| Given::flag(key, key, *value)).collect();
        let config = Config::load(None, given).unwrap();
        match check(&config, "server.http", &[address.parse().unwrap()]) {
            Ok(()) => None,
            Err(Failure::Explained { exit, message, .. }) if exit as u8 == 2 => Some(message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_loopback_needs_no_protection() {
        let (tokens, tls) = (("tokens.file", "t"), [("tls.cert", "c"), ("tls.key", "k")]);
        for address in ["127.0.0.1:1", "127.5.5.5:1", "[::1]:1"] {
            assert_eq!(error_of(&[], address), None, "{address}");
        }
        for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "192.168.1.1:1", "[fe80::1]:1"] {
            let both = error_of(&[], address).unwrap();
            assert!(both.contains(address) && both.contains("--insecure"), "{both}");
            assert!(error_of(&[tokens], address).unwrap().contains("tls.cert"));
            assert!(error_of(&tls, address).unwrap().contains("tokens.file"));
            assert_eq!(error_of(&[tokens, tls[0], tls[1]], address), None);
            assert_eq!(error_of(&[("server.insecure", "true")], address), None);
        }
    }
}
