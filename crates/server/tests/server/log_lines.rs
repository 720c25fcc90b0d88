//! Tests of log lines about requests.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::alone::alone;
use crate::common::{node, request, server_of, server_with, settings};

/// Log of this process at the default level. Where another thread was the first at a line of code
/// that logs, a subscriber of one thread may miss it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn listen() -> Self {
        let log = Self::default();
        tracing::subscriber::set_global_default(log.clone()).unwrap();
        log
    }

    pub(crate) fn lines(&self, with: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line.contains(with)).cloned().collect()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{} {}", event.metadata().level(), event.metadata().target()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Callers repeat failing requests, immediately and in thousands.
#[test]
fn request_errors_are_logged_once_a_second() {
    alone(request_errors_are_logged_once_a_second, async {
        let log = Log::listen();
        let node = node().await;
        let server = server_of(node.clone(), settings()).await;
        assert_eq!(server.get("/v1/ids/default").await.status, 200);
        node.close().await.unwrap();
        let mut resp = server.resp().await;
        for _ in 0..200 {
            assert_eq!(server.get("/v1/ids/default").await.code(), "closed");
            assert!(resp.ask(&["MINT", "default"]).await.starts_with('-'));
        }
        let closed_lines = log.lines("code=closed");
        assert_eq!(closed_lines.len(), 1, "{closed_lines:?}");
        assert!(!closed_lines[0].contains("unsaid"), "{closed_lines:?}");
        for (ms, lines) in [(999, 1), (1, 2)] {
            server.timer.advance_ms(ms);
            assert_eq!(server.get("/v1/ids/default").await.code(), "closed");
            assert_eq!(log.lines("code=closed").len(), lines);
        }
        let last = log.lines("code=closed").pop().unwrap();
        assert!(
            last.ends_with(" unsaid=400"),
            "all but the first, and those of the second: {last}"
        );
    });
}

/// The same code as in every other protocol, and the source of the command, if there is one.
#[test]
fn access_log_has_the_error_code_of_a_command() {
    alone(access_log_has_the_error_code_of_a_command, async {
        let log = Log::listen();
        let server = server_with(|settings| settings.access_log = true).await;
        let mut resp = server.resp().await;
        resp.ask(&["MINT", "default"]).await;
        for (command, outcome) in [
            // A name without a source may be a token in the wrong place.
            (&["MINT", "absent"][..], r#"request=MINT outcome="unknown_source""#),
            (&["MINT", "default", "1000000"], r#"source="default" outcome="limit_exceeded""#),
            (&["MINT", "default", "x"], r#"outcome="bad_request""#),
            (&["NONSENSE"], r#"request=(unknown) outcome="bad_request""#),
            (&["EXPIRE", "default", "1"], r#"request=EXPIRE outcome="bad_request""#),
            (&["MINT"], r#"outcome="bad_request""#),
            (&["HELLO", "9"], r#"outcome="bad_request""#),
        ] {
            assert!(resp.ask(command).await.starts_with('-'), "{command:?}");
            let line = log.lines("snowmint::access").pop().unwrap_or_default();
            assert!(line.contains(outcome), "{command:?}: {line}");
            assert!(!line.contains("count="), "{line}");
        }
        resp.ask(&["PING"]).await;
        let line = log.lines("snowmint::access").pop().unwrap();
        assert!(line.contains(r#"outcome="ok""#), "{line}");
        // Commands queued for EXEC are logged once, when they run.
        let before = log.lines("snowmint::access").len();
        let transaction: &[&[&str]] =
            &[&["MULTI"], &["INCR", "default"], &["MINT", "default", "x"], &["EXEC"]];
        resp.send(transaction.iter().map(|command| request(command)).collect::<String>()).await;
        resp.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n").await;
        resp.integer().await;
        assert!(resp.line().await.starts_with('-'));
        let lines = log.lines("snowmint::access").split_off(before);
        let commands = ["MULTI", "EXEC", "INCR", "MINT"];
        assert_eq!(lines.len(), commands.len(), "{lines:?}");
        for (line, command) in lines.iter().zip(commands) {
            assert!(line.contains(command), "{lines:?}");
        }
        assert!(
            lines[2].contains(r#"outcome="ok""#) && lines[3].contains("bad_request"),
            "{lines:?}"
        );
        // A command that is rejected when it is queued does not run.
        resp.send("MULTI\r\nINCR default\r\nMINT absent\r\nDISCARD\r\n").await;
        resp.expect("+OK\r\n+QUEUED\r\n-ERR source ").await;
        resp.line().await;
        resp.expect("+OK\r\n").await;
        let lines = log.lines("snowmint::access").split_off(before + commands.len());
        assert_eq!(lines.len(), 3, "{lines:?}");
        for (line, part) in lines.iter().zip(["MULTI", r#"outcome="unknown_source""#, "DISCARD"]) {
            assert!(line.contains(part), "{lines:?}");
        }
    });
}
