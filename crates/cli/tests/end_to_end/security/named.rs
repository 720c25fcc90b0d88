//! Certificates of clients that stand for tokens.

use super::certificates::{Authority, Signed};
use super::tls::{https, serve};
use super::{bearer, entry, put, status, token, until};
use crate::server::{Folder, client};

#[test]
fn a_certificate_stands_for_a_token_when_none_is_shown() {
    let folder = Folder::new("named");
    let (authority, clients) = (Authority::new(), Authority::new());
    let [_, _, ca] = authority.put_into(&folder, "ca.pem");
    let client_ca = put(&folder, "clients.pem", &clients.pem());
    let with = |file: &str, name: &str| {
        let Signed { cert, key } = clients.sign_for(&[name], 2100);
        put(&folder, file, &(cert + &key))
    };
    let (orders, other) = (with("orders.pem", "orders.internal"), with("other.pem", "elsewhere"));
    let shown = token();
    // Every certificate of this authority has the common name "somebody".
    let certified = |name: &str, by: &str, grant: &str| {
        format!("[{name}]\ncertificates = [{by:?}]\ngrants = [{grant:?}]\n")
    };
    let reader = certified("reader", "CN=somebody", "decode *")
        + &entry("minter", &[&shown.hash], &["mint default"]);
    let minting = certified("orders", "DNS=orders.internal", "mint,admin *");
    let tokens = put(&folder, "tokens.toml", &(reader.clone() + &minting));
    let server = serve(
        &folder,
        &[&format!("client_ca = {client_ca:?}\n"), &format!("[tokens]\nfile = {tokens:?}\n")],
    );
    let url = https(&server, "/v1/ids/default");
    let by = |cert: &str, more: &[&str]| {
        status(&[&["--cacert", &ca, "--cert", cert, url.as_str()], more].concat())
    };
    until("the server serves", || by(&orders, &[]) == "200");
    assert_eq!(by(&orders, &["--http2"]), "200");
    assert_eq!(by(&other, &[]), "403", "the common name stands for a token that may not mint");
    // A token that is shown counts before the certificate, also when it is wrong.
    assert_eq!(by(&other, &["-H", &bearer(&shown.token)]), "200");
    assert_eq!(by(&orders, &["-H", &bearer("wrong")]), "401");

    let redis = |cert: &str| {
        let place = ["-h", "127.0.0.1", "-p", server.resp_port(), "--tls", "--cacert", &ca];
        let words = ["--cert", cert, "--key", cert, "INCR", "default"];
        client("redis-cli", &[&place[..], &words].concat())
    };
    assert!(redis(&orders).trim().parse::<u64>().is_ok(), "{}", redis(&orders));
    assert!(redis(&other).contains("NOPERM"), "{}", redis(&other));

    let define = https(&server, "/v1/sources");
    let body = r#"{"name":"bills","kind":"segment"}"#;
    let defined = status(&["--cacert", &ca, "--cert", &orders, "-d", body, &define]);
    assert_eq!(defined, "200");
    server.says("token orders (by certificate \"DNS=orders.internal\") at 127.0.0.1:");

    put(&folder, "tokens.toml", &reader);
    until("what was taken out is refused", || by(&orders, &[]) == "403");
    assert_eq!(server.stop(), 0);
}
