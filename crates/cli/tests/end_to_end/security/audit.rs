//! The audit trail.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::{bearer, entry, path, put, status, token, until, with_token};
use crate::server::{Folder, Server, TIMEOUT};

#[test]
fn definition_change_logs_caller_and_both_definitions() {
    let folder = Folder::new("audit");
    let made = token();
    let tokens = put(&folder, "tokens.toml", &entry("ops", &[&made.hash], &["admin *"]));
    // A filter for fewer other lines does not disable the trail.
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
    let printed = server.printed();
    let trail = || printed.lines().filter(|line| line.contains("audit"));
    assert!(trail().any(|line| line.contains("claimed") && line.contains("who=")), "{printed}");
    let lines: Vec<_> = trail().filter(|line| line.contains("orders")).collect();
    assert_eq!(lines.len(), 3, "what changes nothing leaves no line: {printed}");
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

/// SIGHUP needs no token: a user who may write the file may define sources.
#[test]
fn reloaded_configuration_is_applied_where_tokens_are_required() {
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
    // A start records definitions, too, but only new ones.
    server.says("source orders defined who=the configuration before=none after=version");
    assert_eq!(server.stop(), 0);
    let server = start();
    server.ready();
    assert!(!server.printed().contains("source orders"), "{}", server.printed());
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
    // Removing the line enables the source again, the default.
    with(orders);
    hangup();
    until("it is on again", || minted("orders") == "200");
    assert_eq!(server.stop(), 0);
}

/// Returns the lines of the trail with all these parts.
fn lines(server: &Server, parts: &[&str]) -> Vec<String> {
    let printed = server.printed();
    let is_one =
        |line: &&str| line.contains("audit") && parts.iter().all(|part| line.contains(part));
    printed.lines().filter(is_one).map(str::to_owned).collect()
}

#[track_caller]
pub(super) fn has_line(server: &Server, parts: &[&str]) {
    until(&format!("{parts:?} in the trail"), || !lines(server, parts).is_empty());
}

#[test]
fn joins_errors_and_raised_counters_leave_a_line_each() {
    let folder = Folder::new("programs");
    let (ops, app) = (token(), token());
    let tokens = entry("ops", &[&ops.hash], &["mint,admin *"])
        + &entry("app", &[&app.hash], &["mint,join *"]);
    let tokens = put(&folder, "tokens.toml", &tokens);
    let config = format!("[store]\noffered = true\n[tokens]\nfile = {tokens:?}\n");
    let config = put(&folder, "config.toml", &config);
    let server = Server::start(&["--config", &config, "--data-dir", &path(&folder, "data")], &[]);
    server.ready();

    // A program mints in its own process.
    let store = format!("snowmint://{}", server.http);
    let data = path(&folder, "program");
    let mint = ["mint", "default", "--store", &store, "--data-dir", &data];
    let minted = with_token(&mint, &app.token, &[]);
    assert!(minted.status.success(), "{minted:?}");
    let by = "who=token app at 127.0.0.1:";
    has_line(&server, &["program joined", by, "after=", " on ", "process "]);
    has_line(&server, &["program claimed", by, "after=\"workers-10\" ", " mark ", " term "]);
    has_line(&server, &["program extended", by, "before=\"workers-10\" ", "after=\"workers-10\" "]);
    has_line(&server, &["program released", by, "before=\"workers-10\" ", "after=\"workers-10\" "]);
    has_line(&server, &["program left", by, "before="]);

    // Changes that fail: by missing permissions, and by the catalog.
    let ask = |token: &str, method: &str, at: &str, body: &str| {
        status(&["-X", method, "-H", &bearer(token), "--json", body, &server.url(at)])
    };
    let define = r#"{"name":"orders","kind":"segment"}"#;
    assert_eq!(ask(&app.token, "POST", "/v1/sources", define), "403");
    has_line(
        &server,
        &["source \"orders\" not defined", by, "why=token app has no right to admin"],
    );
    assert_eq!(ask(&ops.token, "POST", "/v1/sources", define), "200");
    let other = r#"{"name":"orders","kind":"ulid"}"#;
    assert_eq!(ask(&ops.token, "POST", "/v1/sources", other), "409");
    has_line(&server, &["source \"orders\" not defined", "who=token ops at", "why="]);
    assert_eq!(ask(&ops.token, "DELETE", "/v1/sources/none", ""), "404");
    has_line(&server, &["source \"none\" not deleted", "who=token ops at", "why="]);
    // Untrusted names have no effect on a reader's terminal.
    let named = r#"{"name":"a\u001b[2Jb","kind":"segment"}"#;
    assert_eq!(ask(&app.token, "POST", "/v1/sources", named), "400");
    has_line(&server, &["source \"a\\u{1b}[2Jb\" not defined"]);
    assert!(!server.printed().contains('\u{1b}'), "{}", server.printed());

    let key = "/v1/counters/counters/alice";
    assert_eq!(ask(&app.token, "PUT", key, r#"{"bound":"500"}"#), "403");
    has_line(&server, &["source \"counters\" not raised", by, "why="]);
    assert_eq!(ask(&ops.token, "PUT", key, r#"{"bound":"500"}"#), "200");
    has_line(
        &server,
        &["counter of source counters (section ", "who=token ops", "before=0", "after=500"],
    );
    assert!(!server.printed().contains("alice"), "a key may be a person's name");
    assert_eq!(server.stop(), 0);
}

/// Sends `AUTH` this many times with wrong secrets, all at once, and counts each kind of reply.
fn guess(server: &Server, count: usize) -> (usize, usize) {
    let mut stream = TcpStream::connect(&server.resp).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let all: String = (0..count).map(|n| format!("AUTH guess-{n}\r\n")).collect();
    stream.write_all(all.as_bytes()).unwrap();
    let (mut wrong, mut slowed) = (0, 0);
    for reply in BufReader::new(stream).lines().take(count) {
        match reply.unwrap().split_once(' ') {
            Some(("-WRONGPASS", _)) => wrong += 1,
            Some(("-TRYAGAIN", rest)) if rest.contains("too many wrong tokens") => slowed += 1,
            reply => panic!("{reply:?}"),
        }
    }
    (wrong, slowed)
}

#[test]
fn token_used_under_another_name_leaves_a_line() {
    let folder = Folder::new("another-name");
    let (app, other) = (token(), token());
    let tokens =
        entry("app", &[&app.hash], &["mint *"]) + &entry("other", &[&other.hash], &["mint *"]);
    let tokens = put(&folder, "tokens.toml", &tokens);
    let config = put(&folder, "config.toml", &format!("[tokens]\nfile = {tokens:?}\n"));
    let server = Server::start(&["--config", &config, "--data-dir", &path(&folder, "data")], &[]);
    let mut stream = TcpStream::connect(&server.resp).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(format!("AUTH other {}\r\n", app.token).as_bytes()).unwrap();
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply).unwrap();
    assert!(reply.starts_with("-WRONGPASS"), "{reply}");
    let reason = "why=the token has another name than AUTH says";
    has_line(&server, &["login failed", "who=token app at 127.0.0.1:", reason]);
    assert!(!server.printed().contains(&app.token), "no secret is logged");
    assert_eq!(server.stop(), 0);
}

/// Ends a concurrent activity however the test ends.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn guesses_are_logged_and_slowed_but_a_valid_token_is_not() {
    // More guesses than are checked in one go, and few enough for the socket's buffers.
    const MANY: usize = 500;
    let folder = Folder::new("guesses");
    let made = token();
    let tokens = put(&folder, "tokens.toml", &entry("app", &[&made.hash], &["mint *"]));
    let config = put(&folder, "config.toml", &format!("[tokens]\nfile = {tokens:?}\n"));
    let server = Server::start(&["--config", &config, "--data-dir", &path(&folder, "data")], &[]);
    server.ready();
    let ask = |token: &str| status(&["-H", &bearer(token), &server.url("/v1/ids/default")]);
    assert_eq!(ask(&made.token), "200");

    let begun = Instant::now();
    let (mut wrong, mut slowed) = (0, 0);
    until("guesses are slowed", || {
        let now = guess(&server, MANY);
        (wrong, slowed) = (wrong + now.0, slowed + now.1);
        slowed > 0
    });
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap() + 1;
    assert!(wrong <= 200 + 100 * seconds, "{wrong} were looked at in {seconds} s");

    // Meanwhile a token in use still works; over HTTP a wrong token is rejected as over RESP.
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                guess(&server, MANY);
            }
        });
        for _ in 0..5 {
            assert_eq!(ask(&made.token), "200");
        }
        until("a guess over HTTP is slowed", || ask("guess") == "429");
    });
    let login = "login failed";
    has_line(&server, &[login, "who=nobody at 127.0.0.1:", "why=no such token"]);
    has_line(
        &server,
        &["lines left out in 10 s", "who=nobody at address 127.0.0.1", "failed login"],
    );
    // Any flood causes few lines.
    let periods = usize::try_from(begun.elapsed().as_secs() / 10).unwrap() + 2;
    let logged = lines(&server, &[login]).len();
    assert!(logged <= 20 * periods, "{logged} lines in {periods} periods");
    assert!(!server.printed().contains("guess-"), "no secret is logged");
    until("a wrong token is looked at again", || ask("guess") == "401");
    assert_eq!(server.stop(), 0);
}
