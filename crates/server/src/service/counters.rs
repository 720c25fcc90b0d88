//! Counters: numbers of a key, its bound, and the owner of its section.

use std::sync::{Arc, PoisonError};

use snowmint_coord::spec::Kind;
use snowmint_coord::{SectionAssignment, Source};
use snowmint_wire::error::Code;

use super::limit::Limit;
use super::owner::{LocalCall, OwnerCall};
use super::route::Route;
use super::state::Service;
use crate::access::Right;
use crate::advertised_addrs::AdvertisedAddrs;
use crate::cluster::remote_peer::RemotePeer;
use crate::error::Error;

/// Consecutive numbers of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedNumbers {
    /// First number.
    pub first: u64,
    /// Last number.
    pub last: u64,
}

impl Service {
    /// Takes `count` numbers of a key in a row, like `INCRBY`.
    ///
    /// # Errors
    /// Without the right to mint; more than `limits.incrby_max`, a source of another kind, or an
    /// error of the store. For a key of another server's section `NotOwner`, or if the route leads
    /// to the owner, more than `limits.batch_max`: one response has all the numbers.
    pub async fn count(
        &self,
        name: &str,
        key: &str,
        count: u64,
        route: Route,
    ) -> Result<CountedNumbers, Error> {
        self.admit_many(Right::Mint, name, count, Limit::InARow).await?;
        let rejection = match self.local_count(name, key, count).await {
            Err(rejection) if self.leads_to_owner(route, &rejection) => rejection,
            result => return result,
        };
        self.check_limit(name, count, Limit::Batch)?;
        let here = || -> LocalCall<'_, _> { Box::pin(self.local_count(name, key, count)) };
        let there = |address: String| -> OwnerCall<'_, _> {
            Box::pin(async move {
                let _waits = self.waits_for(&address)?;
                let _unsent_permit = self.unsent_permit(count)?;
                let peer = RemotePeer { peers: self.peers(), address: &address };
                let numbers = peer.consecutive(name, key, count).await;
                let (first, last) = numbers.map_err(|failure| failure.after(&peer))?;
                Ok(CountedNumbers { first, last })
            })
        };
        // Boxed: it is rare, and has a state far larger than the rest.
        Box::pin(self.ask_owner(rejection, &here, &there)).await
    }

    async fn local_count(
        &self,
        name: &str,
        key: &str,
        count: u64,
    ) -> Result<CountedNumbers, Error> {
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        let reserve = async |source: Source| {
            let _turn = self.turn_for(&source).await?;
            Ok::<_, Error>(source.count(key.as_bytes(), count, wait_ms).await?)
        };
        let ((first, last), tally) = self.ask(name, reserve).await?;
        tally.add(self.protocol, count);
        Ok(CountedNumbers { first, last })
    }

    /// Checks that a request of the caller may begin, taking nothing: its right, the source, and
    /// the owner of the key, unless the route leads there.
    ///
    /// # Errors
    /// Without the right, or for `None` without any right over the source; for a source that is
    /// unknown or disabled; `NotOwner`.
    pub(crate) async fn check_request(
        &self,
        right: Option<Right>,
        name: &str,
        key: Option<&str>,
        route: Route,
    ) -> Result<(), Error> {
        match right {
            Some(right) => self.caller().may(right, name)?,
            None => self.caller().may_see(name)?,
        }
        let key = key.filter(|_| route != Route::Owner).map(str::as_bytes);
        let check = async |source: Source| Ok::<_, Error>(source.check_owner(key)?);
        match self.ask(name, check).await {
            Err(rejection) if !self.leads_to_owner(route, &rejection) => Err(rejection),
            _ => Ok(()),
        }
    }

    /// Returns the error that names the owner of a key, if another server is known to own it, and
    /// an earlier request used the source here.
    pub(crate) fn moved(&self, name: &str, key: &str) -> Option<Error> {
        let cached = self.known(name)?;
        let checked = cached.source().check_owner(Some(key.as_bytes()));
        let is_elsewhere =
            |error: &Error| error.code() == Code::NotOwner && !self.is_assigned_here(error);
        checked.err().map(Error::from).filter(is_elsewhere)
    }

    /// Returns the bound: the highest number that a key may have returned; 0 if it has none.
    ///
    /// # Errors
    /// Those of [`Service::count`].
    pub async fn bound_of(&self, name: &str, key: &str, route: Route) -> Result<u64, Error> {
        self.admit(Right::Mint, name).await?;
        let rejection = match self.local_bound_of(name, key).await {
            Err(rejection) if self.leads_to_owner(route, &rejection) => rejection,
            result => return result,
        };
        let here = || -> LocalCall<'_, _> { Box::pin(self.local_bound_of(name, key)) };
        let there = |address: String| -> OwnerCall<'_, _> {
            Box::pin(async move {
                let _waits = self.waits_for(&address)?;
                let peer = RemotePeer { peers: self.peers(), address: &address };
                peer.bound(name, key).await.map_err(|failure| failure.after(&peer))
            })
        };
        // Boxed: it is rare, and has a state far larger than the rest.
        Box::pin(self.ask_owner(rejection, &here, &there)).await
    }

    /// Returns the kind of a source that the caller may mint from.
    ///
    /// # Errors
    /// Without the right; when the source is undefined or disabled.
    pub(crate) async fn kind_of(&self, name: &str) -> Result<Kind, Error> {
        self.admit(Right::Mint, name).await?;
        let look = async |source: Source| {
            source.check_enabled()?;
            Ok::<_, Error>(source.kind())
        };
        Ok(self.ask(name, look).await?.0)
    }

    /// Returns how many counter keys this server knows, of the sources that the caller may see.
    pub(crate) fn known_counter_keys(&self) -> u64 {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        let counters = sources.iter().filter(|(name, (source, _))| {
            source.kind() == Kind::Counter && self.caller().may_see(name).is_ok()
        });
        counters.filter_map(|(_, (source, _))| Some(source.stats().keys?.0)).sum()
    }

    async fn local_bound_of(&self, name: &str, key: &str) -> Result<u64, Error> {
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        let look = async |source: Source| {
            let _turn = self.turn_for(&source).await?;
            Ok::<_, Error>(source.bound_of(key.as_bytes(), wait_ms).await?)
        };
        Ok(self.ask(name, look).await?.0)
    }

    /// Makes every later number of a key greater than `highest`.
    ///
    /// # Errors
    /// Without the right to administer; above `limits.bound_max`, for every caller, since nothing
    /// lowers a bound again; and those of [`Service::count`].
    pub async fn raise(
        &self,
        name: &str,
        key: &str,
        highest: u64,
        route: Route,
    ) -> Result<(), Error> {
        let raised = self.try_raise(name, key, highest).await;
        let rejection = match self.audit_failure("raised", name, raised) {
            Err(rejection) if self.leads_to_owner(route, &rejection) => rejection,
            result => return result,
        };
        let here = || -> LocalCall<'_, _> { Box::pin(self.raise_here(name, key, highest)) };
        let there = |address: String| -> OwnerCall<'_, _> {
            Box::pin(async move {
                let _waits = self.waits_for(&address)?;
                let peer = RemotePeer { peers: self.peers(), address: &address };
                let raised = peer.raise(name, key, highest).await;
                raised.map_err(|failure| failure.after(&peer))?;
                self.audit_raise((name, None), None, highest);
                Ok(())
            })
        };
        // Boxed: it is rare, and has a state far larger than the rest.
        let raised = Box::pin(self.ask_owner(rejection, &here, &there)).await;
        raised.inspect_err(|error| self.audit_source_rejection("raised", name, error))
    }

    async fn try_raise(&self, name: &str, key: &str, highest: u64) -> Result<(), Error> {
        self.caller().may(Right::Admin, name)?;
        let limit = self.live.limit(|limits| limits.bound_max);
        if highest > limit {
            return Err(Error::bad_request(format!(
                "bound {highest} exceeds limits.bound_max ({limit}); use a lower one, since \
                 nothing lowers the keys of its section again"
            )));
        }
        self.admit(Right::Admin, name).await?;
        self.raise_here(name, key, highest).await
    }

    async fn raise_here(&self, name: &str, key: &str, highest: u64) -> Result<(), Error> {
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        let raise = async |source: Source| {
            let _turn = self.turn_for(&source).await?;
            let before = source.bound_of(key.as_bytes(), wait_ms).await?;
            source.raise(key.as_bytes(), highest, wait_ms).await?;
            Ok::<_, Error>((source.section(key.as_bytes()).ok(), before))
        };
        let ((section, before), _) = self.ask(name, raise).await?;
        if before < highest {
            self.audit_raise((name, section), Some(before), highest);
        }
        Ok(())
    }

    /// Returns the addresses at which this server is reached, by its own account.
    pub(crate) fn advertised_addrs(&self) -> AdvertisedAddrs {
        AdvertisedAddrs::read(self.node.address())
    }

    /// Returns the owners of the sections.
    #[must_use]
    pub fn section_assignment(&self) -> Arc<SectionAssignment> {
        self.node.section_assignment()
    }

    /// Returns the owners of the sections, also on a server that has just joined.
    pub async fn listed_assignment(&self) -> Arc<SectionAssignment> {
        self.node.listed_assignment(self.live.limit(|limits| limits.wait_max.ms())).await
    }
}
