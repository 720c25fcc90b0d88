//! Opening on every server: it makes a store once, and makes none if only checking. A missing
//! server is reported in time, and an emptied server is another store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use snowmint_coord::{
    BootTimer, FastForward, Incarnation, Member, NewDefinition, Node, NodeSettings, Platform,
    Presence, SourceSpec, Store, Timer as _,
};
use snowmint_core::UnixMillis;
use snowmint_stores::Settings;
use snowmint_testkit::contract::Factory;

/// Most tries on a busy server, of ten seconds each.
const OPEN_TRIES: u32 = 6;

/// A server, as the contract reaches it.
pub(crate) struct Reached {
    pub(crate) name: &'static str,
    pub(crate) url: String,
    /// Whether the server's clock is a time reference: the contract's time then has to pass there.
    pub(crate) own_clock: bool,
}

#[async_trait]
impl Factory for Reached {
    fn name(&self) -> String {
        self.name.into()
    }

    async fn open(&self, namespace: &str) -> Arc<dyn Store> {
        // Sixteen handles at once need a connection each.
        let mut last = None;
        for _ in 0..OPEN_TRIES {
            match snowmint_stores::open(&self.url, namespace).await {
                Err(error) if error.kind().code() == "unavailable" => last = Some(error),
                opened => return opened.unwrap(),
            }
        }
        panic!("{} is never there: {last:?}", self.name)
    }

    async fn pass_ms(&self, ms: u64) {
        if self.own_clock {
            BootTimer.sleep_ms(ms).await;
        }
    }
}

/// Checks a server without a store; `server` stops when it is dropped.
pub(crate) async fn makes_a_store_once(url: String, server: impl Sized) {
    looking_finds_nothing(&url).await;
    let ids = sixteen_openers(&url).await;
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let look = Settings { create_if_missing: false, ..Settings::default() };
    let looked = snowmint_stores::open_with(&url, "default", look).await.unwrap();
    assert_eq!(looked.identity().await.unwrap().id, ids[0]);
    drop((looked, server));
    absence_is_reported_in_time(&url).await;
}

/// Checks that after `empty` removes everything, like a flush of the server, both a running process
/// and a new one get `store_mismatch`: this is another store.
pub(crate) async fn is_another_when_emptied(url: &str, empty: impl AsyncFnOnce()) {
    let new = |name: &str| NewDefinition {
        name: name.into(),
        spec: "{}".into(),
        identity: "{}".into(),
        enabled: None,
    };
    let running = snowmint_stores::open(url, "default").await.unwrap();
    running.define(&new("orders")).await.unwrap();
    let now = UnixMillis::new(1_780_000_000_000);
    let presence = Presence { sample: now, renewals: 0, ttl_ms: 60_000 };
    let (incarnation, name) = (Incarnation::new(7), String::new);
    let member = Member { incarnation, owner: name(), host: name(), process: 1, address: name() };
    running.join(&member, presence, now).await.unwrap();
    let renewed = async || running.renew(incarnation, presence, now).await;
    renewed().await.unwrap();
    let before = running.identity().await.unwrap();
    empty().await;
    for refused in [
        renewed().await.unwrap_err(),
        running.define(&new("bills")).await.unwrap_err(),
        running.list().await.unwrap_err(),
        running.identity().await.unwrap_err(),
        running.fast_forward(&FastForward::default()).await.unwrap_err(),
    ] {
        assert_eq!(refused.kind().code(), "store_mismatch", "{refused:?}");
        for part in ["has lost", "restore it", "fast-forward"] {
            assert!(refused.to_string().contains(part), "{part}: {refused}");
        }
    }
    let started = snowmint_stores::open(url, "default").await.unwrap();
    started.define(&new("bills")).await.unwrap();
    let after = started.identity().await.unwrap();
    let error = started.recall("the journal", &before).await.unwrap_err();
    assert_eq!(error.kind().code(), "store_mismatch", "{error}");
    // The store is not empty any more, and still not the previous one.
    for refused in [
        renewed().await.unwrap_err(),
        running.define(&new("more")).await.unwrap_err(),
        running.identity().await.unwrap_err(),
    ] {
        assert_eq!(refused.kind().code(), "store_mismatch", "{refused:?}");
        for part in [before.store(), after.store()] {
            assert!(refused.to_string().contains(part.as_str()), "{part}: {refused}");
        }
    }
    started.define(&new("others")).await.unwrap();
}

/// Checks tables that `make_older` brings to version 2 under a handle, like the load of a dump that
/// an older version left: the handle says so until a new one has upgraded the tables.
pub(crate) async fn says_that_tables_are_older(url: &str, make_older: impl AsyncFnOnce()) {
    let running = snowmint_stores::open(url, "default").await.unwrap();
    make_older().await;
    let now = UnixMillis::new(1_780_000_000_000);
    let presence = Presence { sample: now, renewals: 0, ttl_ms: 60_000 };
    let name = String::new;
    let incarnation = Incarnation::new(7);
    let member = Member { incarnation, owner: name(), host: name(), process: 1, address: name() };
    for refused in [
        running.join(&member, presence, now).await.unwrap_err(),
        running.members(now).await.unwrap_err(),
    ] {
        assert_eq!(refused.kind().code(), "unsupported", "{refused:?}");
        for part in ["tables of an older version", "start a server"] {
            assert!(refused.to_string().contains(part), "{part}: {refused}");
        }
    }
    snowmint_stores::open(url, "default").await.unwrap();
    at_last(|| running.join(&member, presence, now)).await;
    assert_eq!(running.members(now).await.unwrap().len(), 1);
}

/// Statements that bring the tables to version 2.
pub(crate) const TO_VERSION_2: [&str; 2] =
    ["ALTER TABLE snowmint_member DROP COLUMN status", "UPDATE snowmint_schema SET version = 2"];

/// Checks that a process stops at its next renewal after `empty` removes everything from its store,
/// instead of at the next extension of its window, which is minutes away here.
pub(crate) async fn ends_minting_when_emptied(url: &str, empty: impl AsyncFnOnce()) {
    let settings = NodeSettings { window_ms: 600_000, ..NodeSettings::default() };
    let store = snowmint_stores::open(url, "default").await.unwrap();
    let node = Node::open(store, settings, Platform::system()).await.unwrap();
    node.define("orders", &SourceSpec::from_json("{}").unwrap()).await.unwrap();
    let source = node.source("orders").await.unwrap();
    source.mint(1, None, 30_000).await.unwrap();
    empty().await;
    until("it is not ready", || !node.readiness().ready && source.try_mint().is_err()).await;
    // A member that rejoins gets the same error: nothing is minted until an operator acts.
    let mut refused = source.try_mint().unwrap_err();
    until("it knows why", || {
        refused = source.try_mint().unwrap_err();
        refused.kind().code() == "store_mismatch"
    })
    .await;
    for _ in 0..5 {
        BootTimer.sleep_ms(100).await;
        assert_eq!(source.try_mint().unwrap_err().kind().code(), "store_mismatch");
    }
}

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = BootTimer.elapsed();
    while !is_so() {
        assert!(BootTimer.elapsed().since(begun) < 60_000, "never: {what}");
        BootTimer.sleep_ms(50).await;
    }
}

/// Repeats the attempt until it succeeds, for up to a minute.
pub(crate) async fn at_last<T, E: std::fmt::Debug>(attempt: impl AsyncFn() -> Result<T, E>) -> T {
    let begun = BootTimer.elapsed();
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(error) => {
                assert!(BootTimer.elapsed().since(begun) < 60_000, "{error:?}");
                BootTimer.sleep_ms(100).await;
            }
        }
    }
}

async fn looking_finds_nothing(url: &str) {
    let look = Settings { create_if_missing: false, ..Settings::default() };
    for _ in 0..2 {
        let looked = snowmint_stores::open_with(url, "default", look).await;
        assert_eq!(looked.unwrap_err().kind().code(), "not_found");
    }
}

async fn sixteen_openers(url: &str) -> Vec<String> {
    let open = |url: String| async move {
        let store = snowmint_stores::open(&url, "default").await.unwrap();
        store.identity().await.unwrap().id
    };
    let openers: Vec<_> = (0..16).map(|_| tokio::spawn(open(url.to_owned()))).collect();
    let mut ids = Vec::new();
    for opener in openers {
        ids.push(opener.await.unwrap());
    }
    ids
}

async fn absence_is_reported_in_time(url: &str) {
    let opened =
        tokio::time::timeout(Duration::from_secs(60), snowmint_stores::open(url, "default"));
    let refused = opened.await.expect("a minute is enough").unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
    let mut messages = Vec::new();
    let mut cause = std::error::Error::source(&refused);
    while let Some(error) = cause {
        messages.push(error.to_string());
        cause = error.source();
    }
    // Nothing listens there, which an operator has to know.
    assert!(messages.iter().any(|message| message.contains("onnection refused")), "{messages:?}");
}
