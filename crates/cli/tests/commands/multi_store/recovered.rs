//! Rollback of one of several stores, and its recovery through a server.

use std::fs;
use std::path::Path;

use crate::common::{Ran, run};
use crate::multi_store::ground::{Seen, StoresDir, drawn, drawn_from_all, share, wait_until};
use crate::multi_store::numbers::{all_serve, plain};
use crate::server::Server;

/// Copies an unused SQLite store with its other files.
fn copy(from: &Path, to: &Path) {
    for suffix in ["", "-wal"] {
        let name = |path: &Path| format!("{}{suffix}", path.display());
        let _ = fs::remove_file(name(to));
        if Path::new(&name(from)).exists() {
            fs::copy(name(from), name(to)).unwrap();
        }
    }
}

fn stop(server: Server) {
    server.signal("-TERM");
    server.wait();
}

#[test]
fn restored_store_of_several_is_recovered_by_a_server() {
    let stores_dir = StoresDir::new();
    let (a, b) = (stores_dir.sqlite("a.db"), stores_dir.sqlite("b.db"));
    let config = stores_dir.config(&[("a", &a), ("b", &b)]);
    let mut seen = Seen::default();
    let server = stores_dir.start_by(&config);
    all_serve(&server, &["a", "b"]);
    seen.add(drawn_from_all(&server, 100, 2, plain));
    stop(server);
    copy(&stores_dir.path("a.db"), &stores_dir.path("copy.db"));
    let server = stores_dir.start_by(&config);
    all_serve(&server, &["a", "b"]);
    seen.add(drawn_from_all(&server, 20_000, 2, plain));
    stop(server);
    copy(&stores_dir.path("copy.db"), &stores_dir.path("a.db"));

    let server = stores_dir.start_by(&config);
    all_serve(&server, &["b"]);
    // No request has to call it: the other store serves all of them.
    wait_until("the store is found to be an older state", || {
        share(&server, "a")["error"].as_str().is_some_and(|error| error.contains("rolled back"))
    });
    assert_eq!(share(&server, "a")["serving"], false, "{}", share(&server, "a"));
    seen.add(drawn(&server, 100));
    let recover = |more: &[&str]| -> Ran {
        let through = ["worker", "recover", "--server", &server.http, "--secondary", "a"];
        run(&[&through[..], more].concat())
    };
    wait_until("its journal has reported", || recover(&["--dry-run"]).code == 0);
    assert_eq!(share(&server, "a")["serving"], false, "a plan changes nothing");
    let done = recover(&[]);
    assert!(done.code == 0 && !done.err.contains("not in doubt"), "{done:?}");
    all_serve(&server, &["a", "b"]);
    seen.add(drawn_from_all(&server, 1_000, 2, plain));
    stop(server);
}
