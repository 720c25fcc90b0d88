//! Servers that share a store and authenticate each other.

use std::collections::BTreeSet;

use super::certificates::Authority;
use super::{bearer, entry, path, put, token, until};
use crate::server::{Folder, Server, client};

struct Both {
    folder: Folder,
    ca: String,
    minter: String,
    /// Servers, each with the scheme of its URL.
    servers: [(&'static str, Server); 2],
}

/// Variables that take TLS out of a configuration.
const PLAIN: &[(&str, &str)] =
    &[("SNOWMINT_TLS__CERT", ""), ("SNOWMINT_TLS__KEY", ""), ("SNOWMINT_PEERS__CA", "")];

/// Starts two servers with TLS and tokens on one store.
fn both(name: &str, peers: impl Fn(&Folder) -> String) -> Both {
    both_with(name, peers, &[])
}

/// Starts the same with more variables for the second server.
fn both_with(name: &str, peers: impl Fn(&Folder) -> String, second: &[(&str, &str)]) -> Both {
    let folder = Folder::new(name);
    let [cert, key, ca] = Authority::new().put_into(&folder, "ca.pem");
    let minter = token();
    let grants = ["mint,decode,admin *"];
    let tokens = put(&folder, "tokens.toml", &entry("minter", &[&minter.hash], &grants));
    let peers = peers(&folder);
    let config = format!(
        "[tokens]\nfile = {tokens:?}\n[tls]\ncert = {cert:?}\nkey = {key:?}\n[peers]\nca = {ca:?}\n{peers}\
         [counters]\nlease = \"2s\"\n"
    );
    let config = put(&folder, "config.toml", &config);
    let store = format!("sqlite:{}", path(&folder, "ids.db"));
    let servers = [(1, &[][..]), (2, second)].map(|(number, more)| {
        let data = path(&folder, &format!("server-{number}"));
        let arguments = ["--config", &config, "--store", &store, "--data-dir", &data];
        let scheme = if more.is_empty() { "https" } else { "http" };
        (scheme, Server::start(&arguments, more))
    });
    Both { folder, ca, minter: minter.token, servers }
}

impl Both {
    fn request(&self, server: usize, method: &str, at: &str, body: &str) -> (String, String) {
        let (scheme, server) = &self.servers[server];
        let url = format!("{scheme}://{}{at}", server.http);
        let bearer = bearer(&self.minter);
        let fixed = ["-sS", "--max-time", "60", "--cacert", &self.ca, "-w", "\n%{http_code}"];
        let more = ["-X", method, "-H", &bearer, "--json", body, &url];
        let response = client("curl", &[&fixed[..], &more].concat());
        let (body, status) = response.rsplit_once('\n').unwrap();
        (status.to_owned(), body.to_owned())
    }

    /// Returns whether each server serves its own keys, and never those of its peer.
    fn refuses_for_ever(&self) -> bool {
        until("each serves its own sections", || self.count() < 40);
        (0..5).all(|_| self.count() > 0)
    }

    /// Counts many keys on both servers, each the owner of a half; returns the number of errors.
    fn count(&self) -> usize {
        let mut refused = 0;
        for key in 0..20 {
            let mut seen = BTreeSet::new();
            for server in [0, 1] {
                let body = format!("{{\"key\":\"k{key}\"}}");
                let (status, ids) = self.request(server, "POST", "/v1/ids/counters", &body);
                if status == "200" {
                    assert!(seen.insert(ids.clone()), "{ids} twice");
                } else {
                    refused += 1;
                }
            }
        }
        refused
    }
}

#[test]
fn servers_forward_requests_with_tokens_and_tls() {
    let both = both("peers", |folder| {
        let peers = put(folder, "peers.token", &format!("{}\n{}\n", token().token, token().token));
        format!("token = \"file:{peers}\"\n")
    });
    until("all keys are counted by both", || both.count() == 0);
    // A change reaches the peer at once, which needs a token, too.
    let define = r#"{"name":"orders","kind":"segment"}"#;
    assert_eq!(both.request(0, "POST", "/v1/sources", define).0, "200");
    until("the other knows", || both.request(1, "POST", "/v1/ids/orders", "").0 == "200");
    for (_, server) in &both.servers {
        let pages = std::fs::read_to_string(both.folder.join("peers.token")).unwrap();
        assert!(pages.lines().all(|token| !server.printed().contains(token)));
    }
    for (_, server) in both.servers {
        assert_eq!(server.stop(), 0);
    }
}

#[test]
fn servers_without_a_peer_token_reject_each_other() {
    let both = both("no-peers", |_| String::new());
    assert!(both.refuses_for_ever(), "requests are forwarded without a token");
}

#[test]
fn tls_server_sends_its_token_to_no_plain_server() {
    let peer = token().token;
    let peers = |folder: &Folder| {
        let peers = put(folder, "peers.token", &peer);
        format!("token = \"file:{peers}\"\n")
    };
    let both = both_with("half-tls", peers, PLAIN);
    assert!(both.refuses_for_ever(), "a token goes over the wire in clear");
    both.servers[0].1.says("does not use TLS");
}
