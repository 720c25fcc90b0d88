//! Definitions and slots: the administrator's view, and changes. Each change leaves a line in the
//! audit trail.
//!
//! A change waits for its turn at the store before it waits for the lock of definitions. So few
//! changes of a client are ahead of the next one of another. While a change calls other stores, it
//! has neither.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value};
use snowmint_coord::catalog::check_version;
use snowmint_coord::node::StoresChecked;
use snowmint_coord::spec::SourceSpec;
use snowmint_coord::{
    DefinedRoom, ErrorKind, Listed, NewStripe, Reserve, Segment, SlotInfo, SourceInfo, Store,
};
use snowmint_wire::error::Code;

use super::check_source_name;
use super::merge::{merge, without_leftovers};
use super::state::Service;
use super::turns::SharedTurn;
use super::unsent_permit::UnsentPermit;
use crate::access::Right;
use crate::error::Error;

/// Key that every source has.
const ENABLED: &str = "enabled";

impl Service {
    /// Defines a source, or returns the existing definition when it is equal.
    ///
    /// # Errors
    /// Without the admin right over it, or over the objects that it names; when the keys are
    /// invalid, or disagree with a definition of that name.
    pub async fn define(&self, name: &str, spec: &SourceSpec) -> Result<SourceInfo, Error> {
        let defined = self.try_define(name, spec).await;
        self.audit_failure("defined", name, defined)
    }

    async fn try_define(&self, name: &str, spec: &SourceSpec) -> Result<SourceInfo, Error> {
        check_source_name(name)?;
        self.admit(Right::Admin, name).await?;
        let turn = SharedTurn::new(self.turn().await?);
        let before = match self.node.definition(name).await {
            Ok(before) => Some(before),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => None,
            // The caller needs no right to what the source names already, which is unknown.
            Err(error) => return Err(error.into()),
        };
        self.may_name(before.as_ref().map(|before| &before.spec), spec)?;
        let checked = self.check_stores(&turn, (name, spec)).await??;
        let own = ("", &**self.node.store());
        let room = self.room_for(own, &DefinedRoom::of(name, spec)).await?;
        let defined = self.node.define_checked(name, spec, checked).await?;
        drop(room);
        self.record_change("defined", name, before.as_ref(), Some(&defined));
        Ok(self.source_for_caller(defined))
    }

    /// Changes the given keys of a source, as a JSON merge patch (RFC 7396). The rest stay, except
    /// those that lose their meaning. With `if_version`, only if the source still has this version.
    ///
    /// # Errors
    /// Without the admin right over it, or over the objects that it newly names; when the keys are
    /// invalid or part of the source's identity. When another caller changed the source at the same
    /// time, or since that version.
    pub async fn alter(
        &self,
        name: &str,
        changes: &Map<String, Value>,
        if_version: Option<u64>,
    ) -> Result<SourceInfo, Error> {
        let altered = self.try_alter(name, changes, if_version).await;
        self.audit_failure("altered", name, altered)
    }

    async fn try_alter(
        &self,
        name: &str,
        changes: &Map<String, Value>,
        if_version: Option<u64>,
    ) -> Result<SourceInfo, Error> {
        check_source_name(name)?;
        self.admit(Right::Admin, name).await?;
        let turn = SharedTurn::new(self.turn().await?);
        let before = self.node.definition(name).await?;
        check_version(name, before.version, if_version)?;
        let mut keys = before.spec.to_json();
        merge(&mut keys, changes);
        // A removed key gets the value for sources without the key.
        if changes.get(ENABLED).is_some_and(Value::is_null) {
            keys.insert(ENABLED.to_owned(), true.into());
        }
        let spec = without_leftovers(keys, changes)?;
        self.may_name(Some(&before.spec), &spec)?;
        let checked = self.check_stores(&turn, (name, &spec)).await??;
        let own = ("", &**self.node.store());
        let room = self.room_for(own, &DefinedRoom::of(name, &spec)).await?;
        let altered = self.node.alter_checked(name, &spec, Some(before.version), checked).await?;
        drop(room);
        self.record_change("altered", name, Some(&before), Some(&altered));
        Ok(self.source_for_caller(altered))
    }

    /// Gives a segment source another stripe of the numbers, while it serves.
    ///
    /// # Errors
    /// Without the admin right; when the stripe is invalid, or would begin below issued numbers.
    pub async fn restripe(&self, name: &str, stripe: NewStripe) -> Result<SourceInfo, Error> {
        let restriped = self.try_restripe(name, stripe).await;
        self.audit_failure("restriped", name, restriped)
    }

    async fn try_restripe(&self, name: &str, stripe: NewStripe) -> Result<SourceInfo, Error> {
        check_source_name(name)?;
        self.admit(Right::Admin, name).await?;
        let _turn = self.turn().await?;
        let before = self.node.definition(name).await.ok();
        let restriped = self.node.restripe(name, stripe).await?;
        self.record_change("restriped", name, before.as_ref(), Some(&restriped));
        Ok(self.source_for_caller(restriped))
    }

    /// Deletes a source. Its mark stays, so that the name can never mint an old ID again.
    ///
    /// # Errors
    /// Without the admin right; when the name has no source.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        let deleted = self.try_delete(name).await;
        self.audit_failure("deleted", name, deleted)
    }

    async fn try_delete(&self, name: &str) -> Result<(), Error> {
        check_source_name(name)?;
        self.admit(Right::Admin, name).await?;
        let _turn = self.turn().await?;
        let before = self.node.definition(name).await.ok();
        self.node.delete(name).await?;
        self.record_change("deleted", name, before.as_ref(), None);
        Ok(())
    }

    /// Returns one definition.
    ///
    /// # Errors
    /// Without any right over it; when the name has no source.
    pub async fn definition(&self, name: &str) -> Result<SourceInfo, Error> {
        check_source_name(name)?;
        self.caller.may_see(name)?;
        Ok(self.source_for_caller(self.node.definition(name).await?))
    }

    /// Returns every definition that was not deleted, by name, if the caller has a right over it.
    ///
    /// # Errors
    /// Without a token, when too many lists of the caller wait, or when the store does not respond.
    pub async fn definitions(&self) -> Result<Listed, Error> {
        self.caller.must_be_known()?;
        let waits = self.wait_for_list()?;
        let mut listed = self.node.sources().await?;
        // The response is counted by its real size.
        drop(waits);
        self.listed.store(listed.sources.len(), Ordering::Relaxed);
        listed.sources.retain(|source| self.caller.may_see(&source.name).is_ok());
        listed.unreadable.retain(|(name, _)| self.caller.may_see(name).is_ok());
        listed.sources = listed.sources.into_iter().map(|it| self.source_for_caller(it)).collect();
        Ok(listed)
    }

    /// Takes the list's part of the limit of unsent IDs before the wait, by its last known length:
    /// all waiting callers get the list at the same moment, and their work begins together.
    fn wait_for_list(&self) -> Result<UnsentPermit, Error> {
        self.hold_rows(self.listed.load(Ordering::Relaxed)).map_err(|_| {
            // The error omits the number of sources, which some callers may not see.
            let message =
                "too many lists of sources wait for one token or address; ask for fewer at once";
            Error::new(Code::Overloaded, message)
        })
    }

    /// Returns every slot that was ever held.
    ///
    /// # Errors
    /// Without the admin right over all sources, or when the store does not respond.
    pub async fn workers(&self) -> Result<Vec<SlotInfo>, Error> {
        self.caller.may_over_all(Right::Admin)?;
        Ok(self.node.workers().await?)
    }

    /// Returns a secondary store, by its name in definitions.
    pub(crate) async fn secondary_store(
        &self,
        name: &str,
    ) -> snowmint_coord::Result<Arc<dyn Store>> {
        self.node.secondary_store(name).await
    }

    /// Takes numbers for an embedded client from this store: the server's own, or the secondary
    /// store of that name.
    pub(crate) async fn reserve_for_client(
        &self,
        (secondary_store, store): (&str, &dyn Store),
        reserve: &Reserve,
    ) -> snowmint_coord::Result<Segment> {
        match secondary_store {
            "" => self.node.reserve_for_client(store, reserve).await,
            name => self.node.secondary(name).await?.reserve_for_client(store, reserve).await,
        }
    }

    /// Checks that the text of a program, written without the node, agrees with the other
    /// definitions. Returns the version that the check of its stores read, if the definition must
    /// replace it.
    pub(crate) async fn agrees(
        &self,
        (name, text): (&str, &str),
        checked: StoresChecked,
    ) -> snowmint_coord::Result<Option<u64>> {
        match SourceSpec::from_stored(text) {
            Ok(spec) => self.node.check_written(name, &spec, checked).await,
            Err(_) => Ok(None),
        }
    }

    /// Returns a definition before a change without the node.
    pub(crate) async fn before_change(&self, name: &str) -> Option<SourceInfo> {
        self.node.definition(name).await.ok()
    }

    /// Takes in that a definition was changed without the node, or may have been.
    pub(crate) async fn changed_secondary(
        &self,
        how: &str,
        name: &str,
        before: Option<SourceInfo>,
    ) {
        self.node.catalog_changed();
        let after = self.node.definition(name).await.ok();
        self.record_change(how, name, before.as_ref(), after.as_ref());
    }
}
