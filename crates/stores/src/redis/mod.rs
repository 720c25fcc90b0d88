//! Redis, from version 6.2: one server, or a cluster.
//!
//! | capability | |
//! |---|---|
//! | whose clock | the store's |
//! | durable on reply | yes |
//! | safe over failover | no |
//! | presence by | a record that is renewed |
//!
//! **Atomic step.** A verb reads its rows, decides, and sends one Lua script, which writes only if
//! nothing that the decision depends on has changed since. All keys of a namespace share a hash tag
//! (`snowmint:{NAMESPACE}…`), so a cluster keeps them on one server.
//!
//! The one exception is `reserve`, which per-request sources call for each number: one script
//! counts in one round trip, and its result is checked against the rule afterwards.
//!
//! **Durability.** Opening rejects a server that can lose acknowledged writes: it must have
//! `appendonly yes`, `appendfsync always`, `no-appendfsync-on-rewrite no` and `maxmemory-policy
//! noeviction`. If these settings change later, the next renewal fails. With `?persistence=any` in
//! the URL, any settings are accepted. Each restart and each failover then counts as another store:
//! nothing is granted until an operator accepts it by `snowmint worker recover --other-server`, and
//! recovers it.
//!
//! **Failover.** Replicas lag, so a promoted replica may lack acknowledged writes. If a replica can
//! be promoted (Sentinel, Cluster), use `?persistence=any`, which detects it. A replica that was
//! not promoted is rejected by that name, whether or not it lags.
//!
//! **Permissions.** `EVALSHA`, `EVAL`, `SCRIPT|LOAD`, `HGET`, `HMGET`, `HGETALL`, `HSET`, `HDEL`,
//! `HINCRBY`, `TIME`, `INFO` and `CONFIG|GET` on keys `snowmint:*`; `SELECT` for a database other
//! than 0; `CLUSTER|SLOTS` and `CLUSTER|KEYSLOT` in a cluster.
//!
//! **URL.** `redis://USER:PASSWORD@HOST:PORT/DATABASE`, and
//! `redis-cluster://USER:PASSWORD@HOST:PORT,HOST:PORT` for a cluster.
//!
//! **TLS.** `rediss://` and `rediss-cluster://`, always verified, by the system's authorities or
//! those of `?ca=FILE`; `cert=FILE` and `key=FILE` are our own certificate. The driver uses the
//! cryptography that the program has set for the whole process
//! (`rustls::crypto::CryptoProvider::install_default`); without it, such a URL is rejected.
//!
//! **A lost reply.** If the reply of a script is lost, its outcome is unknown; each verb documents
//! how it may be repeated. Lost connections are reopened, with growing waits.

mod address;
mod count;
mod failure;
mod link;
mod persistence;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use redis::{RedisError, Script};
use snowmint_coord::verbs::{BackendStore, Failure, StoreInfo};
use snowmint_coord::{Capabilities, ClockOf, Error, PresenceBy, Result, Store, opaque_debug};
use snowmint_core::UnixMillis;

use crate::failure::{Class, Label};
use crate::keyed::{
    Batch, Entry, Head, Keyed, Keys, Outcome, REPLICA, ScriptOutcome, ScriptRequest, check_rows,
    name,
};
use crate::opening::Settings;
pub(crate) use address::Address;
pub(crate) use failure::map_error;
pub(crate) use link::RedisLink;

/// Capabilities of Redis.
pub const CAPABILITIES: Capabilities = Capabilities {
    clock: ClockOf::Store,
    durable_on_reply: true,
    safe_over_failover: false,
    presence: PresenceBy::Record,
};

/// One namespace in a server or cluster.
struct Redis {
    link: RedisLink,
    head: Script,
    send: Script,
    reserve: Script,
    yield_to_writers: Script,
    namespace: String,
    /// Name of the hash with the store and the namespace; the names of the other hashes begin with
    /// it.
    root: String,
    label: Label,
    /// Whether each run of the server counts as another store.
    by_run: bool,
    /// Whether the server was seen without a log of writes.
    unlogged: AtomicBool,
    closed: AtomicBool,
}

opaque_debug!(Redis: label, namespace);

/// Opens the store in the server at `url` for one namespace.
///
/// # Errors
/// - `Invalid` for an impossible URL or namespace, or a wrong password.
/// - `UnsafeStore` when the server is set to lose or evict acknowledged writes.
/// - `Unsupported` for TLS in a program without a cryptography provider.
/// - `Unavailable` when the server does not respond.
pub async fn open(url: &str, namespace: &str, settings: Settings) -> Result<Arc<dyn Store>> {
    crate::opening::check_namespace(namespace)?;
    let keys = connect(url, namespace).await?;
    Ok(Arc::new(
        BackendStore::over(Keyed::open(keys, settings.create_if_missing).await?)
            .trying(settings.attempts_max),
    ))
}

async fn connect(url: &str, namespace: &str) -> Result<Redis> {
    let label = Label::of("Redis", url);
    let address = Address::read(url, &label)?;
    let by_run = address.by_run;
    let mapped = |error| map_error(&label, error, Class::of_store);
    let mut link = RedisLink::open(address).await.map_err(mapped)?;
    let root = format!("snowmint:{{{namespace}}}");
    let unlogged = AtomicBool::new(false);
    if !by_run {
        let checked = persistence::check(&mut link, &root, &label, &unlogged).await;
        checked.map_err(|failure| failure.into_error(&label, mapped))?;
    }
    Ok(Redis {
        link,
        head: Script::new(concat!(include_str!("run.lua"), include_str!("head.lua"))),
        send: Script::new(concat!(include_str!("run.lua"), include_str!("send.lua"))),
        reserve: Script::new(concat!(include_str!("run.lua"), include_str!("reserve.lua"))),
        yield_to_writers: Script::new(include_str!("make_way.lua")),
        namespace: namespace.into(),
        root,
        label,
        by_run,
        unlogged,
        closed: AtomicBool::new(false),
    })
}

type KeysResult<T> = Result<T, Failure<RedisError>>;

impl Redis {
    fn link(&self) -> KeysResult<RedisLink> {
        self.check_open()?;
        Ok(self.link.clone())
    }

    /// Returns the hash that has a folder's keys as fields.
    fn hash(&self, folder: &str) -> String {
        if folder.is_empty() { self.root.clone() } else { format!("{}:{folder}", self.root) }
    }
}

/// Parses a field, which holds the key's version, a blank, and the value.
fn entry(key: &str, stored: &str) -> KeysResult<Entry> {
    let parts = stored.split_once(' ').and_then(|(version, value)| {
        let version = version.parse().ok()?;
        Some(Entry { version, value: value.into(), key: key.into(), written: version })
    });
    parts.ok_or_else(|| Failure::Damaged(format!("value of key {key:?} has no version")))
}

/// Converts the reply to `TIME`.
const fn time(seconds: u64, micros: u64) -> UnixMillis {
    UnixMillis::new(seconds.saturating_mul(1000).saturating_add(micros / 1000))
}

fn there(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Returns the server's name as a script reports it. Without one, a server that must be known by
/// its run could be any.
fn server(label: &str, by_run: bool, reported: String) -> KeysResult<Option<String>> {
    if by_run && reported.is_empty() {
        return Err(Failure::from(Error::unsafe_store(format!(
            "{label} does not report run_id and master_replid (INFO), by which a restart is \
             noticed; use a server that reports both"
        ))));
    }
    Ok(there(reported))
}

fn found(key: &str, stored: Option<&str>) -> KeysResult<Option<Entry>> {
    stored.map(|stored| entry(key, stored)).transpose()
}

#[async_trait]
impl Keys for Redis {
    type Error = RedisError;
    const SNAPSHOT: bool = false;
    const BATCH_MAX: usize = 2000;
    const COUNTS: bool = true;

    fn may_cache_rows(&self) -> bool {
        !self.by_run
    }

    fn info(&self) -> StoreInfo<'_> {
        self.label.info(CAPABILITIES, &self.namespace)
    }

    async fn check_settings(&self) -> KeysResult<()> {
        if self.by_run {
            return Ok(());
        }
        persistence::check(&mut self.link()?, &self.root, &self.label, &self.unlogged).await
    }

    async fn head_with(&self, keys: &[String]) -> KeysResult<(Head, Vec<Entry>)> {
        let mut invocation = self.head.key(&self.root);
        invocation.arg(if self.by_run { "run" } else { "" });
        for (folder, field) in keys.iter().map(|key| name::split(key)) {
            invocation.key(self.hash(folder)).arg(field);
        }
        let reply = invocation.invoke_async(&mut self.link()?).await;
        let (writes, store, namespace, seconds, micros, run, rows): (
            u64,
            String,
            String,
            u64,
            u64,
            String,
            Vec<Option<String>>,
        ) = reply.map_err(Failure::Backend)?;
        check_rows(rows.len(), keys.len())?;
        let mut entries = Vec::with_capacity(keys.len());
        for (key, row) in keys.iter().zip(rows) {
            entries.extend(found(key, row.as_deref())?);
        }
        let head = Head {
            writes,
            at: writes,
            // Each namespace has its own write count.
            last_write: None,
            clock: Some(time(seconds, micros)),
            server: server(&self.label, self.by_run, run)?,
            session: None,
            store: found(name::STORE, there(store).as_deref())?,
            namespace: found(name::NAMESPACE, there(namespace).as_deref())?,
        };
        Ok((head, entries))
    }

    async fn get(&self, key: &str, _at: u64) -> KeysResult<Option<Entry>> {
        let (folder, field) = name::split(key);
        let mut command = redis::cmd("HGET");
        command.arg(self.hash(folder)).arg(field);
        let stored: Option<String> =
            command.query_async(&mut self.link()?).await.map_err(Failure::Backend)?;
        found(key, stored.as_deref())
    }

    async fn list(&self, folder: &str, _at: u64) -> KeysResult<Vec<Entry>> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.hash(folder));
        let fields: Vec<(String, String)> =
            command.query_async(&mut self.link()?).await.map_err(Failure::Backend)?;
        fields.iter().map(|(field, value)| entry(&format!("{folder}/{field}"), value)).collect()
    }

    async fn send(&self, batch: &Batch) -> KeysResult<Outcome> {
        let mut hashes = vec![""];
        let mut number_of = |key| {
            let folder = name::split(key).0;
            let at = hashes.iter().position(|known| *known == folder);
            at.unwrap_or_else(|| {
                hashes.push(folder);
                hashes.len() - 1
            }) + 1
        };
        let mut arguments = self.send.prepare_invoke();
        // A replica applies no batch.
        let run = batch.server.as_deref().filter(|server| *server != REPLICA);
        arguments.arg(batch.not_before.get()).arg(run.unwrap_or_default());
        arguments.arg(batch.store.as_deref().unwrap_or_default());
        arguments.arg(batch.after).arg(batch.expected.len());
        for (key, version) in &batch.expected {
            arguments.arg(number_of(key)).arg(name::split(key).1).arg(version);
        }
        for (key, value) in &batch.changes {
            arguments.arg(number_of(key)).arg(name::split(key).1);
            match value {
                Some(value) => arguments.arg("=").arg(value),
                None => arguments.arg("-").arg(""),
            };
        }
        for folder in hashes {
            arguments.key(self.hash(folder));
        }
        let reply: i64 =
            arguments.invoke_async(&mut self.link()?).await.map_err(Failure::Backend)?;
        Ok(u64::try_from(reply).map_or(Outcome::RaceLost, Outcome::Done))
    }

    async fn count(&self, request: &ScriptRequest<'_>) -> KeysResult<ScriptOutcome> {
        self.count(request).await
    }

    async fn yield_to_writers(&self) {
        self.yield_to_writers().await;
    }

    fn map_error(&self, error: RedisError) -> Error {
        map_error(&self.label, error, Class::of_store)
    }

    fn closed(&self) -> &AtomicBool {
        &self.closed
    }
}

#[cfg(test)]
mod tests {
    use snowmint_coord::{BootTimer, Timer as _};

    use super::*;
    use snowmint_coord::verbs::{Access, Backend as _, NamespaceRow, Rows as _};

    #[test]
    fn the_docs_show_the_capabilities() {
        assert!(CAPABILITIES.shown_in(include_str!("mod.rs")));
    }

    #[test]
    fn server_that_reports_no_run_is_rejected() {
        let refused = server("it", true, String::new());
        let Err(Failure::Rejected(refused)) = refused else { panic!("{refused:?}") };
        assert_eq!(refused.kind().code(), "unsafe_store", "{refused}");
        assert!(refused.to_string().contains("run_id and master_replid"), "{refused}");
        for (by_run, reported) in [(true, "a/b"), (false, REPLICA)] {
            let found = server("it", by_run, reported.into()).unwrap();
            assert_eq!(found.as_deref(), Some(reported));
        }
        assert_eq!(server("it", false, String::new()).unwrap(), None);
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
    async fn a_run_has_a_name_only_if_both_parts_are_reported() {
        let redis = snowmint_testkit::servers::Redis::start(&[]);
        let client = redis::Client::open(redis.url()).unwrap();
        let mut hand = client.get_multiplexed_async_connection().await.unwrap();
        let code = concat!(include_str!("run.lua"), "return run() or ''");
        for (section, is_named) in [("", true), ("'server'", false), ("'replication'", false)] {
            // Another section has neither.
            let code = match section {
                "" => code.to_owned(),
                section => code.replace(section, "'clients'"),
            };
            let name: String = Script::new(&code).invoke_async(&mut hand).await.unwrap();
            assert_eq!(!name.is_empty(), is_named, "{section}: {name}");
        }
    }

    #[tokio::test]
    async fn a_bad_url_shows_no_password() {
        for url in ["redis://root:secret@[bad/1", "redis://root:secret@host/?tls=on"] {
            let refused = open(url, "default", Settings::default()).await.unwrap_err();
            assert_eq!(refused.kind().code(), "invalid", "{url}");
            assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
        }
        for url in ["rediss://root:secret@host:6380/0", "rediss-cluster://root:secret@host:6380"] {
            let refused = open(url, "default", Settings::default()).await.unwrap_err();
            assert_eq!(refused.kind().code(), "unsupported", "{url}: no cryptography is installed");
            assert!(refused.to_string().contains("install_default()"), "{refused}");
            assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
        }
    }

    /// Another store may have an equal write count, so that all versions are equal.
    #[tokio::test]
    #[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
    async fn a_step_that_began_in_another_store_writes_nothing() {
        let server = snowmint_testkit::servers::Redis::start(&[]);
        let opened = connect(&server.url(), "default").await.unwrap();
        let store = Keyed::open(opened, true).await.unwrap();
        let mut step = store.begin(Access::Write).await.unwrap();
        let row = NamespaceRow { catalog_version: 7, ..NamespaceRow::default() };
        step.put_namespace(row).await.unwrap();
        let id = step.identity().id.clone();
        let client = redis::Client::open(server.url()).unwrap();
        let mut hand = client.get_multiplexed_async_connection().await.unwrap();
        let key = "snowmint:{default}";
        let ours: String =
            redis::cmd("HGET").arg(key).arg("store").query_async(&mut hand).await.unwrap();
        let theirs = ours.replace(&id, "another");
        let () =
            redis::cmd("HSET").arg(&[key, "store", &theirs]).query_async(&mut hand).await.unwrap();
        let ended = step.commit().await;
        assert!(matches!(ended, Err(Failure::RaceLost)), "{ended:?}");
    }

    /// The step read from an earlier run: the next run may lack later writes of other members.
    #[tokio::test]
    #[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
    async fn a_step_that_began_on_another_run_writes_nothing() {
        let mut server = snowmint_testkit::servers::Redis::start(&[]);
        for (parameters, outlives) in [("?persistence=any", false), ("", true)] {
            let url = format!("{}{parameters}", server.url());
            let namespace = if outlives { "keeps" } else { "any" };
            let store = Keyed::open(connect(&url, namespace).await.unwrap(), true).await.unwrap();
            let mut step = store.begin(Access::Write).await.unwrap();
            step.put_namespace(NamespaceRow { catalog_version: 7, ..NamespaceRow::default() })
                .await
                .unwrap();
            server.restart();
            // Another step finds the broken connection.
            let begun = BootTimer.elapsed();
            while store.begin(Access::Read).await.is_err() {
                assert!(BootTimer.elapsed().since(begun) < 60_000, "it is not found again");
                BootTimer.sleep_ms(20).await;
            }
            let ended = step.commit().await;
            assert_eq!(ended.is_ok(), outlives, "{parameters}: {ended:?}");
            assert!(outlives || matches!(ended, Err(Failure::RaceLost)), "{ended:?}");
        }
    }
}
