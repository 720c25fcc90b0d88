//! etcd, from version 3.4: a cluster that agrees on every write.
//!
//! | capability | |
//! |---|---|
//! | whose clock | the caller's |
//! | durable on reply | yes |
//! | safe over failover | yes |
//! | presence by | a record that is renewed |
//!
//! **Atomic step.** A verb reads its rows at one revision, decides, and sends one transaction,
//! which writes only if none of these rows has a newer revision. A transaction may name 128 keys
//! (`--max-txn-ops`), so claims, extensions and releases of more slots come in parts. The clock
//! values of one worker must stay together: a layout with more than 6 clock bits is rejected.
//!
//! **Durability.** A majority has written to disk before the reply. Reads are linearizable.
//!
//! **Identity.** The cluster's ID is stored with the marks. After a restore into another cluster,
//! the store grants nothing until an operator accepts it by `snowmint worker recover
//! --other-server`, and recovers it. The ID is derived from the cluster's token and members: restore with a new
//! `--initial-cluster-token`. A restored snapshot sets revisions back. The store's write count is
//! the revision of the namespace's last write, so writes of others do not hide that.
//!
//! **Permissions.** Read and write for the keys from `/PREFIX/snowmint/`, without a prefix from
//! `/snowmint/`.
//!
//! **URL.** `etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX`, with TLS
//! `etcds://HOST:PORT/PREFIX?ca=FILE&cert=FILE&key=FILE`; without `ca`, the system's authorities
//! are trusted.
//!
//! **A lost reply.** If the reply to a transaction is lost, its outcome is unknown; each verb
//! documents how it may be repeated. The next call reopens a lost connection.

mod client;
mod message;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use snowmint_coord::verbs::{BackendStore, Failure, StoreInfo};
use snowmint_coord::{Capabilities, ClockOf, Error, PresenceBy, Result, Store, opaque_debug};
use tonic::{Code, Status};

use crate::cluster_url::ClusterUrl;
use crate::failure::{Class, Label};
use crate::keyed::{Batch, Entry, Head, Keyed, Keys, Outcome, check_rows, name};
use crate::opening::Settings;
use client::EtcdClient;
use message::{
    Compare, CompareResult, CompareTarget, DeleteRangeRequest, Is, KeyValue, PutRequest,
    RangeRequest, Request, RequestOp, TxnRequest, TxnResponse,
};

/// Capabilities of etcd.
pub const CAPABILITIES: Capabilities = Capabilities {
    clock: ClockOf::Caller,
    durable_on_reply: true,
    safe_over_failover: true,
    presence: PresenceBy::Record,
};

/// Default port of etcd.
const PORT: u16 = 2379;
const FORM: &str = "etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX, with TLS etcds://HOST:PORT/PREFIX?ca=FILE&cert=FILE&key=FILE";

/// One namespace in a cluster.
struct Etcd {
    client: EtcdClient,
    namespace: String,
    /// Common prefix of all its keys.
    prefix: String,
    label: Label,
    closed: AtomicBool,
}

opaque_debug!(Etcd: label, namespace);

/// Opens the store in the cluster at `url` for one namespace.
///
/// # Errors
/// `Invalid` for an impossible URL or namespace, or a wrong password; `Unavailable` when no server
/// responds.
pub async fn open(url: &str, namespace: &str, settings: Settings) -> Result<Arc<dyn Store>> {
    crate::opening::check_namespace(namespace)?;
    let label = Label::of("etcd", url);
    let cluster_url = ClusterUrl::parse(url, PORT, &label, FORM)?;
    let prefix = format!("{}/snowmint/{namespace}/", cluster_url.path);
    let keys = Etcd {
        client: EtcdClient::new(cluster_url)?,
        namespace: namespace.into(),
        prefix,
        label,
        closed: AtomicBool::new(false),
    };
    Ok(Arc::new(
        BackendStore::over(Keyed::open(keys, settings.create_if_missing).await?)
            .trying(settings.attempts_max),
    ))
}

type KeysResult<T> = Result<T, Failure<Status>>;

impl Etcd {
    fn full(&self, key: &str) -> Vec<u8> {
        format!("{}{key}", self.prefix).into_bytes()
    }

    fn entry(&self, stored: KeyValue) -> KeysResult<Entry> {
        let key = String::from_utf8(stored.key)
            .map_err(|_| Failure::Damaged("a key is not UTF-8".into()))?;
        let key = key.strip_prefix(&self.prefix).unwrap_or(&key).to_owned();
        let value = String::from_utf8(stored.value)
            .map_err(|_| Failure::Damaged(format!("value of key {key:?} is not UTF-8")))?;
        let version = number(stored.mod_revision)?;
        Ok(Entry { key, value, version, written: version })
    }

    async fn range(&self, range: RangeRequest) -> KeysResult<Vec<Entry>> {
        self.check_open()?;
        match self.client.range(&range).await {
            Ok(reply) => reply.kvs.into_iter().map(|stored| self.entry(stored)).collect(),
            // Compacted since the step began.
            Err(status) if status.code() == Code::OutOfRange => Err(Failure::RaceLost),
            Err(status) => Err(Failure::Backend(status)),
        }
    }

    async fn transact(&self, request: &TxnRequest) -> KeysResult<(TxnResponse, u64, u64)> {
        self.check_open()?;
        let reply = self.client.transact(request).await.map_err(Failure::Backend)?;
        let header = reply.header.ok_or_else(|| Failure::Damaged("reply has no header".into()))?;
        Ok((reply, number(header.revision)?, header.cluster_id))
    }
}

/// Returns the label of a cluster.
fn cluster(id: u64) -> String {
    format!("cluster {id:x}")
}

fn number(revision: i64) -> KeysResult<u64> {
    u64::try_from(revision)
        .map_err(|_| Failure::Damaged(format!("revision is {revision}, expected 0 or more")))
}

fn revision(number: u64) -> i64 {
    // Each number came from a revision.
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn operation(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}

/// Returns the transaction that applies a batch to the keys with this prefix.
fn transaction(prefix: &str, batch: &Batch) -> TxnRequest {
    let full = |key: &str| format!("{prefix}{key}").into_bytes();
    let compare = |(key, version): (&String, &u64)| Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Mod.into(),
        key: full(key),
        is: Some(Is::ModRevision(revision(*version))),
    };
    let store = batch.store.as_ref().map(|value| Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Value.into(),
        key: full(name::STORE),
        is: Some(Is::Value(value.clone().into_bytes())),
    });
    let written = (name::WRITES.to_owned(), Some(String::new()));
    let last_write = (!batch.changes.is_empty()).then_some((&written.0, &written.1));
    let change = |(key, value): (&String, &Option<String>)| {
        let key = full(key);
        operation(match value {
            Some(value) => Request::Put(PutRequest { key, value: value.clone().into_bytes() }),
            None => Request::Delete(DeleteRangeRequest { key }),
        })
    };
    let has_all = batch.after.checked_sub(1).map(|before| Compare {
        result: CompareResult::Greater.into(),
        target: CompareTarget::Mod.into(),
        key: full(name::WRITES),
        is: Some(Is::ModRevision(revision(before))),
    });
    TxnRequest {
        compare: batch.expected.iter().map(compare).chain(store).chain(has_all).collect(),
        success: batch.changes.iter().chain(last_write).map(change).collect(),
    }
}

#[async_trait]
impl Keys for Etcd {
    type Error = Status;
    const SNAPSHOT: bool = true;
    const BATCH_MAX: usize = 128;

    fn info(&self) -> StoreInfo<'_> {
        self.label.info(CAPABILITIES, &self.namespace)
    }

    async fn head_with(&self, keys: &[String]) -> KeysResult<(Head, Vec<Entry>)> {
        let read = |key: &str| {
            let key = self.full(key);
            operation(Request::Range(RangeRequest { key, ..RangeRequest::default() }))
        };
        let first = [name::STORE, name::NAMESPACE, name::WRITES].into_iter();
        let success = first.chain(keys.iter().map(String::as_str)).map(read).collect();
        let request = TxnRequest { success, ..TxnRequest::default() };
        let (reply, at, cluster) = self.transact(&request).await?;
        check_rows(reply.responses.len(), request.success.len())?;
        let mut found = Vec::with_capacity(reply.responses.len());
        for response in reply.responses {
            let first = response.range.and_then(|range| range.kvs.into_iter().next());
            found.push(first.map(|stored| self.entry(stored)).transpose()?);
        }
        let mut found = found.into_iter();
        let mut next = || found.next().flatten();
        let (store, namespace, last) = (next(), next(), next());
        let server = Some(self::cluster(cluster));
        let writes = last.map_or(0, |entry| entry.version);
        let last_write = Some(writes);
        let (clock, session) = (None, None);
        let head = Head { writes, at, last_write, clock, server, session, store, namespace };
        Ok((head, found.flatten().collect()))
    }

    async fn get(&self, key: &str, at: u64) -> KeysResult<Option<Entry>> {
        let range =
            RangeRequest { key: self.full(key), revision: revision(at), range_end: Vec::new() };
        Ok(self.range(range).await?.pop())
    }

    async fn list(&self, folder: &str, at: u64) -> KeysResult<Vec<Entry>> {
        let key = self.full(&format!("{folder}/"));
        // '0' is the character after '/'.
        let range_end = self.full(&format!("{folder}0"));
        self.range(RangeRequest { key, range_end, revision: revision(at) }).await
    }

    async fn send(&self, batch: &Batch) -> KeysResult<Outcome> {
        let request = transaction(&self.prefix, batch);
        let (reply, writes, cluster) = self.transact(&request).await?;
        let found = self::cluster(cluster);
        match &batch.server {
            // The transaction may have moved marks on that cluster, but the error grants nothing.
            Some(expected) if *expected != found => {
                Err(Failure::from(Error::store_mismatch(format!(
                    "{} is {found}, but its data belongs to {expected}; accept it (snowmint worker \
                     recover --other-server), or move it forward while no server runs (snowmint \
                     worker fast-forward)",
                    self.label
                ))))
            }
            _ if reply.succeeded => Ok(Outcome::Done(writes)),
            _ => Ok(Outcome::RaceLost),
        }
    }

    fn map_error(&self, error: Status) -> Error {
        map_error(&self.label, error)
    }

    fn closed(&self) -> &AtomicBool {
        &self.closed
    }
}

/// Maps etcd's error to an error of the domain, by its code:
/// <https://github.com/etcd-io/etcd/blob/main/api/v3rpc/rpctypes/error.go>.
fn map_error(label: &str, status: Status) -> Error {
    let is_anonymous =
        status.code() == Code::InvalidArgument && status.message().contains("user name is empty");
    let error = if is_anonymous {
        Error::invalid(format!("{label} needs a user and a password; add them to the URL"))
    } else {
        class(&status).of_store(label)
    };
    error.with_source(status)
}

fn class(status: &Status) -> Class {
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
            Class::Unavailable
        }
        Code::ResourceExhausted if status.message().contains("database space") => {
            Class::StorageFull
        }
        Code::ResourceExhausted => Class::Unavailable,
        Code::PermissionDenied => Class::PermissionDenied,
        Code::Unauthenticated => Class::Credentials,
        Code::InvalidArgument if status.message().contains("authentication failed") => {
            Class::Credentials
        }
        Code::DataLoss => Class::Corrupt,
        _ => Class::Internal,
    }
}

#[cfg(test)]
mod tests;
