//! The audit trail.

use super::{bearer, entry, path, put, status, token, until};
use crate::server::{Folder, Server};

#[test]
fn every_change_of_a_definition_says_who_what_before_and_after() {
    let folder = Folder::new("audit");
    let made = token();
    let tokens = put(&folder, "tokens.toml", &entry("ops", &[&made.hash], &["admin *"]));
    // Nobody turns it off by asking for less of other lines.
    let config = format!("[tokens]\nfile = {tokens:?}\n[log]\nfilter = \"error\"\n");
    let config = put(&folder, "config.toml", &config);
    let server = Server::start(&["--config", &config, "--data-dir", &path(&folder, "data")], &[]);
    server.ready();
    let ask = |method: &str, at: &str, body: &str| {
        status(&["-X", method, "-H", &bearer(&made.token), "--json", body, &server.url(at)])
    };
    let define = r#"{"name":"orders","kind":"segment"}"#;
    assert_eq!(ask("POST", "/v1/sources", define), "200");
    assert_eq!(ask("POST", "/v1/sources", define), "200");
    assert_eq!(ask("PATCH", "/v1/sources/orders", r#"{"enabled":false}"#), "200");
    assert_eq!(ask("DELETE", "/v1/sources/orders", ""), "204");
    server.says("source orders deleted");
    let said = server.said();
    let trail = || said.lines().filter(|line| line.contains("audit"));
    assert!(trail().any(|line| line.contains("claimed") && line.contains("who=")), "{said}");
    let lines: Vec<_> = trail().filter(|line| line.contains("orders")).collect();
    assert_eq!(lines.len(), 3, "what changes nothing leaves no line: {said}");
    for (line, [how, before, after]) in lines.iter().zip([
        ["source orders defined", "before=none", "after=version"],
        ["source orders altered", "before=version", "\"enabled\":false"],
        ["source orders deleted", "\"enabled\":false", "after=none"],
    ]) {
        assert!(line.contains("token ops at 127.0.0.1:"), "{line}");
        for part in [how, before, after] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }
    assert_eq!(server.stop(), 0);
}

/// Nobody shows a token on SIGHUP: whoever may write the file may define.
#[test]
fn a_configuration_that_changes_is_followed_where_tokens_are_asked_for() {
    let folder = Folder::new("followed");
    let made = token();
    let tokens = put(&folder, "tokens.toml", &entry("m", &[&made.hash], &["mint *"]));
    let with = |sources: &str| {
        put(&folder, "config.toml", &format!("[tokens]\nfile = {tokens:?}\n{sources}"))
    };
    let orders = "[sources.orders]\nkind = \"segment\"\n";
    let config = with(orders);
    let start = || Server::start(&["--config", &config, "--data-dir", &path(&folder, "data")], &[]);
    let server = start();
    server.ready();
    // At a start, too, and only where it is new.
    server.says("source orders defined who=the configuration before=none after=version");
    assert_eq!(server.stop(), 0);
    let server = start();
    server.ready();
    assert!(!server.said().contains("source orders"), "{}", server.said());
    let hangup = || server.signal("-HUP");
    let minted = |source: &str| {
        status(&["-H", &bearer(&made.token), &server.url(&format!("/v1/ids/{source}"))])
    };
    with(&format!("{orders}enabled = false\n[sources.added]\nkind = \"ulid\"\n"));
    hangup();
    until("the new source is there", || minted("added") == "200");
    until("the other is switched off", || minted("orders") == "409");
    server.says("source added defined who=the configuration before=none");
    server.says("source orders altered who=the configuration");
    // Whoever takes the line away again has it on, as it is where nothing is said.
    with(orders);
    hangup();
    until("it is on again", || minted("orders") == "200");
    assert_eq!(server.stop(), 0);
}
