//! Who asks, and with which rights. Each use case begins with one of these questions.

use axum::http::HeaderMap;

use super::{Error, Service};
use crate::access::{Access, Caller, Deed, Right};
use crate::config::Limits;
use crate::tls::Peer;

impl Service {
    /// The same service, for this caller.
    #[must_use]
    pub(crate) fn asked_by(&self, caller: Caller) -> Self {
        if let Some(connection) = caller.connection() {
            connection.is_of(&caller);
        }
        Self { caller, ..self.clone() }
    }

    /// The same service, acting for the server's own configuration, which may do everything, also where
    /// tokens are required. The audit trail names it so.
    #[must_use]
    pub fn for_configuration(&self) -> Self {
        self.asked_by(Caller::configuration())
    }

    /// Who may do what; none where nobody is asked.
    pub(crate) fn access(&self) -> Option<&Access> {
        self.access.as_ref()
    }

    /// The same service, acting for the sender of these headers from this address.
    pub(crate) fn caller_of(&self, headers: &HeaderMap, from: &Peer) -> Caller {
        match &self.access {
            Some(access) => access.caller_of(headers, &from.names, &from.connection),
            None => Caller::anyone().over(&from.connection),
        }
    }

    /// Whether what is counted is for everybody.
    pub(super) fn has_open_metrics(&self) -> bool {
        self.access.as_ref().is_none_or(Access::has_open_metrics)
    }

    /// Who asks here.
    pub(crate) const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Lets a caller in who wants one thing of a source.
    ///
    /// # Errors
    /// Without a token, without the right, or over the token's rate.
    pub(super) async fn admit(&self, right: Right, source: &str) -> Result<(), Error> {
        self.caller.may(right, source)?;
        self.spend(right, source, 1).await
    }

    /// Admits a caller that wants `count` of a source at once. A refusal takes nothing from its rate.
    ///
    /// # Errors
    /// As [`Service::admit`]; `TooMany` beyond the limit.
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

    fn check_limit(&self, source: &str, count: u64, limit: Limit) -> Result<(), Error> {
        let most = self.most(source, limit);
        if count > most {
            return Err(Error::too_many(limit.what(), count, most, limit.name()));
        }
        Ok(())
    }

    #[inline]
    pub(super) async fn spend(&self, right: Right, source: &str, count: u64) -> Result<(), Error> {
        if !self.caller.is_limited() {
            return Ok(());
        }
        // Only sources that there are have a rate: names that somebody makes up take no memory.
        match self.tallied(source).await {
            Ok(_) => self.caller.spend(source, count),
            // It is not there yet, or is to be set right: nobody mints from it.
            Err(_) if right == Right::Admin => self.caller.count(Deed::Define),
            Err(error) => Err(error),
        }
    }

    /// Counts what a program takes of a source to mint beside itself: as many as it asks for, or as there can be at
    /// once by its rate. How many it asks for follows its pace and the definition, and it cannot ask for fewer. What
    /// this server does not know yet has no rate.
    ///
    /// # Errors
    /// Over the token's rate.
    pub(crate) async fn spend_beside(&self, source: &str, count: u64) -> Result<u64, Error> {
        if !self.caller.is_limited() || self.tallied(source).await.is_err() {
            return Ok(count);
        }
        let count = self.caller.at_once(source)?.map_or(count, |most| count.min(most));
        self.caller.spend(source, count)?;
        Ok(count)
    }

    /// The most of a source that one request may ask for: any number, with the admin right over it.
    pub(crate) fn most(&self, source: &str, limit: Limit) -> u64 {
        if self.caller.may_beyond_limits(source) {
            limit.widest()
        } else {
            self.live.limit(|limits| limit.of(limits))
        }
    }

    /// Whether a stream of so many of a source may begin; each of its messages asks again, and is counted.
    ///
    /// # Errors
    /// Without the right to mint; `TooMany` beyond the limit.
    pub(crate) fn may_stream(&self, source: &str, total: u64) -> Result<(), Error> {
        self.caller.may(Right::Mint, source)?;
        self.check_limit(source, total, Limit::Stream)
    }

    /// Whether a program may be a member of the store, and mint in its own process.
    ///
    /// # Errors
    /// Without the right.
    pub(crate) fn may_join(&self) -> Result<(), Error> {
        self.caller.may_somewhere(Right::Join)
    }

    /// Whether such a program may take numbers of a source.
    ///
    /// # Errors
    /// Without the right.
    pub(crate) fn may_reserve(&self, source: &str) -> Result<(), Error> {
        self.caller.may(Right::Reserve, source)
    }

    /// Whether it may take no more of a source at once than a request may: whoever shows a token without the admin
    /// right over it. Where none is asked for, everybody may define what the limits are.
    pub(crate) fn is_held_to_limits(&self, source: &str) -> bool {
        !self.caller.is_anyone() && !self.caller.may_beyond_limits(source)
    }

    /// Whether it may change a definition.
    ///
    /// # Errors
    /// Without the right.
    pub(crate) fn may_define(&self, source: &str) -> Result<(), Error> {
        self.caller.may(Right::Admin, source)
    }

    /// Whether it may do what concerns all sources: move the store forward, own sections.
    ///
    /// # Errors
    /// Without the right.
    pub(crate) fn may_operate(&self) -> Result<(), Error> {
        self.caller.may_over_all(Right::Admin)
    }
}

/// How many may be asked for in one request, which the admin right over the source widens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// IDs of one answer.
    Batch,
    /// IDs of a stream.
    Stream,
    /// Numbers of a range, for the caller to spend.
    Segment,
    /// Numbers in a row, of which the last is answered.
    InARow,
}

impl Limit {
    fn of(self, limits: &Limits) -> u64 {
        match self {
            Self::Batch => limits.batch_max.into(),
            Self::Stream => limits.stream_max,
            Self::Segment => limits.segment_max,
            Self::InARow => limits.incrby_max,
        }
    }

    /// Where it does not hold.
    fn widest(self) -> u64 {
        match self {
            Self::Batch => u32::MAX.into(),
            Self::Stream | Self::Segment | Self::InARow => u64::MAX,
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Self::Batch | Self::Stream => "IDs",
            Self::Segment | Self::InARow => "numbers in a row",
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Batch => "limits.batch_max",
            Self::Stream => "limits.stream_max",
            Self::Segment => "limits.segment_max",
            Self::InARow => "limits.incrby_max",
        }
    }
}
