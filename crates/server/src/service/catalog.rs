//! Definitions and slots: what administrators see and change. Each change leaves a line in the audit trail.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value};
use snowmint_coord::catalog::check_version;
use snowmint_coord::spec::SourceSpec;
use snowmint_coord::{
    DefinedRoom, Listed, NewStripe, Reserve, Segment, SlotInfo, SourceInfo, Store,
};
use snowmint_wire::error::Code;

use super::merge::{merge, without_leftovers};
use super::{Error, Hold, Service, check_source_name};
use crate::access::Right;

/// The key that every source has.
const ENABLED: &str = "enabled";

impl Service {
    /// Defines a source, or answers the definition that there is when it is the same.
    ///
    /// # Errors
    /// Without the admin right over it, or over what it names; when the keys are not possible, or disagree with a
    /// definition of that name.
    pub async fn define(&self, name: &str, spec: &SourceSpec) -> Result<SourceInfo, Error> {
        let defined = self.define_or_not(name, spec).await;
        self.tried("defined", name, defined)
    }

    async fn define_or_not(&self, name: &str, spec: &SourceSpec) -> Result<SourceInfo, Error> {
        check_source_name(name)?;
        self.admit(Right::Admin, name).await?;
        let before = self.node.definition(name).await.ok();
        self.may_name(before.as_ref().map(|before| &before.spec), spec)?;
        let room = self.room_for(&**self.node.store(), &DefinedRoom::of(name, spec)).await?;
        let defined = self.node.define(name, spec).await?;
        drop(room);
        self.changed("defined", name, before.as_ref(), Some(&defined));
        Ok(defined)
    }

    /// Changes keys of a source: those given, as a JSON merge patch (RFC 7396); the others stay, but for
    /// those that mean nothing any more. With `if_version`, only if the source still has it.
    ///
    /// # Errors
    /// Without the admin right over it, or over what it names anew; when the keys are not possible, are part of the
    /// source's identity, or somebody else changed the source at the same time, or since that version.
    pub async fn alter(
        &self,
        name: &str,
        changes: &Map<String, Value>,
        if_version: Option<u64>,
    ) -> Result<SourceInfo, Error> {
        let altered = self.alter_or_not(name, changes, if_version).await;
        self.tried("altered", name, altered)
    }

    async fn alter_or_not(
        &self,
        name: &str,
        changes: &Map<String, Value>,
        if_version: Option<u64>,
    ) -> Result<SourceInfo, Error> {
        check_source_name(name)?;
        self.admit(Right::Admin, name).await?;
        let before = self.node.definition(name).await?;
        check_version(name, before.version, if_version)
            .map_err(|kind| snowmint_coord::Error::new("alter", kind))?;
        let mut keys = before.spec.to_json();
        merge(&mut keys, changes);
        // Taken away, it is what it is for a source that does not say it.
        if changes.get(ENABLED).is_some_and(Value::is_null) {
            keys.insert(ENABLED.to_owned(), true.into());
        }
        let spec = without_leftovers(keys, changes)?;
        self.may_name(Some(&before.spec), &spec)?;
        let room = self.room_for(&**self.node.store(), &DefinedRoom::of(name, &spec)).await?;
        let altered = self.node.alter(name, &spec, Some(before.version)).await?;
        drop(room);
        self.changed("altered", name, Some(&before), Some(&altered));
        Ok(altered)
    }

    /// Gives a segment source another stripe of the numbers, while it serves.
    ///
    /// # Errors
    /// Without the admin right; when there is no such stripe, or it would begin below what was handed out.
    pub async fn restripe(&self, name: &str, stripe: NewStripe) -> Result<SourceInfo, Error> {
        let restriped = self.restripe_or_not(name, stripe).await;
        self.tried("restriped", name, restriped)
    }

    async fn restripe_or_not(&self, name: &str, stripe: NewStripe) -> Result<SourceInfo, Error> {
        check_source_name(name)?;
        self.admit(Right::Admin, name).await?;
        let before = self.node.definition(name).await.ok();
        let restriped = self.node.restripe(name, stripe).await?;
        self.changed("restriped", name, before.as_ref(), Some(&restriped));
        Ok(restriped)
    }

    /// Deletes a source. Its mark stays, so that the name can never mint an old ID again.
    ///
    /// # Errors
    /// Without the admin right; when there is none of that name.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        let deleted = self.delete_or_not(name).await;
        self.tried("deleted", name, deleted)
    }

    async fn delete_or_not(&self, name: &str) -> Result<(), Error> {
        check_source_name(name)?;
        self.admit(Right::Admin, name).await?;
        let before = self.node.definition(name).await.ok();
        self.node.delete(name).await?;
        self.changed("deleted", name, before.as_ref(), None);
        Ok(())
    }

    /// One definition.
    ///
    /// # Errors
    /// Without any right over it; when there is none of that name.
    pub async fn definition(&self, name: &str) -> Result<SourceInfo, Error> {
        check_source_name(name)?;
        self.caller.may_see(name)?;
        Ok(self.node.definition(name).await?)
    }

    /// Every definition that was not deleted, by name: of those that the caller has a right over.
    ///
    /// # Errors
    /// Without a token, when too many lists of the caller wait, or when the store does not answer.
    pub async fn definitions(&self) -> Result<Listed, Error> {
        self.caller.must_be_known()?;
        let waits = self.wait_for_list()?;
        let mut listed = self.node.sources().await?;
        // The answer is counted as what it is.
        drop(waits);
        self.listed.store(listed.sources.len(), Ordering::Relaxed);
        listed.sources.retain(|source| self.caller.may_see(&source.name).is_ok());
        listed.unreadable.retain(|(name, _)| self.caller.may_see(name).is_ok());
        Ok(listed)
    }

    /// All who wait hear of the list at the same moment, and work for it: so what it will take of what may be unsent, as
    /// far as is known, is taken while it is waited for.
    fn wait_for_list(&self) -> Result<Hold, Error> {
        self.hold_rows(self.listed.load(Ordering::Relaxed)).map_err(|_| {
            // Not how many there are, which not everybody may see.
            let message =
                "too many lists of sources wait for one token or address; ask for fewer at once";
            Error::new(Code::Overloaded, message)
        })
    }

    /// Every slot that was ever held.
    ///
    /// # Errors
    /// Without the admin right over all sources, or when the store does not answer.
    pub async fn workers(&self) -> Result<Vec<SlotInfo>, Error> {
        self.caller.may_over_all(Right::Admin)?;
        Ok(self.node.workers().await?)
    }

    /// A store beside the node's own, by the name that sources call it by.
    pub(crate) async fn store_beside(&self, name: &str) -> snowmint_coord::Result<Arc<dyn Store>> {
        self.node.store_beside(name).await
    }

    /// Numbers for a program that mints by itself, of this store: the server's own, or the one of that name beside it.
    pub(crate) async fn reserve_for_program(
        &self,
        (beside, store): (&str, &dyn Store),
        reserve: &Reserve,
    ) -> snowmint_coord::Result<Segment> {
        match beside {
            "" => self.node.reserve_for_program(store, reserve).await,
            name => self.node.secondary(name).await?.reserve_for_program(store, reserve).await,
        }
    }

    /// Whether a text that a program writes past the node agrees with what it is held against there. The version that
    /// was looked at, if it must be written upon that.
    pub(crate) async fn agrees(
        &self,
        op: &'static str,
        (name, text): (&str, &str),
    ) -> snowmint_coord::Result<Option<u64>> {
        match SourceSpec::from_json(text) {
            Ok(spec) => self.node.check_written(op, name, &spec).await,
            Err(_) => Ok(None),
        }
    }

    /// A definition before it is changed past the node.
    pub(crate) async fn before_change(&self, name: &str) -> Option<SourceInfo> {
        self.node.definition(name).await.ok()
    }

    /// A definition was changed past the node, or may have been.
    pub(crate) async fn changed_beside(&self, how: &str, name: &str, before: Option<SourceInfo>) {
        self.node.catalog_changed();
        let after = self.node.definition(name).await.ok();
        self.changed(how, name, before.as_ref(), after.as_ref());
    }
}
