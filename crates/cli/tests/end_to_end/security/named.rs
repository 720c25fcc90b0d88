//! Client certificates that stand for tokens, over TLS, with curl, redis-cli, gRPC and this
//! command.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use snowmint_testkit::programs;
use snowmint_wire::grpc::MintRequest;
use snowmint_wire::grpc::mint_client::MintClient;
use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::certificates::{Authority, Signed};
use super::tls::{https, serve};
use super::{Made, bearer, entry, path, piped, put, status, token, until, with_token};
use crate::server::{Folder, Server, client, curl};

/// Tokens with the names of their certificates.
const ORDERS: &str =
    "[orders]\ncertificates = [\"DNS=Orders.internal\"]\ngrants = [\"mint,admin *\"]\n";
const READER: &str = "[reader]\ncertificates = [\"CN=reader\"]\ngrants = [\"decode *\"]\n";
const ADA: &str =
    "[ada]\ncertificates = [\"URI=spiffe://x/ada\", \"CN=ada\"]\ngrants = [\"mint *\"]\n";

/// A server that accepts client certificates of one authority.
struct Named {
    folder: Folder,
    ca: String,
    authority: Authority,
    clients: Authority,
    server: Server,
}

impl Named {
    fn new(name: &str, tokens: &str) -> Self {
        let folder = Folder::new(name);
        let (authority, clients) = (Authority::new(), Authority::new());
        let [_, _, ca] = authority.put_into(&folder, "ca.pem");
        let client_ca = put(&folder, "clients.pem", &clients.pem());
        let tokens = put(&folder, "tokens.toml", tokens);
        let tls = format!("client_ca = {client_ca:?}\n[compat.tinyid]\nenabled = true\n");
        let server = serve(&folder, &[&tls, &format!("[tokens]\nfile = {tokens:?}\n")]);
        let named = Self { folder, ca, authority, clients, server };
        let probe = named.cert("probe", &[]);
        let ready = https(&named.server, "/readyz");
        until("ready", || status(&["--cacert", &named.ca, "--cert", &probe, &ready]) == "200");
        named
    }

    /// Writes a certificate with this common name and these other names, and its key, into a file.
    fn cert(&self, common: &str, names: &[&str]) -> String {
        self.put(&format!("{common}.pem"), &self.clients.sign_as(common, names, 2100))
    }

    /// Returns options with the same names from an unknown authority, and options without a
    /// certificate.
    fn not_certs(&self, common: &str, names: &[&str]) -> [Vec<String>; 2] {
        let signed = Authority::new().sign_as(common, names, 2100);
        let file = self.put(&format!("false-{common}.pem"), &signed);
        [vec!["--cert".into(), file], Vec::new()]
    }

    fn put(&self, file: &str, Signed { cert, key }: &Signed) -> String {
        put(&self.folder, file, &format!("{cert}{key}"))
    }

    /// Requests one ID with curl, and returns the status.
    fn minted(&self, cert: &str, more: &[&str]) -> String {
        let url = https(&self.server, "/v1/ids/default");
        status(&[&["--cacert", &self.ca, "--cert", cert, url.as_str()], more].concat())
    }

    fn redis(&self, more: &[&str]) -> Vec<String> {
        let place = ["-h", "127.0.0.1", "-p", self.server.resp_port(), "--tls"];
        let words = [&place[..], &["--cacert", &self.ca, "--no-auth-warning"], more].concat();
        words.into_iter().map(str::to_owned).collect()
    }

    /// Returns the output of redis-cli over a connection of its own.
    fn reply(&self, cert: &str, words: &[&str]) -> String {
        let words = self.redis(&[&["--cert", cert, "--key", cert], words].concat());
        client("redis-cli", &words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

#[test]
fn http_certificate_replaces_a_missing_token() {
    let shown = token();
    let minter = entry("minter", &[&shown.hash], &["mint default"]);
    let named = Named::new("named-http", &[ORDERS, READER, ADA, &minter].concat());
    let orders = named.cert("orders", &["elsewhere", "orders.INTERNAL"]);
    let (reader, ada) = (named.cert("reader", &[]), named.cert("ada", &["spiffe://x/ADA"]));
    let other = named.cert("other", &["xorders.internal", "orders.internal.x", "spiffe://x/ada/b"]);
    for version in ["--http1.1", "--http2"] {
        assert_eq!(named.minted(&orders, &[version]), "200");
        assert_eq!(named.minted(&reader, &[version]), "403", "its token has not the right");
        assert_eq!(named.minted(&other, &[version]), "401", "no name of it is a token's");
        assert_eq!(
            named.minted(&ada, &[version]),
            "200",
            "a URI to the letter is not hers, her name is"
        );
        for none in named.not_certs("orders", &["orders.internal"]) {
            let none: Vec<_> = none.iter().map(String::as_str).collect();
            let url = https(&named.server, "/v1/ids/default");
            let curl_args = [&["--cacert", &named.ca, version, url.as_str()], &none[..]].concat();
            assert_eq!(status(&curl_args), "000", "{none:?}");
        }
        // Several requests on one connection all belong to the certificate's token.
        let url = https(&named.server, "/v1/ids/default");
        let twice = ["-o", "/dev/null", "-w", "%{http_code} %{num_connects}\n"];
        let by = ["--cacert", &named.ca, "--cert", &orders, version];
        let curl_args = [&by[..], &twice, &[url.as_str()], &twice[..2], &[url.as_str()]].concat();
        assert_eq!(curl(&curl_args), "200 1\n200 0\n");
    }
    // A given token counts before the certificate, even when it is wrong.
    assert_eq!(named.minted(&reader, &["-H", &bearer(&shown.token)]), "200");
    assert_eq!(named.minted(&orders, &["-H", &bearer("wrong")]), "401");
    assert_eq!(named.minted(&orders, &["-H", "Authorization: Basic x"]), "401");
    // Browsers send a certificate for pages of other sites as well: such requests mint nothing.
    for (site, wanted) in
        [("cross-site", "403"), ("same-site", "403"), ("same-origin", "200"), ("none", "200")]
    {
        assert_eq!(
            named.minted(&orders, &["-H", &format!("Sec-Fetch-Site: {site}")]),
            wanted,
            "{site}"
        );
    }
    // Tinyid's clients send tokens in their own way.
    let tinyid = |more: &str| {
        let url = https(&named.server, &format!("/tinyid/id/nextId?bizType=default{more}"));
        curl(&["--cacert", &named.ca, "--cert", &reader, &url])
    };
    assert!(tinyid("").contains("\"code\":5,"), "{}", tinyid(""));
    let minted = tinyid(&format!("&token={}", shown.token));
    assert!(minted.contains("\"code\":200,"), "{minted}");
    named.tells_who_is_known(&orders, &other);
    assert_eq!(named.server.stop(), 0);
}

impl Named {
    fn tells_who_is_known(&self, orders: &str, other: &str) {
        let get = |cert: &str, path: &str| {
            let response =
                curl(&["--cacert", &self.ca, "--cert", cert, &https(&self.server, path)]);
            serde_json::from_str::<serde_json::Value>(&response).unwrap()
        };
        let about = get(orders, "/v1/server");
        assert_eq!(about["token"]["name"], "orders");
        assert_eq!(about["token"]["certificate"], "DNS=orders.internal");
        let refused = get(other, "/v1/server")["error"]["message"].to_string();
        assert!(
            refused.contains("DNS=xorders.internal") && refused.contains("CN=other"),
            "{refused}"
        );

        let body = r#"{"name":"bills","kind":"segment"}"#;
        let sources = https(&self.server, "/v1/sources");
        let define = ["--cacert", &self.ca, "--cert", orders, "--json", body, &sources];
        assert_eq!(status(&define), "200");
        self.server.says("token orders (by certificate \"DNS=orders.internal\") at 127.0.0.1:");

        let url = https(&self.server, "");
        let mint = ["mint", "default", "-n", "5", "--server", &url];
        let by = |cert| {
            let files = [("SNOWMINT_CA_FILE", self.ca.as_str()), ("SNOWMINT_CERT_FILE", cert)];
            with_token(&mint, "", &files)
        };
        let minted = by(orders);
        assert!(minted.status.success(), "{minted:?}");
        assert_eq!(by(other).status.code(), Some(2), "unauthenticated");
    }
}

#[tokio::test]
async fn grpc_certificate_replaces_a_missing_token() {
    let shown = token();
    let minter = entry("minter", &[&shown.hash], &["mint default"]);
    let named = Named::new("named-grpc", &[ORDERS, READER, &minter].concat());
    let sign = |authority: &Authority, common: &str| {
        authority.sign_as(common, &[&format!("{common}.internal")], 2100)
    };
    let orders = named.channel(Some(&sign(&named.clients, "orders"))).await.unwrap();
    assert_eq!(minted(&orders, None).await, Ok(3));
    let reader = named.channel(Some(&sign(&named.clients, "reader"))).await.unwrap();
    assert_eq!(minted(&reader, None).await, Err(Code::PermissionDenied));
    assert_eq!(minted(&reader, Some(&shown)).await, Ok(3));
    let other = named.channel(Some(&sign(&named.clients, "other"))).await.unwrap();
    assert_eq!(minted(&other, None).await, Err(Code::Unauthenticated));
    for none in [Some(sign(&Authority::new(), "orders")), None] {
        // The rejection comes after the other end believes to be connected, or at once.
        if let Ok(channel) = named.channel(none.as_ref()).await {
            let refused = minted(&channel, None).await.unwrap_err();
            let is_cut_off = matches!(refused, Code::Unavailable | Code::Unknown | Code::Cancelled);
            assert!(is_cut_off, "{refused:?}");
        }
    }
    // The open connection follows the file.
    put(&named.folder, "tokens.toml", READER);
    named.server.says("token orders removed");
    assert_eq!(minted(&orders, None).await, Err(Code::Unauthenticated));
    put(&named.folder, "tokens.toml", ORDERS);
    named.server.says("token orders added");
    assert_eq!(minted(&orders, None).await, Ok(3));
    drop((orders, reader, other));
    assert_eq!(named.server.stop(), 0);
}

impl Named {
    async fn channel(&self, shown: Option<&Signed>) -> Result<Channel, tonic::transport::Error> {
        let mut tls =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(self.authority.pem()));
        if let Some(Signed { cert, key }) = shown {
            tls = tls.identity(Identity::from_pem(cert, key));
        }
        Endpoint::from_shared(https(&self.server, "")).unwrap().tls_config(tls)?.connect().await
    }
}

/// Returns the number of IDs received of three requested ones.
async fn minted(channel: &Channel, shown: Option<&Made>) -> Result<usize, Code> {
    let wish = MintRequest { source: "default".into(), count: Some(3), key: None };
    let mut wish = tonic::Request::new(wish);
    if let Some(Made { token, .. }) = shown {
        wish.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    let response = MintClient::new(channel.clone()).mint(wish).await;
    response.map(|ids| ids.into_inner().ids.len()).map_err(|status| status.code())
}

/// One connection of redis-cli.
struct Open {
    child: Child,
    asks: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Open {
    fn new(named: &Named, cert: &str) -> Self {
        let mut command = Command::new(programs::installed("redis-cli"));
        command.args(named.redis(&["--cert", cert, "--key", cert]));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let replies = BufReader::new(child.stdout.take().unwrap());
        Self { asks: child.stdin.take().unwrap(), replies, child }
    }

    fn ask(&mut self, words: &str) -> String {
        writeln!(self.asks, "{words}").unwrap();
        let mut line = String::new();
        // redis-cli prints an empty line after an error.
        while line.trim().is_empty() {
            line.clear();
            assert_ne!(self.replies.read_line(&mut line).unwrap(), 0, "redis-cli has ended");
        }
        line.trim().to_owned()
    }
}

fn is_id(reply: &str) -> bool {
    reply.trim().parse::<u64>().is_ok()
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn resp_certificate_replaces_a_missing_auth() {
    let shown = token();
    let minter = entry("minter", &[&shown.hash], &["mint default"]);
    let named = Named::new("named-resp", &[ORDERS, READER, &minter].concat());
    let [orders, reader, other] = ["orders", "reader", "other"]
        .map(|common| named.cert(common, &[&format!("{common}.internal")]));
    let incr = ["INCR", "default"];
    for protocol in ["-2", "-3"] {
        assert!(is_id(&named.reply(&orders, &[&[protocol], &incr[..]].concat())), "{protocol}");
    }
    assert!(named.reply(&reader, &incr).contains("NOPERM"));
    assert!(named.reply(&other, &incr).contains("NOAUTH"));
    named
        .server
        .says("why=no token has a name of the certificate (\"DNS=other.internal\", \"CN=other\")");
    for none in named.not_certs("orders", &["orders.internal"]) {
        let mut words: Vec<_> = none.iter().map(String::as_str).collect();
        words.extend(none.last().iter().flat_map(|cert| ["--key", cert.as_str()]));
        let words = named.redis(&[&words[..], &incr].concat());
        let reply = client("redis-cli", &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(!is_id(&reply) && !reply.contains("NO"), "{reply}");
    }

    // A given token counts before the certificate, until the connection is reset.
    let mut open = Open::new(&named, &reader);
    let auth = format!("AUTH minter {}", shown.token);
    assert_eq!(open.ask(&auth), "OK");
    assert!(is_id(&open.ask("INCR default")));
    assert!(open.ask("AUTH minter wrong").contains("WRONGPASS"));
    assert!(is_id(&open.ask("INCR default")), "who he was before");
    assert_eq!(open.ask("RESET"), "RESET");
    assert!(open.ask("INCR default").contains("NOPERM"));
    drop(open.asks);
    open.child.wait().unwrap();
    named.an_open_connection_follows(&orders, &minter);
    assert_eq!(named.server.stop(), 0);
}

impl Named {
    fn an_open_connection_follows(&self, orders: &str, minter: &str) {
        let mut open = Open::new(self, orders);
        let id = open.ask("CLIENT ID");
        assert!(is_id(&open.ask("INCR default")));
        put(&self.folder, "tokens.toml", minter);
        until("what was taken out is refused", || open.ask("INCR default").contains("NOAUTH"));
        // The certificate may now belong to another token.
        let other = "[other]\ncertificates = [\"CN=orders\"]\ngrants = [\"decode *\"]\n";
        put(&self.folder, "tokens.toml", other);
        until("the certificate names another token", || {
            open.ask("INCR default").contains("NOPERM")
        });
        put(&self.folder, "tokens.toml", &[ORDERS, other].concat());
        until("the host counts before the common name", || is_id(&open.ask("INCR default")));
        assert_eq!(open.ask("CLIENT ID"), id, "the same connection");
        drop(open.asks);
        open.child.wait().unwrap();
    }
}

#[test]
fn certificates_that_no_client_can_show_are_refused() {
    let folder = Folder::new("named-none");
    let authority = Authority::new();
    let [cert, key, ca] = authority.put_into(&folder, "ca.pem");
    let client_ca = format!("client_ca = {ca:?}\n");
    let certified =
        |names: &str| format!("[orders]\ncertificates = [{names}]\ngrants = [\"mint *\"]\n");
    for (tls, tokens, says) in [
        ("", certified("\"CN=orders\""), "client_ca"),
        (&client_ca, certified("\"DNS=*.internal\""), "compared whole"),
        (&client_ca, certified("\"orders\""), "CN=NAME"),
        (&client_ca, certified("\"DNS=a\", \"DNS=A\""), "is a certificate of"),
    ] {
        let tokens = put(&folder, "tokens.toml", &tokens);
        let config =
            format!("[tls]\ncert = {cert:?}\nkey = {key:?}\n{tls}[tokens]\nfile = {tokens:?}\n");
        let config = put(&folder, "config.toml", &config);
        let data = path(&folder, "data");
        for more in [&[][..], &["--check"]] {
            let arguments = [&["--config", &config, "--data-dir", &data], more].concat();
            let Err(output) = Server::try_start(&arguments, &[]) else {
                panic!("it starts: {says}")
            };
            let printed = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{printed}");
            assert!(printed.contains(says) && printed.contains("tokens.toml"), "{printed}");
        }
    }

    // The server does not request a certificate, so an existing one has no effect.
    let tokens = put(&folder, "tokens.toml", &entry("orders", &[&token().hash], &["mint *"]));
    let server = serve(&folder, &[&format!("[tokens]\nfile = {tokens:?}\n")]);
    let Signed { cert, key } = authority.sign_as("orders", &[], 2100);
    let own = put(&folder, "orders.pem", &(cert + &key));
    let url = https(&server, "/v1/ids/default");
    assert_eq!(status(&["--cacert", &ca, "--cert", &own, &url]), "401");
    put(&folder, "tokens.toml", &certified("\"CN=orders\""));
    server.says("keeping the current tokens");
    assert_eq!(server.stop(), 0);
}

#[test]
fn token_names_lists_the_names_of_a_certificate() {
    let names = ["B.internal", "spiffe://x/Orders", "10.0.0.1"];
    let Signed { cert, key } = Authority::new().sign_as("orders", &names, 2100);
    let in_json = piped(&["token", "names", "--json"], &(cert.clone() + &key)).stdout;
    let in_json = String::from_utf8(in_json).unwrap();
    assert_eq!(
        in_json,
        "{\"names\":[\"URI=spiffe://x/Orders\",\"DNS=b.internal\",\"CN=orders\"]}\n"
    );
    let shown = piped(&["token", "names"], &(cert + &key));
    assert!(shown.status.success(), "{shown:?}");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown, "URI=spiffe://x/Orders\nDNS=b.internal\nCN=orders\n");
    assert_eq!(piped(&["token", "names"], &key).status.code(), Some(2));
}
