//! Redis with a replica that can be promoted (`persistence=any`). Both the replica and the old
//! primary, which is promoted again without a stop, may lack acknowledged writes.

use std::sync::Arc;

use snowmint_coord::{
    BootTimer, FastForward, NewDefinition, Reserve, Result, Segment, SourceState, Store, Timer as _,
};
use snowmint_testkit::proxy::Proxy;
use snowmint_testkit::servers::{Redis, Server};
use tokio::runtime::Builder;

/// Sends a server a command, and returns its reply.
async fn tell(server: &Server, words: &str) -> String {
    let client = redis::Client::open(server.url()).unwrap();
    let mut hand = client.get_multiplexed_async_connection().await.unwrap();
    let mut words = words.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command.query_async(&mut hand).await.unwrap()
}

/// Makes a server a replica, and waits until it has everything that the primary has.
async fn follow(replica: &Server, primary: &Server) {
    tell(replica, &format!("REPLICAOF 127.0.0.1 {}", primary.port())).await;
    let begun = BootTimer.elapsed();
    while !has_all_of(replica, primary).await {
        assert!(BootTimer.elapsed().since(begun) < 60_000, "it never follows");
        BootTimer.sleep_ms(50).await;
    }
}

async fn has_all_of(replica: &Server, primary: &Server) -> bool {
    let offset = |said: &str, of: &str| {
        said.lines().find_map(|line| line.trim_end().strip_prefix(of)?.parse::<u64>().ok())
    };
    let wanted = offset(&tell(primary, "INFO replication").await, "master_repl_offset:");
    let said = tell(replica, "INFO replication").await;
    said.contains("master_link_status:up") && offset(&said, "slave_repl_offset:") >= wanted
}

fn orders() -> NewDefinition {
    let (name, spec, identity) = ("orders".into(), "{}".into(), "{}".into());
    NewDefinition { name, spec, identity, enabled: None }
}

async fn reserve(store: &Arc<dyn Store>, definition_version: u64) -> Result<Segment> {
    let reserve = Reserve { source: "orders".into(), length: 5, definition_version, within: None };
    store.reserve(&reserve).await
}

/// A running handle and a new one both get an error for each call.
#[test]
fn a_failover_and_one_back_are_each_another_store() {
    let start = || -> Server {
        Redis::start(&["--appendfsync", "everysec", "--repl-diskless-sync-delay", "0"]).into()
    };
    let (first, second) = (start(), start());
    let proxy = Proxy::start(first.port());
    // The proxy has its own runtime, and so must start and end outside any other.
    let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(fail_over_and_back(&proxy, &first, &second));
}

async fn fail_over_and_back(proxy: &Proxy, first: &Server, second: &Server) {
    follow(second, first).await;
    let url = format!("{}?persistence=any", first.url_by(proxy.port()));
    let running = snowmint_stores::open(&url, "default").await.unwrap();
    let version = running.define(&orders()).await.unwrap().version;
    reserve(&running, version).await.unwrap();
    for (promoted, other, when) in
        [(second, first, "after the failover"), (first, second, "after failing back")]
    {
        follow(promoted, other).await;
        tell(promoted, "REPLICAOF NO ONE").await;
        if when == "after the failover" {
            // The promoted replica lacks this write.
            reserve(&running, version).await.unwrap();
        }
        proxy.lead_to(promoted.port());
        if when == "after the failover" {
            let refused = at_last(async || running.list().await).await.unwrap_err();
            assert_eq!(refused.kind().code(), "other_store", "read {when}: {refused}");
        }
        let started = snowmint_stores::open(&url, "default").await.unwrap();
        for store in [&running, &started] {
            for _ in 0..3 {
                let refused = at_last(async || reserve(store, version).await).await.unwrap_err();
                assert_eq!(refused.kind().code(), "other_store", "{when}: {refused}");
            }
            let refused = store.set_state("orders", SourceState::Disabled).await.unwrap_err();
            assert_eq!(refused.kind().code(), "other_store", "{when}: {refused}");
        }
    }
    let operator = snowmint_stores::open(&url, "default").await.unwrap();
    operator.fast_forward(&FastForward::default()).await.unwrap();
    // The running handle had seen the lost writes, and gets one error for the recovery.
    let told = reserve(&running, version).await.unwrap_err();
    assert_eq!(told.kind().code(), "store_went_back", "{told}");
    reserve(&running, version).await.unwrap();
}

/// Repeats a call until the lost connection to the previous server is detected.
async fn at_last<T>(ask: impl AsyncFn() -> Result<T>) -> Result<T> {
    let begun = BootTimer.elapsed();
    loop {
        match ask().await {
            Err(error) if error.kind().code() == "unavailable" => {
                assert!(BootTimer.elapsed().since(begun) < 60_000, "{error}");
            }
            answered => return answered,
        }
    }
}
