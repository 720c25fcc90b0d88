//! Greeting of a server on a terminal, once it is ready: the console's address, and how to try it.

use std::io::{self, IsTerminal as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anstyle::{AnsiColor, Style};
use snowmint_coord::node::BUILTIN_DEFAULT;
use snowmint_coord::spec::Kind;
use snowmint_coord::{BootTimer, Node, Timer as _};

use crate::client::segment;
use crate::config::{Config, Defined};
use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;

/// Interval of readiness checks.
const POLL_MS: u64 = 250;
const READY: Style = AnsiColor::Green.on_default().bold();

/// Greeting of a server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Welcome {
    console: String,
    attempt: String,
}

impl Welcome {
    /// Returns the greeting, if standard output is a terminal and the server speaks HTTP.
    pub(super) fn for_terminal(
        config: &Config,
        http: Option<SocketAddr>,
        scheme: &str,
    ) -> Option<Self> {
        let is_person = io::stdout().is_terminal();
        let source = |(name, defined): (&String, &Defined)| {
            let is_counter = defined.spec.kind == Some(Kind::Counter);
            (defined.spec.is_enabled() && !is_counter).then(|| name.clone())
        };
        let source = match config.sources.builtin {
            true => Some(BUILTIN_DEFAULT.to_owned()),
            false => config.defined.iter().find_map(source),
        };
        let has_tokens = !config.tokens.file.is_empty();
        http.filter(|_| is_person)
            .map(|http| Self::new(http, scheme, source.as_deref(), has_tokens))
    }

    fn new(mut http: SocketAddr, scheme: &str, source: Option<&str>, has_tokens: bool) -> Self {
        // A browser on this machine reaches a server that listens on all addresses by loopback.
        match http.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => http.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => http.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        let server = format!("{scheme}://{http}");
        let token = match has_tokens {
            true => "-H \"Authorization: Bearer $SNOWMINT_TOKEN\" ",
            false => "",
        };
        let attempt = match source {
            Some(name) => format!("curl {token}'{server}/v1/ids/{}?count=2'", segment(name)),
            None => format!("snowmint source define orders --server {server}"),
        };
        Self { console: format!("{server}/"), attempt }
    }

    /// Waits until the server is ready, and greets.
    pub(super) async fn once_ready(self, node: Node) {
        while !node.readiness().ready {
            BootTimer.sleep_ms(POLL_MS).await;
        }
        // A closed terminal is not an error of the server.
        let _ = self.print(&mut Output::new());
    }

    fn print(&self, out: &mut Output) -> Outcome {
        out.styled(READY, "ready", "")?;
        out.field("console", Some(&self.console))?;
        out.field("try it", Some(&self.attempt))?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn welcome_names_the_console_and_a_command_that_mints() {
        for (listens, server) in [
            ("127.0.0.1:7700", "https://127.0.0.1:7700"),
            ("0.0.0.0:80", "https://127.0.0.1:80"),
            ("[::]:80", "https://[::1]:80"),
            ("[fd00::7]:80", "https://[fd00::7]:80"),
        ] {
            let welcome = |source, has_tokens| {
                Welcome::new(listens.parse().unwrap(), "https", source, has_tokens)
            };
            let open = welcome(Some("default"), false);
            assert_eq!(open.console, format!("{server}/"));
            assert_eq!(open.attempt, format!("curl '{server}/v1/ids/default?count=2'"));
            let guarded = welcome(Some("default"), true).attempt;
            assert!(guarded.contains("Bearer $SNOWMINT_TOKEN\" '"), "{guarded}");
            let empty = welcome(None, false).attempt;
            assert_eq!(empty, format!("snowmint source define orders --server {server}"));
        }
    }
}
