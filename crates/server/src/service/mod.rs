//! Use cases, as plain functions on domain types. The protocols only translate.

mod about;
mod audit;
mod authorize;
mod cached_source;
mod catalog;
mod counters;
pub(crate) mod decoding;
mod definition_room;
mod describe;
mod embedded_clients;
mod external_lease;
mod history;
pub(crate) mod invalid;
pub(crate) mod layout_advice;
mod limit;
mod live_settings;
mod merge;
mod metrics;
mod mint;
mod named_objects;
mod not_done;
mod order_forwarder;
mod owner;
mod peer_notices;
mod probing;
pub(crate) mod programs;
mod readiness;
mod recovery;
mod route;
mod servers;
pub(crate) mod shards;
mod state;
mod throttled_log;
mod turn;
mod turns;
mod unsent;
mod unsent_permit;

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use arc_swap::ArcSwap;
use serde_json::{Map, Value};
use snowmint_coord::catalog::check_name;
use snowmint_coord::spec::SourceSpec;
use snowmint_coord::{Decoded, Incarnation, Node, NumberRange, Source};
use snowmint_core::layout::ReadableLayout;
use snowmint_core::text::Format;
use snowmint_core::{Clock as _, SystemClock};
use snowmint_wire::error::Code;
use tokio::sync::watch;

use self::decoding::{UnknownId, read_number, read_number_by_sight, read_unknown};
use self::order_forwarder::OrderForwarder;
use self::state::Tallied;
use self::throttled_log::ThrottledLog;
use crate::access::{Access, AnonymousReason, Caller, Logins, Right};
use crate::clients::share::Shares;
use crate::cluster::peers::Peers;
use crate::observe::live::Live;
use crate::observe::meter::{Meter, Protocol, Tally};

pub use crate::error::{Error, SectionOwner, code_of, shown};
pub use audit::AuditDefinition;
pub(crate) use cached_source::CachedSource;
pub use counters::CountedNumbers;
pub(crate) use describe::DecodedParts;
pub(crate) use limit::Limit;
pub(crate) use not_done::NotDone;
pub(crate) use probing::probe_peers;
pub use recovery::moved_to;
pub(crate) use recovery::{RecoveryCall, RecoveryOutcome, recovery_mark};
pub use route::Route;
pub(crate) use servers::{ListedMember, ServerList};
pub use state::{Minted, Service, ServiceInner};
pub use throttled_log::FAILED_REQUESTS_TARGET;
pub(crate) use turns::{SharedTurn, TurnTarget};
pub use unsent_permit::UnsentPermit;

impl Service {
    /// Creates a service over an open node. `closing` becomes true when the server stops: then the
    /// service is no longer ready, but still handles requests. With `access`, the caller is
    /// anonymous until a request has one.
    #[must_use]
    pub(crate) fn new(
        node: Node,
        live: Live,
        closing: watch::Receiver<bool>,
        peers: Peers,
        access: Option<Access>,
    ) -> Self {
        let caller = access.as_ref().map_or_else(Caller::unrestricted, |_| {
            Caller::anonymous(AnonymousReason::NothingShown)
        });
        let own = || Arc::new(Logins::new(peers.shared_timer()));
        let logins = access.as_ref().map_or_else(own, Access::logins);
        let order_forwarder = OrderForwarder::new(peers, live.clone());
        let unsent = Shares::new(live.limit(|limits| limits.unsent_max.into()));
        let shared = ServiceInner {
            node,
            live,
            unsent,
            turns: Arc::default(),
            closing,
            order_forwarder,
            sources: RwLock::default(),
            meter: Meter::default(),
            throttled_log: ThrottledLog::default(),
            access,
            logins,
            defining: Mutex::default(),
            listed: AtomicUsize::default(),
            configured: ArcSwap::default(),
        };
        Self { shared: Arc::new(shared), protocol: Protocol::Http, caller }
    }

    pub(crate) fn peers(&self) -> &Peers {
        self.order_forwarder.peers()
    }

    /// Returns a source by name, to read.
    ///
    /// # Errors
    /// When the name is invalid or undefined; without any right over it.
    pub(crate) async fn source(&self, name: &str) -> Result<Source, Error> {
        self.caller.may_see(name)?;
        self.opened(name).await
    }

    /// Returns a source by name, for any caller.
    async fn opened(&self, name: &str) -> Result<Source, Error> {
        Ok(self.tallied(name).await?.0)
    }

    /// Returns a source by name, and its metrics.
    async fn tallied(&self, name: &str) -> Result<Tallied, Error> {
        let known = self.sources.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        check_source_name(name)?;
        let tallied = (self.node.source(name).await?, self.meter.tally(name));
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        sources.insert(name.to_owned(), tallied.clone());
        Ok(tallied)
    }

    /// Calls a source; once more when it was deleted, since it may have been redefined. Returns its
    /// metrics, too.
    async fn ask<T, F>(
        &self,
        name: &str,
        ask: impl Fn(Source) -> F,
    ) -> Result<(T, Arc<Tally>), Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.ask_source(name, ask).await.inspect_err(|error| {
            if Tally::counts(error.code())
                && let Some(tally) = self.meter.known_tally(name).or_else(|| self.new_tally(name))
            {
                tally.add_error(error.code());
            }
        })
    }

    /// Returns the metrics of a source that could not be opened yet; `None` for a name that may not
    /// exist, since a caller may send any.
    fn new_tally(&self, name: &str) -> Option<Arc<Tally>> {
        let is_known = self.configured.load().contains_key(name)
            || self.node.running().iter().any(|source| source.name() == name);
        is_known.then(|| self.meter.tally(name))
    }

    async fn ask_source<T, F>(
        &self,
        name: &str,
        ask: impl Fn(Source) -> F,
    ) -> Result<(T, Arc<Tally>), Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let (source, tally) = self.tallied(name).await?;
        let result = match ask(source).await {
            Err(error) if error.code() == Code::UnknownSource => {
                self.sources.write().unwrap_or_else(PoisonError::into_inner).remove(name);
                // Boxed: the state of a call is large, and few requests need a second one.
                Box::pin(async { ask(self.opened(name).await?).await }).await
            }
            result => result,
        };
        Ok((result?, tally))
    }

    /// Takes a range of a segment source out of the store, for a caller to issue.
    ///
    /// # Errors
    /// Without the right; more than `limits.segment_max`, a source of another kind, or an error of
    /// the store.
    pub async fn reserve_segment(&self, name: &str, length: u64) -> Result<NumberRange, Error> {
        self.reserve_within(Right::Reserve, name, length, Limit::Segment).await
    }

    /// Takes `length` numbers in a row, like `INCRBY`.
    ///
    /// # Errors
    /// Without the right to mint; more than `limits.incrby_max`, a source of another kind, or an
    /// error of the store.
    pub async fn reserve_consecutive(&self, name: &str, length: u64) -> Result<NumberRange, Error> {
        self.reserve_within(Right::Mint, name, length, Limit::InARow).await
    }

    async fn reserve_within(
        &self,
        right: Right,
        name: &str,
        length: u64,
        limit: Limit,
    ) -> Result<NumberRange, Error> {
        self.admit_many(right, name, length, limit).await?;
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        let reserve = async |source: Source| {
            let _turn = self.turn_of(&source).await?;
            Ok::<_, Error>(source.reserve_range(length, wait_ms).await?)
        };
        let (range, tally) = self.ask(name, reserve).await?;
        tally.add(self.protocol, length);
        Ok(range)
    }

    /// Decodes an ID of a source: a text in this form, or else in the source's own or in decimal.
    ///
    /// # Errors
    /// Without the right; when the source cannot have minted the text as an ID.
    pub async fn decode_by_source(
        &self,
        id: &str,
        source: &str,
        format: Option<Format>,
    ) -> Result<Decoded, Error> {
        self.admit(Right::Decode, source).await?;
        Ok(self.opened(source).await?.decode(id, format)?)
    }

    /// Decodes an ID of a source, given as the minted number.
    ///
    /// # Errors
    /// Without the right; when the source cannot have minted it as an ID.
    pub async fn decode_number(&self, id: u64, source: &str) -> Result<Decoded, Error> {
        self.decode_by_source(&id.to_string(), source, Some(Format::default())).await
    }

    /// Decodes an ID by a layout, given in any form of the configuration. The text has this form;
    /// without one, it is decimal, negative or not, or in a form that shows its layout.
    ///
    /// # Errors
    /// Without the right to decode anything; when the layout is invalid, or the text is not an ID
    /// of it.
    pub(crate) fn decode_by_layout(
        &self,
        id: &str,
        layout: &str,
        format: Option<Format>,
    ) -> Result<DecodedParts<'static>, Error> {
        self.caller.may_somewhere(Right::Decode)?;
        let layout = layout_of(layout)?;
        let number = match format {
            Some(format) => read_number(id, format, Some(&layout)),
            None => read_number_by_sight(id, &layout),
        };
        let number = number.map_err(Error::bad_request)?;
        let parts = layout.unpack(number).map_err(|error| {
            let id = shown(id);
            Error::bad_request(format!("invalid ID {id} of layout {layout}: {error}"))
        })?;
        Ok(DecodedParts::of_snowflake(number, parts, layout))
    }

    /// Decodes an ID of which only the text is known, and perhaps its form.
    ///
    /// # Errors
    /// Without the right to decode anything; when no form, or not this one, has this text.
    pub(crate) fn decode_unknown(
        &self,
        id: &str,
        format: Option<Format>,
    ) -> Result<UnknownId, Error> {
        self.caller.may_somewhere(Right::Decode)?;
        read_unknown(id, format, SystemClock.unix_ms()).map_err(Error::bad_request)
    }

    /// Returns this server's current member of the store: slots with this holder are its own.
    #[must_use]
    pub fn incarnation(&self) -> Option<Incarnation> {
        self.node.incarnation()
    }

    /// Returns a receiver that becomes true when the server stops.
    pub(crate) fn closing(&self) -> &watch::Receiver<bool> {
        &self.closing
    }
}

/// Parses the source that these keys describe.
///
/// # Errors
/// When a key is unknown, or a value is invalid.
pub fn spec_of(keys: Map<String, Value>) -> Result<SourceSpec, Error> {
    SourceSpec::from_json(&Value::Object(keys).to_string())
        .map_err(|error| Error::bad_request(error.to_string()))
}

/// Parses a layout in any form of the configuration.
///
/// # Errors
/// When it is invalid.
pub fn layout_of(text: &str) -> Result<ReadableLayout, Error> {
    decoding::layout_to_read(text)
        .map_err(|error| Error::bad_request(format!("layout {}: {error}", shown(text))))
}

/// Returns the text form of a number that a request names; `number` is decimal.
///
/// # Errors
/// When no form has this name; the message lists them.
pub(crate) fn format_named(name: &str) -> Result<Format, Error> {
    if name == "number" {
        return Ok(Format::default());
    }
    name.parse().map_err(|_| {
        let names = Format::ALL.map(Format::name).join(", ");
        Error::bad_request(format!("unknown format {}; expected number, {names}", shown(name)))
    })
}

/// Returns a layout that a request names.
///
/// # Errors
/// `NotFound` for an unknown name: a single word is a name; anything more is a written-out layout
/// with a mistake in it.
pub fn layout_named(text: &str) -> Result<ReadableLayout, Error> {
    layout_of(text).map_err(|error| {
        if text.contains(['=', ',']) { error } else { Error::new(Code::NotFound, error.message()) }
    })
}

fn check_source_name(name: &str) -> Result<(), Error> {
    check_name("source", name).map_err(|error| Error::bad_request(error.message()))
}
