//! ZooKeeper, from version 3.6: an ensemble that agrees on every write.
//!
//! | capability | |
//! |---|---|
//! | whose clock | the caller's |
//! | durable on reply | yes |
//! | safe over failover | yes |
//! | presence by | a session |
//!
//! **Atomic step.** A verb reads its rows, decides, and sends one multi-operation, which succeeds
//! only if no node that the decision depends on has another version. A claim that loses the race
//! for its number reads again and claims another.
//!
//! **Presence.** Each member has an ephemeral node, made before its record: a member without a
//! session is not live, however fresh its record. If a session ended while its process was paused,
//! the next renewal opens another.
//!
//! **Durability.** A majority has written to disk before the reply. A server replies with the state
//! that it knows. So if a verb that could write finds nothing to write, it has the ensemble confirm
//! that state.
//!
//! **Identity.** ZooKeeper has no ID of the ensemble. Its transaction numbers, which an older copy
//! sets back, are the store's write count.
//!
//! **Permissions.** Everything below `/snowmint`, in the path that the URL names. With a user in
//! the URL (digest authentication), only that user may use the nodes.
//!
//! **URL.** `zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/PATH`. TLS is not supported in this
//! version.
//!
//! **A lost reply.** If the reply to an operation is lost, its outcome is unknown; each verb
//! documents how it may be repeated. Lost connections and sessions are reopened.

mod failure;
mod link;
mod path;
mod url;

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use snowmint_coord::verbs::{BackendStore, Failure, StoreInfo};
use snowmint_coord::{
    Capabilities, ClockOf, Error as CoordError, PresenceBy, Result, Store, lock, opaque_debug,
};
use zookeeper_client::{
    Acls, Client, CreateMode, CreateOptions, Error, MultiReadResult, MultiWriteError,
    MultiWriteResult, MultiWriter, Stat,
};

use crate::cluster_url::ClusterUrl;
use crate::failure::Label;
use crate::keyed::name::WRITES;
use crate::keyed::{Batch, Entry, Head, Keyed, Keys, Outcome, check_rows, name};
use crate::opening::Settings;
use failure::map_error;
pub(crate) use link::{SessionLink, within};
use path::path;
pub(crate) use url::{FORM, PORT};

/// Capabilities of ZooKeeper.
pub const CAPABILITIES: Capabilities = Capabilities {
    clock: ClockOf::Caller,
    durable_on_reply: true,
    safe_over_failover: true,
    presence: PresenceBy::Session,
};

/// The folder of ephemeral nodes, one for each member with a session.
const SESSIONS: &str = "session";
/// Folders that always exist.
const FOLDERS: [&str; 5] = ["member", "pool", "slot", "source", SESSIONS];
/// Version at which a node is replaced. ZooKeeper counts the writes of a node in 31 bits, which a
/// source that reserves one number at a time uses up in weeks. The same step then deletes the node
/// and creates it, and its version restarts.
const VERSION_MAX: i32 = 1 << 30;
/// Most nodes in one read: a reply has at most a mebibyte.
const READ_MAX: usize = 500;

/// One namespace in an ensemble.
struct Zookeeper {
    link: SessionLink,
    namespace: String,
    /// The path of the namespace.
    base: String,
    label: Label,
    closed: AtomicBool,
    /// Version at which a node is replaced instead of written.
    version_max: i32,
    /// Folders that were seen or made.
    folders: Mutex<HashSet<String>>,
}

opaque_debug!(Zookeeper: label, namespace);

/// Opens the store in the ensemble at `url` for one namespace.
///
/// # Errors
/// `Invalid` for an impossible URL or namespace, or a wrong password; `StorePermissionDenied`
/// without the permissions; `Unavailable` when no server responds.
pub async fn open(url: &str, namespace: &str, settings: Settings) -> Result<Arc<dyn Store>> {
    crate::opening::check_namespace(namespace)?;
    let label = Label::of("ZooKeeper", url);
    let cluster_url = ClusterUrl::parse(url, PORT, &label, FORM)?;
    if !cluster_url.parameters.is_empty() {
        return Err(CoordError::invalid(format!("{label}: URL takes no parameters; write {FORM}")));
    }
    let keys = Zookeeper {
        link: SessionLink::new(&cluster_url),
        namespace: namespace.into(),
        base: path(&format!("{}/snowmint", cluster_url.path), namespace),
        label,
        closed: AtomicBool::new(false),
        version_max: VERSION_MAX,
        folders: Mutex::default(),
    };
    if let Err(error) = keys.link.client().await {
        let reason = match &error {
            Error::Timeout | Error::NoHosts => Some(keys.link.connection_error().await),
            _ => None,
        };
        let refused = map_error(&keys.label, error);
        return Err(match reason {
            Some(reason) => refused.with_source(reason),
            None => refused,
        });
    }
    if settings.create_if_missing {
        let prepared = keys.prepare().await;
        prepared.map_err(|failure| {
            failure.into_error(&keys.label, |error| map_error(&keys.label, error))
        })?;
    }
    Ok(Arc::new(
        BackendStore::over(Keyed::open(keys, settings.create_if_missing).await?)
            .trying(settings.attempts_max),
    ))
}

type KeysResult<T> = Result<T, Failure<Error>>;

impl Zookeeper {
    async fn client(&self) -> KeysResult<Client> {
        self.check_open()?;
        self.link.client().await.map_err(Failure::Backend)
    }

    fn options(&self, mode: CreateMode) -> CreateOptions<'static> {
        let acls = if self.link.has_user() { Acls::creator_all() } else { Acls::anyone_all() };
        mode.with_acls(acls)
    }

    /// Makes the nodes that always exist.
    async fn prepare(&self) -> KeysResult<()> {
        let client = self.client().await?;
        for folder in FOLDERS {
            self.make_folder(&client, folder).await?;
        }
        let options = self.options(CreateMode::Persistent);
        match within(client.create(&path(&self.base, WRITES), b"", &options)).await {
            Ok(_) | Err(Error::NodeExists) => Ok(()),
            Err(error) => Err(Failure::Backend(error)),
        }
    }

    async fn make_folder(&self, client: &Client, folder: &str) -> KeysResult<()> {
        let known = || lock(&self.folders);
        if known().contains(folder) {
            return Ok(());
        }
        let options = self.options(CreateMode::Persistent);
        within(client.mkdir(&path(&self.base, folder), &options))
            .await
            .map_err(Failure::Backend)?;
        known().insert(folder.into());
        Ok(())
    }

    /// Makes the node that shows that a member's session is live.
    async fn show_session(&self, client: &Client, member: &str) -> KeysResult<()> {
        let path = path(&self.base, &format!("{SESSIONS}/{member}"));
        if let Some(stat) = within(client.check_stat(&path)).await.map_err(Failure::Backend)? {
            if stat.ephemeral_owner == client.session_id().0 {
                return Ok(());
            }
            // The node belongs to an earlier session, which would delete it when it ends.
            gone(within(client.delete(&path, None)).await)?;
        }
        match within(client.create(&path, b"", &self.options(CreateMode::Ephemeral))).await {
            Ok(_) => Ok(()),
            // Another handle of the same member was faster.
            Err(Error::NodeExists) => Err(Failure::RaceLost),
            Err(error) => Err(Failure::Backend(error)),
        }
    }

    /// Adds a batch's conditions and changes.
    fn fill(&self, writer: &mut MultiWriter<'_>, batch: &Batch) -> Result<(), Error> {
        let options = self.options(CreateMode::Persistent);
        for (key, expected) in &batch.expected {
            let path = path(&self.base, key);
            match (batch.changes.get(key), *expected) {
                // ZooKeeper has no check that a node is missing. Where that matters, the node is
                // created.
                (None, 0) => {}
                (None, expected) => writer.add_check_version(&path, version(expected))?,
                (Some(Some(value)), 0) => writer.add_create(&path, value.as_bytes(), &options)?,
                (Some(Some(value)), expected) if version(expected) < self.version_max => {
                    writer.add_set_data(&path, value.as_bytes(), Some(version(expected)))?;
                }
                (Some(Some(value)), expected) => {
                    writer.add_delete(&path, Some(version(expected)))?;
                    writer.add_create(&path, value.as_bytes(), &options)?;
                }
                (Some(None), expected) => writer.add_delete(&path, Some(version(expected)))?,
            }
        }
        if !batch.changes.is_empty() {
            writer.add_set_data(&path(&self.base, WRITES), b"", None)?;
        }
        Ok(())
    }

    /// Makes the folders and session nodes that a batch needs; they are not part of the batch.
    async fn make_ready(&self, client: &Client, batch: &Batch) -> KeysResult<()> {
        for (key, value) in &batch.changes {
            let (folder, node) = name::split(key);
            if value.is_some() && folder == name::MEMBERS {
                self.show_session(client, node).await?;
            }
            if value.is_some() && !folder.is_empty() {
                self.make_folder(client, folder).await?;
            }
        }
        Ok(())
    }

    /// Reads nodes; missing ones are left out.
    async fn read(&self, client: &Client, keys: &[String]) -> KeysResult<Vec<(Entry, Stat)>> {
        let mut reader = client.new_multi_reader();
        for key in keys {
            reader.add_get_data(&path(&self.base, key)).map_err(Failure::Backend)?;
        }
        let results = within(reader.commit()).await.map_err(Failure::Backend)?;
        check_rows(results.len(), keys.len())?;
        let mut entries = Vec::with_capacity(results.len());
        for (key, result) in keys.iter().zip(results) {
            match result {
                MultiReadResult::Data { data, stat } => {
                    entries.push((entry(key, data, stat)?, stat));
                }
                MultiReadResult::Error { err: Error::NoNode } => {}
                MultiReadResult::Error { err } => return Err(Failure::Backend(err)),
                _ => return Err(Failure::Damaged("reply has an unexpected kind".into())),
            }
        }
        Ok(entries)
    }
}

fn entry(key: &str, data: Vec<u8>, stat: Stat) -> KeysResult<Entry> {
    let value = String::from_utf8(data)
        .map_err(|_| Failure::Damaged(format!("value of key {key:?} is not UTF-8")))?;
    let version = entry_version(stat.version);
    Ok(Entry { key: key.into(), value, version, written: number(stat.mzxid)? })
}

/// Returns the version of the entry for a node. Versions begin at 0, which means "none" here. The
/// version of a very often written node restarts after 32 bits.
fn entry_version(of_node: i32) -> u64 {
    u64::from(of_node.cast_unsigned()) + 1
}

/// Returns whether one version of a node came after another.
const fn is_later(version: u64, than: u64) -> bool {
    let ahead = version.wrapping_sub(than) & 0xffff_ffff;
    ahead != 0 && ahead < 0x8000_0000
}

/// Returns the version of the node from which an entry was made.
fn version(of_entry: u64) -> i32 {
    u32::try_from(of_entry.saturating_sub(1)).unwrap_or(u32::MAX).cast_signed()
}

fn number(zxid: i64) -> KeysResult<u64> {
    u64::try_from(zxid)
        .map_err(|_| Failure::Damaged(format!("transaction ID is {zxid}, expected 0 or more")))
}

/// Accepts a node that was deleted already.
fn gone(deleted: Result<(), Error>) -> KeysResult<()> {
    match deleted {
        Ok(()) | Err(Error::NoNode) => Ok(()),
        Err(error) => Err(Failure::Backend(error)),
    }
}

#[async_trait]
impl Keys for Zookeeper {
    type Error = Error;
    const SNAPSHOT: bool = false;
    const BATCH_MAX: usize = 1000;

    /// ZooKeeper cannot compare the count of writes in a transaction, so each step reads it first.
    fn may_cache_rows(&self) -> bool {
        false
    }

    fn info(&self) -> StoreInfo<'_> {
        self.label.info(CAPABILITIES, &self.namespace)
    }

    /// Brings this server up to date with the ensemble first, since it may lag behind another
    /// server's replies.
    async fn catch_up(&self) -> KeysResult<()> {
        within(self.client().await?.sync(&path(&self.base, WRITES))).await.map_err(Failure::Backend)
    }

    async fn head_with(&self, keys: &[String]) -> KeysResult<(Head, Vec<Entry>)> {
        let first = [name::STORE, name::NAMESPACE, WRITES].map(String::from);
        let client = self.client().await?;
        let mut head = Head {
            writes: 0,
            at: 0,
            last_write: None,
            clock: None,
            server: None,
            session: Some(client.session_id().0),
            store: None,
            namespace: None,
        };
        let mut rows = Vec::with_capacity(keys.len());
        for (entry, stat) in self.read(&client, &[&first, keys].concat()).await? {
            match entry.key.as_str() {
                name::STORE => head.store = Some(entry),
                name::NAMESPACE => head.namespace = Some(entry),
                WRITES => {
                    head.writes = number(stat.mzxid)?;
                    (head.at, head.last_write) = (head.writes, Some(entry.version));
                }
                _ => rows.push(entry),
            }
        }
        Ok((head, rows))
    }

    async fn get(&self, key: &str, _at: u64) -> KeysResult<Option<Entry>> {
        let client = self.client().await?;
        match within(client.get_data(&path(&self.base, key))).await {
            Ok((data, stat)) => Ok(Some(entry(key, data, stat)?)),
            Err(Error::NoNode) => Ok(None),
            Err(error) => Err(Failure::Backend(error)),
        }
    }

    async fn list(&self, folder: &str, _at: u64) -> KeysResult<Vec<Entry>> {
        let client = self.client().await?;
        let nodes = match within(client.list_children(&path(&self.base, folder))).await {
            Ok(nodes) => nodes,
            Err(Error::NoNode) => return Ok(Vec::new()),
            Err(error) => return Err(Failure::Backend(error)),
        };
        let keys: Vec<String> =
            nodes.iter().map(|node| format!("{folder}/{}", path::name(node))).collect();
        let mut entries = Vec::with_capacity(keys.len());
        for keys in keys.chunks(READ_MAX) {
            let read = self.read(&client, keys).await?;
            entries.extend(read.into_iter().map(|(entry, _)| entry));
        }
        Ok(entries)
    }

    async fn sessions(&self) -> KeysResult<Option<HashSet<String>>> {
        let client = self.client().await?;
        let nodes = within(client.list_children(&path(&self.base, SESSIONS)))
            .await
            .map_err(Failure::Backend)?;
        Ok(Some(nodes.into_iter().collect()))
    }

    async fn send(&self, batch: &Batch) -> KeysResult<Outcome> {
        let client = self.client().await?;
        if batch.session.is_some_and(|session| session != client.session_id().0) {
            return Ok(Outcome::RaceLost);
        }
        self.make_ready(&client, batch).await?;
        let mut writer = client.new_multi_writer();
        self.fill(&mut writer, batch).map_err(Failure::Backend)?;
        let results = match within(writer.commit()).await {
            Ok(results) => results,
            Err(MultiWriteError::OperationFailed {
                source: Error::BadVersion | Error::NoNode | Error::NodeExists,
                ..
            }) => return Ok(Outcome::RaceLost),
            Err(error) => return Err(Failure::Backend(Error::from(error))),
        };
        for key in batch.changes.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key) {
            if let (name::MEMBERS, member) = name::split(key) {
                let path = path(&self.base, &format!("{SESSIONS}/{member}"));
                gone(within(client.delete(&path, None)).await)?;
            }
        }
        match results.last() {
            Some(MultiWriteResult::SetData { stat }) => {
                let writes = number(stat.mzxid)?;
                // A request that waited for a connection may reach a server that was restored.
                let has_all =
                    batch.after == 0 || is_later(entry_version(stat.version), batch.after);
                Ok(if has_all { Outcome::Done(writes) } else { Outcome::Short(writes) })
            }
            _ => Ok(Outcome::Done(0)),
        }
    }

    fn map_error(&self, error: Error) -> CoordError {
        map_error(&self.label, error)
    }

    fn closed(&self) -> &AtomicBool {
        &self.closed
    }

    async fn hang_up(&self) {
        self.link.close().await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use snowmint_coord::{
        ClaimRequest, Extend, Incarnation, Lease, Mark, Member, NewDefinition, Pool, Preference,
        Presence, Reserve, Reuse,
    };
    use snowmint_core::UnixMillis;

    use super::*;

    #[test]
    fn versions_are_compared_past_their_restart() {
        assert!(is_later(2, 1) && !is_later(1, 1) && !is_later(1, 2));
        // Versions of entries are 1 to 2^32.
        assert!(is_later(1, 1 << 32) && !is_later(1 << 32, 1));
    }

    #[test]
    fn the_docs_show_the_capabilities() {
        assert!(CAPABILITIES.shown_in(include_str!("mod.rs")));
    }

    /// A node written as often as allowed continues with a restarted version, and a writer that
    /// read it before gets `RaceLost`.
    #[tokio::test]
    #[cfg_attr(not(feature = "real-servers"), ignore = "needs ZooKeeper: --features real-servers")]
    async fn zookeeper_versions_do_not_run_out() {
        let server = snowmint_testkit::servers::Zookeeper::start();
        let cluster_url = ClusterUrl::parse(&server.url(), PORT, "it", FORM).unwrap();
        let keys = Zookeeper {
            link: SessionLink::new(&cluster_url),
            namespace: "default".into(),
            base: "/snowmint/default".into(),
            label: Label::of("it", "zookeeper:"),
            closed: AtomicBool::new(false),
            version_max: 3,
            folders: Mutex::default(),
        };
        keys.prepare().await.unwrap();
        let key = "source/orders".to_owned();
        let write = async |expected: u64, value: &str| {
            let expected = [(key.clone(), expected)].into();
            let changes = [(key.clone(), Some(value.to_owned()))].into();
            keys.send(&Batch { expected, changes, ..Batch::default() }).await.unwrap()
        };
        let (mut version, mut restarts) = (0, 0);
        for number in 0..20 {
            let value = number.to_string();
            let Outcome::Done(_) = write(version, &value).await else { panic!("{number}") };
            let entry = keys.get(&key, 0).await.unwrap().unwrap();
            assert_eq!(entry.value, value);
            if version > 0 {
                assert_eq!(write(version, "late").await, Outcome::RaceLost, "{number}");
            }
            restarts += u64::from(entry.version < version);
            version = entry.version;
            assert!(version <= 4, "{version}");
        }
        assert_eq!(restarts, 4);
        keys.close().await;
    }

    /// Returns how many requests the server has received, this one and pings included.
    fn received(url: &str) -> u64 {
        let mut connection = TcpStream::connect(url.strip_prefix("zookeeper://").unwrap()).unwrap();
        connection.write_all(b"srvr").unwrap();
        let mut reply = String::new();
        connection.read_to_string(&mut reply).unwrap();
        let count = reply.lines().find_map(|line| line.strip_prefix("Received: "));
        count.unwrap().parse().unwrap()
    }

    /// An extend and a reserve read once and write once. A renewal also looks at the session's node.
    #[tokio::test]
    #[cfg_attr(not(feature = "real-servers"), ignore = "needs ZooKeeper: --features real-servers")]
    async fn frequent_verbs_read_once_from_zookeeper() {
        const ROUNDS: u64 = 50;
        // Pings of the session, and the requests of this test itself.
        const OTHERS_MAX: u64 = 10;
        let server = snowmint_testkit::servers::Zookeeper::start();
        let store = open(&server.url(), "default", Settings::default()).await.unwrap();
        let now = UnixMillis::new(1_000_000);
        let incarnation = Incarnation::new(1);
        let (owner, host, address) = (String::new(), String::new(), String::new());
        let member = Member { incarnation, owner, host, process: 1, address };
        let presence = |renewals| Presence { sample: now, renewals, ttl_ms: 600_000 };
        store.join(&member, presence(0), now).await.unwrap();
        let claim = ClaimRequest {
            pool: Pool { name: "only".into(), slots: 1, group: 1, reuse: Reuse::Recycle },
            member: incarnation,
            owner: String::new(),
            count: 1,
            preference: Preference::Any,
            supersedes: None,
            mark_at_most: Mark::from(now),
            request: 7,
        };
        let Lease { pool, slot, term, mark, .. } =
            store.claim(&claim, now).await.unwrap().remove(0);
        let new = NewDefinition {
            name: "a".into(),
            spec: "{}".into(),
            identity: "{}".into(),
            enabled: None,
        };
        let definition_version = store.define(&new).await.unwrap().version;

        let before = received(&server.url());
        for round in 0..ROUNDS {
            let (from, to) = (Mark::new(mark.get() + round), Mark::new(mark.get() + round + 1));
            let (pool, holder, request) = (pool.clone(), Some(incarnation), round + 1);
            let extend = Extend { pool, slot, term, holder, from, to, request, ahead_max_ms: None };
            store.extend(&[extend], now).await.unwrap().remove(0).unwrap();
        }
        let extended = received(&server.url());
        for round in 0..ROUNDS {
            store.renew(incarnation, presence(round + 1), now).await.unwrap();
        }
        let renewed = received(&server.url());
        for _ in 0..ROUNDS {
            let source = "a".into();
            let reserve = Reserve { source, length: 5, definition_version, within: None };
            store.reserve(&reserve).await.unwrap();
        }
        let reserved = received(&server.url());
        for (verb, count, requests) in [
            ("extend", extended - before, 2),
            ("renew", renewed - extended, 3),
            ("reserve", reserved - renewed, 2),
        ] {
            let least = requests * ROUNDS;
            assert!((least..=least + OTHERS_MAX).contains(&count), "{verb}: {count}");
        }
    }
}
