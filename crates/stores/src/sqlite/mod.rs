//! SQLite, compiled in: one file, safe for several processes of one machine.
//!
//! | capability | |
//! |---|---|
//! | whose clock | the caller's |
//! | durable on reply | yes |
//! | safe over failover | no |
//! | presence by | a record that is renewed |
//!
//! **Storage.** Write-ahead log with `synchronous=FULL`: a change is on disk before it is answered.
//! Each handle has one connection; each verb that writes is one `BEGIN IMMEDIATE` transaction, so
//! that writers of all processes queue up, for ten seconds at most. Keep the file on a local disk:
//! the locks of network file systems cannot be trusted. Copy it only with all handles closed, or
//! with SQLite's own backup; a copied or restored file goes with its `-wal` file or without any.
//!
//! **What each row means.** Names are kept per namespace; times are Unix milliseconds by the
//! callers' clocks; marks are as in [`Mark`](snowmint_coord::Mark).
//!
//! | table | one row is |
//! |---|---|
//! | `snowmint_schema` | the version of these tables |
//! | `snowmint_store` | this store: `id`, and how many durable changes it has seen (`writes`) |
//! | `snowmint_namespace` | a namespace: version of its catalog; mark and term of the slots that have no row (zero until an operator moves it forward) |
//! | `snowmint_member` | a member that has joined: who it is, and its last renewal |
//! | `snowmint_pool` | a pool's shape; without reuse, also the `next` number that nobody had |
//! | `snowmint_slot` | a slot that was claimed: everything below `mark` is promised; only `term` may move it; `holder` is the member that has it, NULL once released |
//! | `snowmint_source` | a source's definition; everything below its `mark` is handed out; deleted ones stay |
//!
//! **Going back.** Each handle remembers the highest `writes` it has seen, and looks before each
//! change whether the file at its path is still the one that it opened. The rows that hold marks
//! count their `changes`, and the store's row counts them all (`row_changes`): a file that was put
//! back beside a `-wal` file that is not its own has old rows under a new store row, and the counts
//! differ. All of these are refused until an operator moves the store forward, each namespace of it.

mod failure;
mod file;
mod members;
mod schema;
mod slots;
mod sources;
mod tx;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::catalog::{decide_alter, decide_define, decide_state};
use snowmint_coord::{
    Capabilities, Catalog, ClaimRequest, ClockOf, Definition, Error, Extend, Extended, FastForward,
    GiveBack, Incarnation, Lease, Member, MemberInfo, NewDefinition, Presence, PresenceBy, Release,
    Reserve, Result, Segment, SlotInfo, SourceState, Store, StoreIdentity, random,
};
use snowmint_core::UnixMillis;

use file::File;

/// A handle on one namespace of a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    file: Arc<File>,
}

impl SqliteStore {
    /// What it can do.
    pub const CAPABILITIES: Capabilities = Capabilities {
        clock: ClockOf::Caller,
        durable_on_reply: true,
        safe_over_failover: false,
        presence: PresenceBy::Record,
    };

    /// Opens the file at `path`, and makes it if there is none; its directory must exist.
    ///
    /// # Errors
    /// `Invalid` for an impossible path or namespace, `Unwritable`, `StorageFull`, `Corrupt` when
    /// the file is damaged or no SQLite file, `Unsupported` when a newer Snowmint made it,
    /// `Unavailable` when other processes keep it busy.
    pub async fn open(path: &Path, namespace: &str) -> Result<Self> {
        Self::open_with(path, namespace, None).await
    }

    /// As [`open`](Self::open), where the file may have `pages_max` pages of 4 KiB.
    async fn open_with(path: &Path, namespace: &str, pages_max: Option<u32>) -> Result<Self> {
        snowmint_coord::catalog::check_name("namespace", namespace)
            .map_err(|kind| Error::new("open store", kind))?;
        Ok(Self { file: File::open(path, namespace, pages_max).await? })
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn namespace(&self) -> &str {
        &self.file.namespace
    }

    async fn now(&self) -> Result<Option<UnixMillis>> {
        Ok(None)
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        let tx = self.file.read("identity").await?;
        let identity = tx.identity.clone();
        tx.end(Ok((identity, false))).await
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        let mut tx = self.file.write("join").await?;
        let answer = tx.join(member, presence, now).await;
        tx.end(answer).await
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        let mut tx = self.file.write("renew").await?;
        let answer = tx.renew(member, presence, now).await;
        tx.end(answer).await
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        let mut tx = self.file.write("leave").await?;
        let answer = tx.leave(member, now).await;
        tx.end(answer).await
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        let mut tx = self.file.read("members").await?;
        let answer = tx.members(now).await;
        tx.end(answer.map(|members| (members, false))).await
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        let mut tx = self.file.write("claim").await?;
        let answer = tx.claim(request, now).await;
        tx.end(answer).await
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        let mut tx = self.file.write("extend").await?;
        let answer = tx.extend(items, now).await;
        tx.end(answer).await
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        let mut tx = self.file.write("release").await?;
        let answer = tx.release(release, now).await;
        tx.end(answer).await
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        let mut tx = self.file.read("workers").await?;
        let answer = tx.workers(now).await;
        tx.end(answer.map(|slots| (slots, false))).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        let mut tx = self.file.write("reserve").await?;
        let answer = tx.reserve(reserve).await;
        tx.end(answer).await
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        let mut tx = self.file.write("give_back").await?;
        let answer = tx.give_back(back).await;
        tx.end(answer).await
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        let mut tx = self.file.write("define").await?;
        let answer = tx.change(&new.name, |stored| decide_define(stored, new)).await;
        tx.end(answer).await
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        let mut tx = self.file.write("alter").await?;
        let answer = tx.change(&new.name, |stored| decide_alter(stored, new, if_version)).await;
        tx.end(answer).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        let mut tx = self.file.write("set_state").await?;
        let answer = tx.change(name, |stored| decide_state(stored, name, state)).await;
        tx.end(answer).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        let mut tx = self.file.read("get").await?;
        let answer = tx.existing(name).await;
        tx.end(answer.map(|definition| (definition, false))).await
    }

    async fn list(&self) -> Result<Catalog> {
        let mut tx = self.file.read("list").await?;
        let answer = tx.list().await;
        tx.end(answer.map(|catalog| (catalog, false))).await
    }

    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        let new_id = random::incarnation()?.to_string();
        let mut tx = self.file.write_after_going_back("fast_forward").await?;
        let answer = tx.fast_forward(forward, new_id).await;
        tx.end(answer).await
    }

    async fn close(&self) -> Result<()> {
        self.file.close().await
    }
}

#[cfg(test)]
mod tests;
