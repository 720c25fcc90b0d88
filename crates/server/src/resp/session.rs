//! State of a connection between requests.

use std::str;
use std::sync::{Arc, Mutex};

use snowmint_coord::Source;
use snowmint_coord::lock;
use snowmint_wire::error::Code;
use snowmint_wire::resp::{Encoder, Protocol};

use super::reply_mode::ReplyMode;
use super::state::RespState;
use super::transaction::Transaction;
use crate::access::{Access, Caller, CertificateNames};
use crate::clients::tracker::ConnectionGuard;
use crate::error::{Cause, Error, shown};
use crate::service::{CachedSource, Route, Service};

/// State of a connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) state: Arc<RespState>,
    /// The service, acting for the client.
    pub(super) service: Service,
    /// Whether the client still has to authenticate.
    pub(super) is_anonymous: bool,
    /// Whether each ID counts toward a rate.
    is_limited: bool,
    /// Generation of the tokens that decided this.
    generation: u64,
    /// Names in the client's certificate.
    names: CertificateNames,
    pub(super) guard: Arc<ConnectionGuard>,
    pub(super) protocol: Protocol,
    /// Error of the last command, for the access log.
    pub(super) last_error: Mutex<Option<Code>>,
    /// Last used source: most clients use one again and again.
    source: Option<CachedSource>,
    /// Commands since `MULTI`.
    pub(super) transaction: Option<Box<Transaction>>,
    /// Whether the commands of a transaction are running.
    pub(super) is_executing: bool,
    /// Selected database.
    pub(super) database: Database,
    /// Whether the client wants IDs of every source as strings.
    wants_strings: bool,
    pub(super) reply_mode: ReplyMode,
    /// `CLIENT TRACKING`, if it is on.
    pub(super) tracking: Option<Tracking>,
    /// Whether the client has asked for a cache of the next command or transaction (`CLIENT
    /// CACHING YES`).
    pub(super) wants_cache: bool,
}

/// Database of a connection: all have the same sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Database {
    /// 0, with which every connection begins.
    #[default]
    Plain,
    /// 1: IDs of every source are strings. The options of nearly every client, and URLs of Redis,
    /// have a database, which the client selects before its first command.
    Strings,
}

/// `CLIENT TRACKING ON OPTIN`: nothing is tracked until the client asks for it, which fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tracking {
    /// Whether it was turned on with `NOLOOP`.
    pub(super) has_no_loop: bool,
}

impl Session {
    pub(super) fn new(
        state: Arc<RespState>,
        guard: Arc<ConnectionGuard>,
        names: CertificateNames,
    ) -> Self {
        let service = state.service.clone();
        let generation = service.access().map_or(0, Access::generation);
        let mut session = Self {
            state,
            service,
            is_anonymous: false,
            is_limited: false,
            generation,
            names,
            guard,
            protocol: Protocol::default(),
            last_error: Mutex::default(),
            source: None,
            transaction: None,
            is_executing: false,
            database: Database::default(),
            wants_strings: false,
            reply_mode: ReplyMode::default(),
            tracking: None,
            wants_cache: false,
        };
        session.is_now(session.anonymous());
        session.select(Database::default());
        session
    }

    /// Returns the client before `AUTH`: the caller that its certificate names, if any.
    fn anonymous(&self) -> Caller {
        let service = &self.state.service;
        let from = self.guard.connection();
        match service.access() {
            Some(access) => access.caller_named(&self.names, from),
            None => service.caller().clone().over(from),
        }
    }

    /// Makes this caller the client from now on. The cached source has to be looked up again, with
    /// its rights.
    pub(super) fn is_now(&mut self, caller: Caller) {
        self.source = None;
        self.is_anonymous = !caller.is_known();
        self.is_limited = caller.is_limited();
        self.service = self.state.service.for_caller(caller);
    }

    /// Follows a change of tokens: the client may have lost its token, or some of its rights. A
    /// token also expires without a change.
    pub(super) fn follow(&mut self) {
        let Some(generation) = self.service.access().map(Access::generation) else { return };
        let has_expired = !self.is_anonymous && !self.service.caller().is_known();
        if generation != self.generation || has_expired {
            // Set before the decision: a change meanwhile is followed at the next read.
            self.generation = generation;
            // The certificate may map to another token now, or to a first one.
            let now = self.service.caller();
            let caller = if now.has_shown() { now.clone() } else { self.anonymous() };
            self.is_now(caller);
        }
    }

    /// Records the error of a command.
    pub(super) fn refused(&self, code: Code, cause: Option<&Cause>) {
        *lock(&self.last_error) = Some(code);
        self.service.record_error(code, cause);
    }

    /// Aborts the transaction after an error of a queued command: none of its commands will run.
    pub(super) fn abort_transaction(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.abort();
        }
    }

    /// Returns a writer of replies in the client's protocol version.
    #[inline]
    pub(super) fn reply<'a>(&self, output: &'a mut Vec<u8>) -> Encoder<'a> {
        Encoder::new(output, self.protocol)
    }

    /// Parses an argument like [`IdTarget::counter`], if its source is the cached one: returns the
    /// source, and the key.
    #[inline]
    pub(super) fn cached_target<'a>(&self, arg: &'a [u8]) -> Option<(&Source, Option<&'a [u8]>)> {
        let cached = self.source.as_ref()?;
        let (name, source) = (cached.name().as_bytes(), cached.source());
        let default = self.state.settings.default_counter_source.as_bytes();
        if !default.is_empty() {
            return (default == name).then_some((source, Some(arg)));
        }
        match arg.strip_prefix(name)? {
            [] => Some((source, None)),
            [b':', key @ ..] => Some((source, Some(key))),
            _ => None,
        }
    }

    /// Takes one ID of the cached source from the caller's rate, if it has one. So requests that
    /// come together get replies together, and each is counted.
    #[inline]
    pub(super) fn spend(&self) -> Result<(), Error> {
        match &self.source {
            Some(cached) if self.is_limited => self.service.caller().spend(cached.name(), 1),
            _ => Ok(()),
        }
    }

    /// Returns the cached source.
    pub(super) fn cached_source(&self) -> Option<&Source> {
        self.source.as_ref().map(CachedSource::source)
    }

    /// Returns whether the IDs of a source are integers in replies, and not strings.
    #[inline]
    pub(super) fn writes_integers(&self, source: &Source) -> bool {
        source.is_decimal() && !self.wants_strings
    }

    /// Returns whether the client wants IDs of every source as strings.
    pub(super) const fn wants_strings(&self) -> bool {
        self.wants_strings
    }

    /// Selects a database.
    pub(super) fn select(&mut self, database: Database) {
        self.database = database;
        lock(&self.guard.connection().label).database = u8::from(database == Database::Strings);
        self.wants_strings = database == Database::Strings || self.state.settings.strings;
    }

    /// Returns the servers that may serve the key of a counter. The owner serves it for a command
    /// of a transaction, too: it may have become the owner after `EXEC` had begun, and a client
    /// does not follow an owner in the middle of a transaction.
    pub(super) fn route(&self) -> Route {
        if self.is_executing || self.state.settings.forward_counters {
            Route::Owner
        } else {
            Route::Ordered
        }
    }

    /// Caches a source.
    pub(super) fn keep_source(&mut self, name: &str, source: Source) {
        if self.source.as_ref().is_none_or(|cached| cached.name() != name) {
            self.source = Some(self.service.keep(name, source));
        }
    }

    /// Notes an issued ID of the cached source.
    #[inline]
    pub(super) fn issued(&mut self) {
        if let Some(cached) = &mut self.source {
            cached.issued();
        }
    }

    /// Counts the issued IDs: once for all requests that came together.
    pub(super) fn count_issued(&mut self) {
        if let Some(cached) = &mut self.source {
            cached.count_issued();
        }
    }

    /// Forgets the cached source after an error: it may have been deleted or replaced.
    pub(super) fn forget_source(&mut self) {
        self.source = None;
    }

    /// Sets the version of the replies from now on.
    pub(super) fn speaks(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        lock(&self.guard.connection().label).is_version_three = protocol == Protocol::Resp3;
    }

    /// Sets what `CLIENT TRACKING` is from now on.
    pub(super) fn set_tracking(&mut self, tracking: Option<Tracking>) {
        self.tracking = tracking;
        self.wants_cache = false;
        lock(&self.guard.connection().label).is_tracking = tracking.is_some();
    }

    /// Restores the state of a new connection.
    pub(super) fn reset(&mut self) {
        self.speaks(Protocol::default());
        self.transaction = None;
        self.select(Database::default());
        self.reply_mode = ReplyMode::default();
        self.set_tracking(None);
        self.guard.connection().forget_caller();
        self.is_now(self.anonymous());
        lock(&self.guard.connection().label).name.clear();
    }
}

/// Target of a request for IDs: `source`, or `source:key`.
#[derive(Clone, Debug)]
pub(super) struct IdTarget {
    pub(super) source: String,
    pub(super) key: Option<String>,
}

impl IdTarget {
    /// Reads the argument of `INCR`, `INCRBY` and `GET`: a key of the default counter source, if
    /// one is set.
    pub(super) fn counter(arg: &[u8], default: &str) -> Result<Self, Error> {
        if default.is_empty() {
            return Self::read(arg);
        }
        Ok(Self { source: default.to_owned(), key: Some(text(arg)?.to_owned()) })
    }

    /// Reads a source and the key after it, each an argument of its own.
    pub(super) fn field(source: &[u8], key: &[u8]) -> Result<Self, Error> {
        Ok(Self { source: text(source)?.to_owned(), key: Some(text(key)?.to_owned()) })
    }

    pub(super) fn read(arg: &[u8]) -> Result<Self, Error> {
        let text = text(arg)?;
        Ok(match split(text) {
            (source, None) => Self { source: source.to_owned(), key: None },
            (source, Some(key)) => Self { source: source.to_owned(), key: Some(key.to_owned()) },
        })
    }
}

/// Splits a text into a source and the key after it.
fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        None => (text, None),
        Some((source, key)) => (source, Some(key)),
    }
}

/// Returns an argument that must be text.
pub(super) fn text(arg: &[u8]) -> Result<&str, Error> {
    str::from_utf8(arg).map_err(|_| {
        let lossy = String::from_utf8_lossy(arg);
        Error::bad_request(format!(
            "argument {} is not UTF-8; write it as UTF-8 (Spring: StringRedisTemplate)",
            shown(&lossy)
        ))
    })
}
