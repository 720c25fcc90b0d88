//! Authorization: the caller and its rights. Each use case begins with one of these checks.

use super::limit::Limit;
use super::state::Service;
use crate::access::{Access, Caller, Deed, Right};
use crate::error::Error;

impl Service {
    /// Returns the same service, for this caller.
    #[must_use]
    pub(crate) fn for_caller(&self, caller: Caller) -> Self {
        if let Some(connection) = caller.connection() {
            caller.is_on(connection);
        }
        Self { caller, ..self.clone() }
    }

    /// Returns the same service, acting for the server's own configuration, which may do
    /// everything, also where tokens are required. The audit trail names it so.
    #[must_use]
    pub fn for_configuration(&self) -> Self {
        self.for_caller(Caller::configuration())
    }

    /// Returns access control; `None` where tokens are not required.
    pub(crate) fn access(&self) -> Option<&Access> {
        self.access.as_ref()
    }

    /// Returns whether the metrics need no token.
    pub(super) fn has_open_metrics(&self) -> bool {
        self.access.as_ref().is_none_or(Access::has_open_metrics)
    }

    /// Returns the caller.
    pub(crate) const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Admits a caller that wants one thing of a source.
    ///
    /// # Errors
    /// Without a token, without the right, or over the token's rate.
    pub(super) async fn admit(&self, right: Right, source: &str) -> Result<(), Error> {
        self.caller.may(right, source)?;
        self.spend(right, source, 1).await
    }

    /// Admits a caller that wants `count` of a source at once. An error takes nothing from its
    /// rate.
    ///
    /// # Errors
    /// Those of [`Service::admit`]; `LimitExceeded` beyond the limit.
    #[inline]
    pub(super) async fn admit_many(
        &self,
        right: Right,
        source: &str,
        count: u64,
        limit: Limit,
    ) -> Result<(), Error> {
        self.caller.may(right, source)?;
        self.check_limit(source, count, limit)?;
        self.spend(right, source, count).await
    }

    pub(super) fn check_limit(&self, source: &str, count: u64, limit: Limit) -> Result<(), Error> {
        let most = self.most(source, limit);
        if count > most {
            return Err(Error::too_many(count, most, limit.name()));
        }
        Ok(())
    }

    #[inline]
    pub(super) async fn spend(&self, right: Right, source: &str, count: u64) -> Result<(), Error> {
        if !self.caller.is_limited() {
            return Ok(());
        }
        // Only existing sources have a rate: invented names take no memory.
        match self.tallied(source).await {
            Ok(_) => self.caller.spend(source, count),
            // The source does not exist yet, or needs a repair: it mints nothing.
            Err(_) if right == Right::Admin => self.caller.count(Deed::Define),
            Err(error) => Err(error),
        }
    }

    /// Counts the numbers that an embedded client takes of a source: the requested number, or the
    /// most that its rate permits at once. The requested number follows the client's pace and the
    /// definition, so the client cannot ask for fewer. A source that this server does not know yet
    /// has no rate.
    ///
    /// # Errors
    /// Over the token's rate.
    pub(crate) async fn spend_secondary(&self, source: &str, count: u64) -> Result<u64, Error> {
        if !self.caller.is_limited() || self.tallied(source).await.is_err() {
            return Ok(count);
        }
        let count = self.caller.at_once(source)?.map_or(count, |most| count.min(most));
        self.caller.spend(source, count)?;
        Ok(count)
    }

    /// Returns the most of a source that one request may take: any number, with the admin right
    /// over it.
    pub(crate) fn most(&self, source: &str, limit: Limit) -> u64 {
        if self.caller.may_beyond_limits(source) {
            limit.widest()
        } else {
            self.live.limit(|limits| limit.of(limits))
        }
    }

    /// Checks whether a stream of `total` IDs of a source may begin; each of its messages is
    /// checked and counted again.
    ///
    /// # Errors
    /// Without the right to mint; `LimitExceeded` beyond the limit.
    pub(crate) fn may_stream(&self, source: &str, total: u64) -> Result<(), Error> {
        self.caller.may(Right::Mint, source)?;
        self.check_limit(source, total, Limit::Stream)
    }

    /// Checks whether a program may be a member of the store, and mint in its own process.
    ///
    /// # Errors
    /// Without the right.
    pub(crate) fn may_join(&self) -> Result<(), Error> {
        self.caller.may_somewhere(Right::Join)
    }

    /// Checks whether such a program may take numbers of a source.
    ///
    /// # Errors
    /// Without the right.
    pub(crate) fn may_reserve(&self, source: &str) -> Result<(), Error> {
        self.caller.may(Right::Reserve, source)
    }

    /// Returns whether the limits of one request apply to the caller's reserves of a source: they
    /// do for a token without the admin right over it. Without required tokens, every caller may
    /// define the limits.
    pub(crate) fn is_held_to_limits(&self, source: &str) -> bool {
        !self.caller.is_unrestricted() && !self.caller.may_beyond_limits(source)
    }

    /// Checks whether the caller may change a definition.
    ///
    /// # Errors
    /// Without the right.
    pub(crate) fn may_define(&self, source: &str) -> Result<(), Error> {
        self.caller.may(Right::Admin, source)
    }

    /// Checks whether the caller may change what all sources share: move the store forward, own
    /// sections.
    ///
    /// # Errors
    /// Without the right.
    pub(crate) fn may_operate(&self) -> Result<(), Error> {
        self.caller.may_over_all(Right::Admin)
    }
}
