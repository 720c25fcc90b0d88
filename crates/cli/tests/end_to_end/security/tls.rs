//! TLS on both ports, with curl, redis-cli, gRPC and this command; and the replacement of
//! certificates.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use snowmint_testkit::programs;
use snowmint_wire::grpc::MintRequest;
use snowmint_wire::grpc::mint_client::MintClient;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use super::certificates::{Authority, Signed};
use super::{path, put, status, until, with_token};
use crate::server::{Folder, Server, TIMEOUT, client, curl};

pub(super) fn serve(folder: &Folder, more: &[&str]) -> Server {
    let data = path(folder, "data");
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| path(folder, name));
    let config = put(
        folder,
        "config.toml",
        &format!("[tls]\ncert = {cert:?}\nkey = {key:?}\n{}", more.concat()),
    );
    Server::start(&["--config", &config, "--data-dir", &data], &[])
}

pub(super) fn https(server: &Server, path: &str) -> String {
    format!("https://{}{path}", server.http)
}

fn redis<'a>(server: &'a Server, ca: &'a str) -> [&'a str; 7] {
    ["-h", "127.0.0.1", "-p", server.resp_port(), "--tls", "--cacert", ca]
}

#[tokio::test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
async fn both_ports_speak_tls() {
    let folder = Folder::new("tls");
    let authority = Authority::new();
    let [_, _, ca] = authority.put_into(&folder, "ca.pem");
    let server = serve(&folder, &[]);
    until("ready", || status(&["--cacert", &ca, &https(&server, "/readyz")]) == "200");

    for (version, wanted) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let url = https(&server, "/v1/ids/default?count=20000");
        let format = "\n%{http_version} %{http_code}";
        let response =
            curl(&["--cacert", &ca, version, "-H", "Accept: text/plain", "-w", format, &url]);
        let (ids, status) = response.rsplit_once('\n').unwrap();
        assert_eq!(status, format!("{wanted} 200"));
        assert_eq!(ids.trim().lines().count(), 20_000);
    }
    assert_eq!(
        status(&[&https(&server, "/livez")]),
        "000",
        "no authority of the system has signed"
    );
    assert_eq!(status(&[&server.url("/livez")]), "000", "no plain HTTP");

    let incr = client("redis-cli", &[&redis(&server, &ca)[..], &["INCR", "default"]].concat());
    assert!(incr.trim().parse::<u64>().is_ok(), "{incr}");
    let many =
        client("redis-cli", &[&redis(&server, &ca)[..], &["MINT", "default", "50000"]].concat());
    assert_eq!(many.lines().count(), 50_000);
    let port = server.resp_port();
    let benchmark =
        ["-h", "127.0.0.1", "-p", port, "--tls", "--cacert", &ca, "-n", "20000", "-c", "10"];
    let printed = client(
        "redis-benchmark",
        &[&benchmark[..], &["-P", "16", "-q", "INCR", "default"]].concat(),
    );
    assert!(printed.contains("requests per second"), "{printed}");

    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority.pem()));
    let endpoint = Endpoint::from_shared(https(&server, "")).unwrap().tls_config(tls).unwrap();
    let mut grpc = MintClient::new(endpoint.connect().await.unwrap());
    let wish = MintRequest { source: "default".into(), count: Some(3), key: None };
    assert_eq!(grpc.mint(wish).await.unwrap().into_inner().ids.len(), 3);

    let url = https(&server, "");
    let mint = ["mint", "default", "-n", "5", "--server", &url];
    let output = with_token(&mint, "", &[("SNOWMINT_CA_FILE", &ca)]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 5);
    let url = server.url("");
    let plain = ["mint", "default", "--server", &url];
    for (mint, hint) in [(&mint[..], "SNOWMINT_CA_FILE"), (&plain, "https://")] {
        let output = with_token(mint, "", &[]);
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(printed.contains(hint) && printed.contains(&server.http), "{hint}: {printed}");
    }
    assert_eq!(server.stop(), 0);
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn a_certificate_is_replaced_while_the_server_serves() {
    let folder = Folder::new("renewed");
    let (before, after) = (Authority::new(), Authority::new());
    let [_, _, old] = before.put_into(&folder, "old.pem");
    let new = put(&folder, "new.pem", &after.pem());
    let server = serve(&folder, &[]);
    let status_by = |ca: &str| status(&["--cacert", ca, &https(&server, "/livez")]);
    assert_eq!((status_by(&old).as_str(), status_by(&new).as_str()), ("200", "000"));

    // An open connection continues over the change.
    let mut open = Command::new(programs::installed("redis-cli"));
    open.args(redis(&server, &old)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut open = open.spawn().unwrap();
    let (mut asks, mut replies) =
        (open.stdin.take().unwrap(), BufReader::new(open.stdout.take().unwrap()));
    let mut ping = || {
        asks.write_all(b"PING\n").unwrap();
        let mut line = String::new();
        replies.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "PONG");
    };
    ping();

    // An unusable file changes nothing: the certificate does not match the key.
    let Signed { key, .. } = after.sign();
    put(&folder, "key.pem", &key);
    server.says("keeping the current certificates");
    assert_eq!(status_by(&old), "200");

    after.put_into(&folder, "ignored.pem");
    until("the new one is shown", || status_by(&new) == "200");
    assert_eq!(status_by(&old), "000");
    ping();
    drop(asks);
    open.wait().unwrap();
    let private = key.lines().nth(1).unwrap();
    assert!(!server.printed().contains(private));
    assert_eq!(server.stop(), 0);
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn client_certificates_can_be_required() {
    let folder = Folder::new("mutual");
    let (authority, clients, strangers) = (Authority::new(), Authority::new(), Authority::new());
    let [_, _, ca] = authority.put_into(&folder, "ca.pem");
    let client_ca = put(&folder, "clients.pem", &clients.pem());
    let server = serve(&folder, &[&format!("client_ca = {client_ca:?}\n")]);
    let with = |name: &str, authority: &Authority| {
        let Signed { cert, key } = authority.sign();
        put(&folder, name, &(cert + &key))
    };
    let (known, unknown) = (with("known.pem", &clients), with("unknown.pem", &strangers));
    let url = https(&server, "/livez");
    assert_eq!(status(&["--cacert", &ca, &url]), "000");
    assert_eq!(status(&["--cacert", &ca, "--cert", &unknown, &url]), "000");
    assert_eq!(status(&["--cacert", &ca, "--cert", &known, &url]), "200");

    let words = ["--cert", &known, "--key", &known, "PING"];
    let printed = client("redis-cli", &[&redis(&server, &ca)[..], &words].concat());
    assert_eq!(printed.trim(), "PONG");
    let printed = client("redis-cli", &[&redis(&server, &ca)[..], &["PING"]].concat());
    assert_ne!(printed.trim(), "PONG");

    let base = https(&server, "");
    let mint = ["mint", "default", "--server", &base];
    let files = [("SNOWMINT_CA_FILE", ca.as_str()), ("SNOWMINT_CERT_FILE", &known)];
    let output = with_token(&mint, "", &files);
    assert!(output.status.success(), "{output:?}");
    let output = with_token(&mint, "", &files[..1]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("SNOWMINT_CERT_FILE") && printed.contains(&server.http), "{printed}");
    assert_eq!(server.stop(), 0);
}

#[test]
fn connection_without_a_handshake_is_closed() {
    let folder = Folder::new("stalled");
    Authority::new().put_into(&folder, "ca.pem");
    let limits = "[http]\nhead_time_max = \"500ms\"\n[resp]\nframe_time_max = \"500ms\"\n";
    let server = serve(&folder, &[limits]);
    for address in [&server.http, &server.resp] {
        // The client sends nothing, an unfinished start of TLS, and a text without TLS.
        for sent in [&b""[..], b"\x16\x03\x01\x02\x00\x01", b"PING\r\nGET / HTTP/1.1\r\n\r\n"] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            stream.write_all(sent).unwrap();
            let mut reply = Vec::new();
            if let Err(error) = stream.read_to_end(&mut reply) {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{sent:?}: {error}");
            }
            // The response is a TLS alert at most.
            assert!(reply.len() <= 7, "{sent:?}: {reply:?}");
        }
    }
    // A fresh connection does not delay a stop.
    let _resting = TcpStream::connect(&server.http).unwrap();
    assert_eq!(server.stop(), 0);
}
