//! Servers that share a store, and show each other who they are.

use std::collections::BTreeSet;

use super::certificates::Authority;
use super::{bearer, entry, path, put, token, until};
use crate::server::{Folder, Server, client};

struct Both {
    folder: Folder,
    ca: String,
    minter: String,
    servers: [Server; 2],
}

/// Two servers with TLS and tokens on one store.
fn both(name: &str, peers: impl Fn(&Folder) -> String) -> Both {
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
    let servers = [1, 2].map(|number| {
        let data = path(&folder, &format!("server-{number}"));
        Server::start(&["--config", &config, "--store", &store, "--data-dir", &data], &[])
    });
    Both { folder, ca, minter: minter.token, servers }
}

impl Both {
    fn answer(&self, server: usize, method: &str, at: &str, body: &str) -> (String, String) {
        let url = format!("https://{}{at}", self.servers[server].http);
        let bearer = bearer(&self.minter);
        let fixed = ["-sS", "--max-time", "60", "--cacert", &self.ca, "-w", "\n%{http_code}"];
        let more = ["-X", method, "-H", &bearer, "-d", body, &url];
        let said = client("curl", &[&fixed[..], &more].concat());
        let (body, status) = said.rsplit_once('\n').unwrap();
        (status.to_owned(), body.to_owned())
    }

    /// Numbers of many keys by both servers, of which each answers for a half; how many refused.
    fn count(&self) -> usize {
        let mut refused = 0;
        for key in 0..20 {
            let mut seen = BTreeSet::new();
            for server in [0, 1] {
                let body = format!("{{\"key\":\"k{key}\"}}");
                let (status, said) = self.answer(server, "POST", "/v1/ids/counters", &body);
                if status == "200" {
                    assert!(seen.insert(said.clone()), "{said} twice");
                } else {
                    refused += 1;
                }
            }
        }
        refused
    }
}

#[test]
fn servers_pass_requests_on_under_tokens_and_tls() {
    let both = both("peers", |folder| {
        let peers = put(folder, "peers.token", &format!("{}\n{}\n", token().token, token().token));
        format!("token = \"file:{peers}\"\n")
    });
    until("all keys are counted by both", || both.count() == 0);
    // A change is told at once, which takes a token, too.
    let define = r#"{"name":"orders","kind":"segment"}"#;
    assert_eq!(both.answer(0, "POST", "/v1/sources", define).0, "200");
    until("the other knows", || both.answer(1, "POST", "/v1/ids/orders", "").0 == "200");
    for server in &both.servers {
        let pages = std::fs::read_to_string(both.folder.join("peers.token")).unwrap();
        assert!(pages.lines().all(|token| !server.said().contains(token)));
    }
    for server in both.servers {
        assert_eq!(server.stop(), 0);
    }
}

#[test]
fn servers_without_a_token_of_their_own_are_refused_by_each_other() {
    let both = both("no-peers", |_| String::new());
    until("each answers for its own", || both.count() < 40);
    let mut least = usize::MAX;
    for _ in 0..5 {
        least = least.min(both.count());
    }
    assert!(least > 0, "requests are passed on without a token");
}
