//! Host names that a server without tokens accepts.

use super::{put, status};
use crate::server::{Folder, Server, client, curl};

/// Returns the status of a request with this host.
fn status_for(server: &Server, host: &str) -> String {
    let header = format!("Host: {host}");
    status(&["-H", &header, &server.url("/v1/ids/default")])
}

fn server(folder: &Folder, config: &str, environment: &[(&str, &str)]) -> Server {
    let config = put(folder, "config.toml", config);
    let data = folder.join("data");
    Server::start(&["--config", &config, "--data-dir", data.to_str().unwrap()], environment)
}

#[test]
fn server_accepts_its_announced_and_configured_names() {
    let folder = Folder::new("hosts");
    let node = client("uname", &["-n"]);
    let node = node.trim();
    let own = server(&folder, "", &[]);
    for (host, expected) in [
        ("localhost", "200"),
        (&*own.http, "200"),
        (node, "200"),
        (&*format!("{node}:7700"), "200"),
        ("ids.internal", "421"),
        ("ids.example", "421"),
    ] {
        assert_eq!(status_for(&own, host), expected, "{host}");
    }
    let response = curl(&["-H", "Host: ids.example", &own.url("/v1/ids/default")]);
    assert!(response.contains("\"misdirected\"") && response.contains("http.hosts"), "{response}");
    assert_eq!(own.stop(), 0);

    let config = "[server]\nannounce = \"ids.internal\"\n[http]\nhosts = [\"ids.example\"]\n";
    let named = server(&folder, config, &[]);
    for (host, expected) in [
        ("ids.internal", "200"),
        ("IDS.internal:7700", "200"),
        ("ids.example", "200"),
        (&*format!("{node}.example"), "421"),
        ("ids.internal.example", "421"),
    ] {
        assert_eq!(status_for(&named, host), expected, "{host}");
    }
    assert_eq!(named.stop(), 0);

    let listed = [("SNOWMINT_HTTP__HOSTS", "a.example, b.example:7700")];
    let listed = server(&folder, config, &listed);
    for (host, expected) in [
        ("a.example", "200"),
        ("b.example:7700", "200"),
        ("b.example", "421"),
        ("ids.example", "421"),
    ] {
        assert_eq!(status_for(&listed, host), expected, "{host}");
    }
    assert_eq!(listed.stop(), 0);
}

/// `curl -d` sends the content type of forms by default.
#[test]
fn curl_gets_the_accepted_content_type() {
    let folder = Folder::new("forms");
    let server = server(&folder, "", &[]);
    let url = server.url("/v1/sources");
    let body = r#"{"name":"orders","kind":"segment"}"#;
    let refused = curl(&["-d", body, &url]);
    assert!(refused.contains("\"unsupported_media_type\""), "{refused}");
    assert!(refused.contains("Content-Type: application/json"), "{refused}");
    assert_eq!(status(&["-d", body, "-H", "Content-Type: application/json", &url]), "200");
    assert_eq!(status(&["-X", "POST", &server.url("/v1/ids/orders")]), "200");
    assert_eq!(server.stop(), 0);
}
