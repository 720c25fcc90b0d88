//! Holder of a share.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Bits of an IPv6 address that one network has in common. The owner of one machine there has all
/// 2^64 addresses.
const NETWORK_BITS: u32 = 64;

/// Callers that share: all with one token, or from one address without any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// Name of the token.
    Token(Arc<str>),
    V4(Ipv4Addr),
    /// A network of 64 bits.
    V6(Ipv6Addr),
    /// This server itself.
    Own,
}

impl Client {
    /// Returns the client at this address.
    pub(crate) fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let network = u128::MAX << NETWORK_BITS;
                Self::V6(Ipv6Addr::from_bits(address.to_bits() & network))
            }
        }
    }

    pub(crate) fn token(name: &str) -> Self {
        Self::Token(name.into())
    }
}

/// Writes its name for a sentence.
impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(name) => write!(f, "token {name}"),
            Self::V4(address) => write!(f, "address {address}"),
            Self::V6(network) => write!(f, "network {network}/{NETWORK_BITS}"),
            Self::Own => f.write_str("this server"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let at = |text: &str| Client::at(text.parse().unwrap());
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:ffff:ffff:ffff"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
        for (client, shown) in [
            (at("2001:db8::1"), "network 2001:db8::/64"),
            (at("192.0.2.1"), "address 192.0.2.1"),
            (Client::token("orders"), "token orders"),
        ] {
            assert_eq!(client.to_string(), shown);
        }
    }
}
