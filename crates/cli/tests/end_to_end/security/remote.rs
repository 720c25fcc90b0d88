//! Embedded clients, through servers with TLS and tokens.

use std::collections::HashSet;

use snowmint::{Credentials, Options};
use snowmint_testkit::proxy::Proxy;

use super::certificates::{Authority, Signed};
use super::tls::{https, serve};
use super::{entry, path, put, status, token, until, with_token};
use crate::server::{Folder, Server, client};

const RIGHTS: &[&str] = &["mint,decode,reserve,join,admin *"];

/// A server with TLS and a token, and the credentials for it.
struct Guarded {
    folder: Folder,
    ca: String,
    token: String,
    hash: String,
    server: Server,
}

impl Guarded {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let [_, _, ca] = Authority::new().put_into(&folder, "ca.pem");
        let made = token();
        let tokens = put(&folder, "tokens.toml", &entry("program", &[&made.hash], RIGHTS));
        let server =
            serve(&folder, &[&format!("[store]\noffered = true\n[tokens]\nfile = {tokens:?}\n")]);
        until("ready", || status(&["--cacert", &ca, &https(&server, "/readyz")]) == "200");
        Self { folder, ca, token: made.token, hash: made.hash, server }
    }

    fn url(&self) -> String {
        format!("snowmints://{}", self.server.http)
    }
}

/// Returns the error of a program that cannot reach its servers.
async fn open_error(url: &str, credentials: Credentials) -> String {
    Options::new().credentials(credentials).open(url).await.unwrap_err().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_client_mints_with_tls_and_tokens() {
    let guarded = Guarded::new("remote");
    let url = guarded.url();
    let trusting = || Credentials::new().ca_file(&guarded.ca);
    let mint = Options::new().credentials(trusting().token(&guarded.token)).open(&url).await;
    let mint = mint.unwrap();
    mint.snowflake("orders").await.unwrap().mint().unwrap();
    let first = mint.segment("invoices").await.unwrap().next().await.unwrap();
    assert_eq!(first, 1);
    assert_eq!(mint.counter("counters").await.unwrap().next("alice").await.unwrap(), 1);
    mint.close().await.unwrap();

    // The error names missing or wrong credentials, with a remedy.
    let stranger = Authority::new();
    let strange = put(&guarded.folder, "strange.pem", &stranger.pem());
    let wrong = token().token;
    let rejected = [
        (url.clone(), trusting(), "SNOWMINT_TOKEN"),
        (url.clone(), trusting().token(&wrong), "SNOWMINT_TOKEN"),
        (url.clone(), Credentials::new().ca_file(strange).token(&wrong), "SNOWMINT_CA_FILE"),
        (url.clone(), Credentials::new().token(&wrong), "SNOWMINT_CA_FILE"),
        (url.clone(), Credentials::new().ca_file("/nowhere"), "/nowhere"),
        (url.replace("mints:", "mint:"), trusting().token(&wrong), "snowmints://"),
    ];
    for (url, credentials, part) in rejected {
        let message = open_error(&url, credentials).await;
        assert!(message.contains(part), "{part}: {message}");
        assert!(!message.contains(&wrong), "{message}");
    }
    assert_eq!(guarded.server.stop(), 0);
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn commands_and_servers_mint_with_tls_and_tokens() {
    let guarded = Guarded::new("remote-commands");
    let Guarded { folder, ca, token, .. } = &guarded;
    let url = guarded.url();
    let mint = ["mint", "invoices", "-n", "3", "--store", &url];
    // A server defines the source; the library defines missing sources, this command does not.
    let define = ["source", "define", "invoices", "--kind", "segment", "--server", &url];
    let trusted = [("SNOWMINT_CA_FILE", ca.as_str())];
    assert!(with_token(&define, token, &trusted).status.success());
    let minted = with_token(&mint, token, &trusted);
    assert!(minted.status.success(), "{minted:?}");
    assert_eq!(String::from_utf8(minted.stdout).unwrap(), "1\n2\n3\n");
    let refused = with_token(&mint, token, &[]);
    let message = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{message}");
    assert!(message.contains("SNOWMINT_CA_FILE"), "{message}");

    let place = put(folder, "program.token", &format!("{token}\n"));
    let config = format!("[store]\nurl = {url:?}\ntoken = \"file:{place}\"\nca = {ca:?}\n");
    let config = put(folder, "second.toml", &config);
    let second = ["--config", &config, "--data-dir", &path(folder, "second")];
    let second = Server::start(&second, &[("SNOWMINT_LOG__FILTER", "debug")]);
    second.ready();
    let (_, body) = second.get("/v1/ids/invoices");
    let number: u64 = body["ids"][0].as_str().unwrap().parse().unwrap();
    assert!(number > 3, "{number}");
    let counted = client("redis-cli", &["-p", second.resp_port(), "INCR", "counters:alice"]);
    assert_eq!(counted.trim(), "1");
    assert!(!second.printed().contains(token.as_str()));
    assert_eq!(second.stop(), 0);
    assert!(!guarded.server.printed().contains(token.as_str()));
    assert_eq!(guarded.server.stop(), 0);
}

#[test]
fn bench_loads_over_tls_with_a_token() {
    let guarded = Guarded::new("remote-bench");
    let Guarded { ca, token, server, .. } = &guarded;
    let trusted = [("SNOWMINT_CA_FILE", ca.as_str())];
    let protocols = [("https", &server.http), ("rediss", &server.resp), ("grpcs", &server.http)];
    for (scheme, address) in protocols {
        let url = format!("{scheme}://{address}");
        let load = ["bench", &url, "-n", "2000", "-c", "2", "--pipeline", "8", "--json"];
        let loaded = with_token(&load, token, &trusted);
        assert!(loaded.status.success(), "{loaded:?}");
        let report: serde_json::Value = serde_json::from_slice(&loaded.stdout).unwrap();
        assert_eq!(report["ids"], 2_000, "{report}");
        // The runs lack a token, the trusted certificate, and TLS.
        let anonymous = with_token(&load, "", &trusted);
        let message = String::from_utf8_lossy(&anonymous.stderr).to_lowercase();
        assert!(!anonymous.status.success() && message.contains("token"), "{scheme}: {message}");
        let untrusting = with_token(&load, token, &[]);
        let message = String::from_utf8_lossy(&untrusting.stderr);
        assert_eq!(untrusting.status.code(), Some(4), "{scheme}: {message}");
        assert!(message.contains("SNOWMINT_CA_FILE"), "{scheme}: {message}");
        let plain = format!("{}://{address}", scheme.strip_suffix('s').unwrap());
        let plain = with_token(&["bench", &plain, "-n", "10"], token, &trusted);
        assert_eq!(plain.status.code(), Some(4), "{plain:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_certificate_error_states_the_reason() {
    let authority = Authority::new();
    let here = ["localhost", "127.0.0.1"];
    let cases: [(&[&str], i32, &str); 2] =
        [(&here, 2020, "expired"), (&["elsewhere"], 2100, "another name")];
    for (names, year, part) in cases {
        let folder = Folder::new(&format!("remote-{year}"));
        let [_, _, ca] = authority.put_signed(&folder, "ca.pem", &authority.sign_for(names, year));
        let server = serve(&folder, &[]);
        let url = format!("snowmints://{}", server.http);
        let message = open_error(&url, Credentials::new().ca_file(ca)).await;
        assert!(message.contains(part), "{part}: {message}");
    }
    // A certificate of the client, for a server that requires one.
    let folder = Folder::new("remote-mutual");
    let clients = Authority::new();
    let [_, _, ca] = authority.put_into(&folder, "ca.pem");
    let client_ca = put(&folder, "clients.pem", &clients.pem());
    let Signed { cert, key } = clients.sign();
    let own = put(&folder, "own.pem", &(cert + &key));
    let server =
        serve(&folder, &[&format!("client_ca = {client_ca:?}\n[store]\noffered = true\n")]);
    let url = format!("snowmints://{}", server.http);
    let message = open_error(&url, Credentials::new().ca_file(&ca)).await;
    assert!(message.contains("SNOWMINT_CERT_FILE"), "{message}");
    let credentials = Credentials::new().ca_file(&ca).cert_file(&own);
    let mint = Options::new().credentials(credentials).open(&url).await.unwrap();
    mint.snowflake("orders").await.unwrap().mint().unwrap();
    mint.close().await.unwrap();
}

/// Certificate and token are replaced while a program mints: no call fails, and no number comes
/// twice.
#[test]
fn certificate_and_token_are_replaced_during_minting() {
    let Guarded { folder, ca, token: before, hash, server } = Guarded::new("remote-renewed");
    let after = Authority::new();
    let both = std::fs::read_to_string(&ca).unwrap() + &after.pem();
    let both = put(&folder, "both.pem", &both);
    let place = put(&folder, "program.token", &before);
    let port = server.http.rsplit(':').next().unwrap().parse().unwrap();
    let proxy = Proxy::start(port);
    let url = format!("snowmints://127.0.0.1:{}", proxy.port());
    let credentials = Credentials::new().ca_file(&both).token_file(&place);
    let mint = Options::new().wait_max_ms(30_000).credentials(credentials);
    let mint = mint.open_blocking(&url).unwrap();
    let (counters, orders) = (mint.counter("counters").unwrap(), mint.snowflake("orders").unwrap());
    let mut seen = HashSet::new();
    let mut round = || {
        for _ in 0..10 {
            assert!(seen.insert(counters.next("alice").unwrap()));
            assert!(seen.insert(orders.mint().unwrap()));
        }
    };
    round();
    let new = put(&folder, "new.pem", &after.pem());
    after.put_into(&folder, "ignored.pem");
    until("the new certificate is shown", || {
        round();
        status(&["--cacert", &new, &https(&server, "/livez")]) == "200"
    });
    // The open connection continues; a new connection uses the new certificate.
    round();
    proxy.cut();
    round();

    let made = token();
    let rename = |hashes: &[&str]| put(&folder, "tokens.toml", &entry("program", hashes, RIGHTS));
    let is_known = |token: &str| {
        let bearer = super::bearer(token);
        let url = https(&server, "/v1/ids/orders");
        status(&["--cacert", &new, "-H", &bearer, &url]) == "200"
    };
    rename(&[&hash, &made.hash]);
    until("both tokens are known", || is_known(&made.token));
    put(&folder, "program.token", &made.token);
    round();
    rename(&[&made.hash]);
    until("the old token is unknown", || {
        round();
        !is_known(&before)
    });
    round();
    mint.close().unwrap();
    assert_eq!(server.stop(), 0);
}
