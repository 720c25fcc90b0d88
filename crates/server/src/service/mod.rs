//! The use cases, as plain functions on domain types. The protocols only translate.

mod about;
mod asked;
mod at_hand;
mod catalog;
mod changing;
mod complaint;
mod counters;
mod describe;
mod error;
mod hold;
mod lend;
mod merge;
mod metrics;
mod naming;
mod notice;
mod order;
mod owner;
mod passed;
mod probing;
mod programs;
mod recovery;
mod room;
mod told;

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwap;
use serde_json::{Map, Value};
use snowmint_coord::catalog::check_name;
use snowmint_coord::spec::SourceSpec;
use snowmint_coord::{
    Decoded, ErrorKind, Incarnation, Node, Readiness, Reason, Row, Source, Values,
};
use snowmint_core::Layout;
use snowmint_core::text::Format;
use snowmint_wire::error::Code;
use tokio::sync::watch;

use self::complaint::Complaints;
use self::order::Relay;
use crate::access::{Access, Caller, Logins, Right, Unknown};
use crate::live::Live;
use crate::meter::{Meter, Protocol, Tally};
use crate::peers::Peers;
use crate::share::Shares;

pub(crate) use asked::Limit;
pub(crate) use at_hand::AtHand;
pub(crate) use complaint::Cause;
pub use counters::Counted;
pub use describe::{decoded_body, layout_body, layouts_body, source_body, worker_body};
pub use error::{Elsewhere, Error, code_of};
pub use hold::Hold;
pub(crate) use notice::CHANGED_PATH;
pub(crate) use owner::{ByOwner, FromOwner, Unanswered};
pub(crate) use probing::probe_peers;
pub use recovery::{moved_to, recovery_body};
pub(crate) use room::NoRoom;

/// A source, and where to count what it issues.
type Tallied = (Source, Arc<Tally>);

/// Everything that can be asked for. Clones are the same service, and cost next to nothing: there is one
/// for each call.
#[derive(Clone, Debug)]
pub struct Service {
    shared: Arc<Shared>,
    /// What those who ask here speak.
    protocol: Protocol,
    /// Who asks here.
    caller: Caller,
}

/// The part of a [`Service`] that does not depend on the caller.
#[derive(Debug)]
pub struct Shared {
    node: Node,
    live: Live,
    unsent: Arc<Shares>,
    closing: watch::Receiver<bool>,
    relay: Relay,
    /// Sources that were asked for: opening one goes through the node's driver. Only what the catalog
    /// has gets in.
    sources: RwLock<HashMap<String, Tallied>>,
    meter: Meter,
    complaints: Complaints,
    /// Who may do what; none where nobody is asked.
    access: Option<Access>,
    logins: Arc<Logins>,
    /// Whose turn it is to define what takes room.
    defining: tokio::sync::Mutex<()>,
    /// How many sources there were when they were listed last.
    listed: AtomicUsize,
    /// The sources that the configuration defines.
    configured: ArcSwap<BTreeMap<String, SourceSpec>>,
}

impl Deref for Service {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// Exactly as many IDs as were asked for. Keep it until they are sent: a large one counts against
/// the limit of unsent IDs.
#[derive(Debug)]
pub struct Minted {
    /// The IDs.
    pub values: Values,
    hold: Hold,
}

impl Minted {
    /// The IDs, and what to keep until they are sent.
    #[must_use]
    pub fn into_parts(self) -> (Values, Hold) {
        (self.values, self.hold)
    }
}

impl Service {
    /// A service over an open node. `closing` becomes true when the server stops: then it is not
    /// ready any more, while requests are still answered. Where there is an `access`, nobody asks until
    /// somebody is said to.
    #[must_use]
    pub(crate) fn new(
        node: Node,
        live: Live,
        closing: watch::Receiver<bool>,
        peers: Peers,
        access: Option<Access>,
    ) -> Self {
        let caller =
            access.as_ref().map_or_else(Caller::anyone, |_| Caller::nobody(Unknown::NothingShown));
        let own = || Arc::new(Logins::new(peers.shared_timer()));
        let logins = access.as_ref().map_or_else(own, Access::logins);
        let relay = Relay::new(peers, live.clone());
        let unsent = Shares::new(live.limit(|limits| limits.unsent_max.into()));
        let shared = Shared {
            node,
            live,
            unsent,
            closing,
            relay,
            sources: RwLock::default(),
            meter: Meter::default(),
            complaints: Complaints::default(),
            access,
            logins,
            defining: tokio::sync::Mutex::default(),
            listed: AtomicUsize::default(),
            configured: ArcSwap::default(),
        };
        Self { shared: Arc::new(shared), protocol: Protocol::Http, caller }
    }

    pub(crate) fn peers(&self) -> &Peers {
        self.relay.peers()
    }

    /// A source by name, to look at.
    ///
    /// # Errors
    /// For a name that is none, or that nobody has defined; without any right over it.
    pub(crate) async fn source(&self, name: &str) -> Result<Source, Error> {
        self.caller.may_see(name)?;
        self.opened(name).await
    }

    /// A source by name, for any caller.
    async fn opened(&self, name: &str) -> Result<Source, Error> {
        Ok(self.tallied(name).await?.0)
    }

    /// A source by name, and where to count what it issues.
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

    /// Asks a source; once more when it was deleted, since it may have been defined again. Answers where to count what it
    /// issued, too.
    async fn ask<T, F>(
        &self,
        name: &str,
        ask: impl Fn(Source) -> F,
    ) -> Result<(T, Arc<Tally>), Error>
    where
        F: Future<Output = Result<T, snowmint_coord::Error>>,
    {
        self.ask_source(name, ask).await.inspect_err(|error| {
            // Only of sources that there are: a caller may ask for any name.
            let tally = self.meter.known_tally(name);
            let is_configured = || self.configured.load().contains_key(name);
            let tally = tally.or_else(|| is_configured().then(|| self.meter.tally(name)));
            if let Some(tally) = tally {
                tally.refuse(error.code());
            }
        })
    }

    async fn ask_source<T, F>(
        &self,
        name: &str,
        ask: impl Fn(Source) -> F,
    ) -> Result<(T, Arc<Tally>), Error>
    where
        F: Future<Output = Result<T, snowmint_coord::Error>>,
    {
        let (source, tally) = self.tallied(name).await?;
        let answer = match ask(source).await {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound { .. }) => {
                self.sources.write().unwrap_or_else(PoisonError::into_inner).remove(name);
                ask(self.opened(name).await?).await
            }
            answer => answer,
        };
        Ok((answer?, tally))
    }

    /// Mints exactly `count` IDs, waiting for the next tick or the store within the limit. Answers
    /// the source, too: callers that mint one ID at a time keep it.
    ///
    /// # Errors
    /// Without the right to; more than the limit at once, or what the source refuses.
    pub async fn mint(
        &self,
        name: &str,
        count: u64,
        key: Option<&str>,
    ) -> Result<(Source, Minted), Error> {
        let count = self.admit_ids(name, count).await?;
        self.mint_here(name, count, key).await
    }

    /// Lets a caller in who wants so many IDs of a source in one answer.
    pub(crate) async fn admit_ids(&self, name: &str, count: u64) -> Result<u32, Error> {
        self.admit_many(Right::Mint, name, count, Limit::Batch).await?;
        let beyond = |_| Error::bad_request(format!("{count} IDs are more than any answer has"));
        u32::try_from(count).map_err(beyond)
    }

    /// As [`Service::mint`], for somebody who was admitted.
    async fn mint_here(
        &self,
        name: &str,
        count: u32,
        key: Option<&str>,
    ) -> Result<(Source, Minted), Error> {
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        let hold = self.hold(count.into())?;
        let mint = async |source: Source| {
            let values = source.mint(count, key, wait_ms).await?;
            Ok((source, values))
        };
        let ((source, values), tally) = self.ask(name, mint).await?;
        tally.add(self.protocol, u64::from(count));
        Ok((source, Minted { values, hold }))
    }

    /// Takes a range of a segment source out of the store, for a caller to spend.
    ///
    /// # Errors
    /// Without the right to; more than `limits.segment_max`, a source of another kind, or what the store
    /// refuses.
    pub async fn reserve_segment(&self, name: &str, length: u64) -> Result<Row, Error> {
        self.row(Right::Reserve, name, length, Limit::Segment).await
    }

    /// Takes `length` numbers in a row, as `INCRBY` does.
    ///
    /// # Errors
    /// Without the right to mint; more than `limits.incrby_max`, a source of another kind, or what the
    /// store refuses.
    pub async fn take_in_a_row(&self, name: &str, length: u64) -> Result<Row, Error> {
        self.row(Right::Mint, name, length, Limit::InARow).await
    }

    async fn row(&self, right: Right, name: &str, length: u64, limit: Limit) -> Result<Row, Error> {
        self.admit_many(right, name, length, limit).await?;
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        let take = async |source: Source| source.row(length, wait_ms).await;
        let (row, tally) = self.ask(name, take).await?;
        tally.add(self.protocol, length);
        Ok(row)
    }

    /// What an ID of a source says.
    ///
    /// # Errors
    /// Without the right to; when the text is no ID of that source.
    pub async fn decode_by_source(&self, id: &str, source: &str) -> Result<Decoded, Error> {
        self.admit(Right::Decode, source).await?;
        Ok(self.opened(source).await?.decode(id, None)?)
    }

    /// What an ID of a source says, given as the number that was minted.
    ///
    /// # Errors
    /// Without the right to; when it is no ID of that source.
    pub async fn decode_number(&self, id: u64, source: &str) -> Result<Decoded, Error> {
        self.admit(Right::Decode, source).await?;
        Ok(self.opened(source).await?.decode(&id.to_string(), Some(Format::default()))?)
    }

    /// What a decimal ID says, read by a layout given in any form that configuration takes.
    ///
    /// # Errors
    /// Without the right to decode anything; when the layout is none, or the text is no ID of it.
    pub fn decode_by_layout(&self, id: &str, layout: &str) -> Result<Decoded, Error> {
        self.caller.may_somewhere(Right::Decode)?;
        let layout = layout_of(layout)?;
        let number = Format::default()
            .decode(id, None)
            .map_err(|error| Error::bad_request(format!("{} is no ID: {error}", shown(id))))?;
        let parts = layout.unpack(number).map_err(|error| Error::bad_request(error.to_string()))?;
        let time = layout.start_of(parts.tick);
        Ok(Decoded::Snowflake { id: number, parts, time, layout })
    }

    /// Which member of the store this server is now: slots with this holder are its own.
    #[must_use]
    pub fn incarnation(&self) -> Option<Incarnation> {
        self.node.incarnation()
    }

    /// Becomes true when the server stops.
    pub(crate) fn closing(&self) -> &watch::Receiver<bool> {
        &self.closing
    }

    /// Whether IDs can be minted, with margin; and if not, why.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let mut readiness = self.node.readiness();
        if *self.closing.borrow() {
            readiness.ready = false;
            readiness.reasons.push(Reason::new(Code::Closed.as_str(), "the server is stopping"));
        }
        readiness
    }

    /// Why IDs cannot be minted, in sentences. They name sources and stores: none for a caller without any right.
    pub(crate) fn told_reasons(&self, readiness: &Readiness) -> Vec<String> {
        if !self.caller.has_some_right() {
            return Vec::new();
        }
        readiness.reasons.iter().map(ToString::to_string).collect()
    }
}

/// The source that these keys describe.
///
/// # Errors
/// For a key that there is not, or a value that it does not take.
pub fn spec_of(keys: Map<String, Value>) -> Result<SourceSpec, Error> {
    SourceSpec::from_json(&Value::Object(keys).to_string())
        .map_err(|error| Error::bad_request(error.to_string()))
}

/// A layout in any form that configuration takes.
///
/// # Errors
/// When it is none.
pub fn layout_of(text: &str) -> Result<Layout, Error> {
    text.parse::<Layout>().map_err(|error| Error::bad_request(format!("{}: {error}", shown(text))))
}

/// A layout that is asked for by itself.
///
/// # Errors
/// `NotFound` for a name that there is not: a single word is a name; anything more is a layout written
/// out, with a mistake in it.
pub fn layout_named(text: &str) -> Result<Layout, Error> {
    layout_of(text).map_err(|error| {
        if text.contains(['=', ',']) { error } else { Error::new(Code::NotFound, error.message()) }
    })
}

/// Text from a caller, cut and escaped, to be put into an answer or a log.
#[must_use]
pub fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 80;
    match text.char_indices().nth(SHOWN_MAX) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
    }
}

fn check_source_name(name: &str) -> Result<(), Error> {
    check_name("source", name).map_err(|kind: ErrorKind| Error::bad_request(kind.to_string()))
}
