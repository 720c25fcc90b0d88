//! Embedded clients: the servers lead them to all stores of a source.

use snowmint_testkit::servers::{Postgres, Redis, Server as StoreServer};

use crate::common::run;
use crate::multi_store::ground::{
    Drawing, Seen, StoresDir, drawn, drawn_from_all, pass, share, wait_until,
};
use crate::multi_store::numbers::{all_serve, plain};
use crate::server::{Server, serve};

#[test]
#[cfg_attr(
    not(feature = "real-servers"),
    ignore = "needs PostgreSQL and Redis: --features real-servers"
)]
fn embedded_client_uses_all_stores_of_a_source() {
    let stores_dir = StoresDir::new();
    let a: StoreServer = Postgres::start(&[]).into();
    let mut b: StoreServer = Redis::start(&[]).into();
    let (a_url, b_url) = (a.url(), b.url());
    let stores = [("a", a_url.as_str()), ("b", b_url.as_str())];
    let config = stores_dir.config(&stores);
    let (own, other) = (stores_dir.sqlite("own.db"), stores_dir.path("other"));
    let first =
        Server::start(serve(&stores_dir.path("data"), &["--config", &config, "--store", &own]));
    let second = Server::start(serve(&other, &["--config", &config, "--store", &own]));
    let servers = format!("snowmint://{},{}", first.http, second.http);
    let serve_remote = |name: &str| serve(&stores_dir.path(name), &["--store", &servers]);
    // The configuration names no stores, and has no URL but the servers'.
    let server = Server::start(serve_remote("embedded"));
    all_serve(&server, &["a", "b"]);
    let mut seen = Seen::default();
    seen.add(drawn_from_all(&server, 500, 2, plain));
    all_serve(&server, &["a"]);

    let load = Drawing::from(&[&server, &second], 2, 50);
    pass(300);
    b.kill();
    wait_until("the store that is away is named", || share(&server, "b")["serving"] == false);
    // One of the servers goes away, too.
    first.kill();
    pass(500);
    b.start();
    wait_until("it is back", || share(&server, "b")["serving"] == true);
    pass(300);
    load.end(&mut seen);
    drop(server);
    // The state for its next start is its own.
    let server = Server::start(serve_remote("embedded"));
    seen.add((0..4).flat_map(|_| drawn(&server, 200)));
    drop(server);

    let minted = run(&["mint", "orders", "-n", "10", "--store", &servers]).ok();
    seen.add(minted.lines().map(str::to_owned));
    // The name is unknown to every server.
    let keys = "kind = \"segment\"\nstores = \"a,absent\"\n";
    let config = stores_dir.path("wrong.toml");
    std::fs::write(&config, format!("[sources.bills]\n{keys}")).unwrap();
    let config = config.to_str().unwrap();
    let server =
        Server::start(serve(&stores_dir.path("wrong"), &["--store", &servers, "--config", config]));
    let refused = server.mint(&["bills"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.err.contains("absent"), "{}", refused.err);
}
