//! Several servers as one: the choice of the server, the retries, and the time limits.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use snowmint_coord::error::chain;
use snowmint_coord::{Error, ErrorKind, History, Result, Timer, lock, random, within};
use snowmint_core::ElapsedMillis;

use crate::budget::Budget;
use crate::call_failure::{CallFailure, at};
use crate::connect_options::ConnectOptions;
use crate::link::ServerLink;
use crate::servers_url::ServersUrl;
use crate::settings::{ClientDeps, Settings};

/// Pause after all servers have failed once, in milliseconds: at first and at most.
const PAUSE_MS_MIN: u64 = 25;
const PAUSE_MS_MAX: u64 = 400;
/// Shortest time for an attempt, in milliseconds: no server responds faster.
const ATTEMPT_MS_MIN: u64 = 5;
/// Longest wait, in milliseconds, when a server asks for a later retry.
const LATER_MS_MAX: u64 = 100;

/// Options of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Whether it may be retried when its outcome is unknown.
    pub(crate) again: bool,
    /// Time limit for all attempts together.
    pub(crate) within_ms: u64,
    /// Time limit for one server.
    pub(crate) attempt_ms: u64,
}

/// The servers of one store.
pub(crate) struct Servers {
    all: Vec<LinkedServer>,
    /// Index of the server that responded last, which is called first.
    preferred: AtomicUsize,
    /// Whether calls are rejected.
    closed: AtomicBool,
    connect_options: ConnectOptions,
    namespace: String,
    /// Name of the secondary store; empty for the servers' primary store.
    secondary_store: String,
    /// The expected store.
    known: Mutex<Option<PinnedStore>>,
    budget: Mutex<Budget>,
    settings: Settings,
    timer: Arc<dyn Timer>,
}

/// Identity of the expected store, from the journal or from the first server that responded.
struct PinnedStore {
    identity: String,
    reported_by: String,
}

struct LinkedServer {
    address: Arc<str>,
    link: Mutex<Option<ServerLink>>,
    /// Lock of the task that connects; other tasks wait for it.
    connecting: tokio::sync::Mutex<()>,
}

impl Servers {
    pub(crate) fn new(
        servers_url: ServersUrl,
        (namespace, secondary_store): (&str, &str),
        settings: Settings,
        deps: ClientDeps,
    ) -> Result<Self> {
        let ClientDeps { credentials, timer } = deps;
        let server = |address: String| LinkedServer {
            address: address.into(),
            link: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        };
        let all: Vec<_> = servers_url.servers.into_iter().map(server).collect();
        // A random start spreads the clients over the servers.
        let chance = usize::try_from(random::number()? % 0xffff).unwrap_or(0);
        let Settings { retries_at_once, retries_per_second, .. } = settings;
        let budget = Budget::new(retries_at_once, retries_per_second, timer.elapsed());
        Ok(Self {
            preferred: AtomicUsize::new(chance.checked_rem(all.len()).unwrap_or(0)),
            all,
            connect_options: ConnectOptions {
                tls: servers_url.tls,
                token: servers_url.token,
                credentials,
                connect_ms: settings.connect_ms,
            },
            closed: AtomicBool::new(false),
            namespace: namespace.to_owned(),
            secondary_store: secondary_store.to_owned(),
            known: Mutex::default(),
            budget: Mutex::new(budget),
            settings,
            timer,
        })
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sets the identity that an earlier process has seen, which outranks that of the first server
    /// called.
    pub(crate) fn remember(&self, identity: &str) {
        let identity = History::of(identity).store;
        let mut known = lock(&self.known);
        let is_known = known.as_ref().is_some_and(|known| known.identity == identity);
        if identity.is_empty() || is_known {
            return;
        }
        *known = Some(PinnedStore { identity, reported_by: "this program's journal".into() });
        drop(known);
        // The identity is checked when a connection is made.
        self.all.iter().for_each(|server| *lock(&server.link) = None);
    }

    /// Requests descriptions from all servers concurrently, and rejects two different stores.
    /// Otherwise the first server called would decide, and the next program may call another first.
    /// Servers without a response in time are skipped.
    pub(crate) async fn compare(&self) -> Result<()> {
        if self.all.len() < 2 {
            return Ok(());
        }
        let connect_ms = self.settings.connect_ms.min(self.settings.call_ms);
        let links = self.all.iter().map(|server| self.link(server));
        let links = links.map(|link| within(&*self.timer, connect_ms, link));
        let mut described = join_all(links).await.into_iter().flatten();
        let other = described.find_map(|described| match described {
            Err(CallFailure::WrongServer(error))
                if matches!(error.kind(), ErrorKind::StoreMismatch) =>
            {
                Some(error)
            }
            _ => None,
        });
        other.map_or(Ok(()), Err)
    }

    /// Ends the connections for good; calls in flight keep theirs until they end.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.all.iter().for_each(|server| *lock(&server.link) = None);
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Calls one server after the other until one responds, time is up, or a retry is of no use.
    pub(crate) async fn ask<T, F>(&self, call: Call, ask: impl Fn(ServerLink) -> F) -> Result<T>
    where
        F: Future<Output = Result<T, CallFailure>>,
    {
        if self.is_closed() {
            return Err(Error::closed("connection to the servers is closed; open the store again"));
        }
        let deadline = self.timer.elapsed().saturating_add(call.within_ms);
        let mut index = self.preferred.load(Ordering::Relaxed);
        let mut failures: usize = 0;
        // Number of consecutive servers that are not the right one.
        let mut wrong: usize = 0;
        let mut earlier = None;
        loop {
            let call_failure = match self.attempt(index, call, deadline, &ask).await {
                Ok(result) => {
                    self.preferred.store(index, Ordering::Relaxed);
                    return Ok(result);
                }
                Err(call_failure) if call.again => call_failure,
                Err(call_failure) => call_failure.of_one_call(),
            };
            wrong = if matches!(call_failure, CallFailure::WrongServer(_)) { wrong + 1 } else { 0 };
            let (error, wait_ms) = match call_failure {
                // The earlier error says more.
                CallFailure::DeadlineTooShort(error) => {
                    // The next call begins at another server: this one may be gone.
                    self.after(index);
                    return Err(earlier.unwrap_or(error));
                }
                CallFailure::Refused(error) | CallFailure::Unauthenticated(error) => {
                    return Err(error);
                }
                CallFailure::Unknown(error) | CallFailure::BackendLost(error) if !call.again => {
                    return Err(error);
                }
                // Every server was called once, and the store is unreachable.
                CallFailure::BackendLost(error) if failures + 1 >= self.all.len() => {
                    return Err(error);
                }
                // No server is the right one.
                CallFailure::WrongServer(error) if wrong >= self.all.len() => return Err(error),
                CallFailure::RetryAfter(error, ms) => (error, ms.clamp(PAUSE_MS_MIN, LATER_MS_MAX)),
                // An earlier retry would be rejected again. So these retries are few, and use up no
                // retries of other calls.
                CallFailure::RateLimited(error, ms) if ms > 0 => (error, ms.max(PAUSE_MS_MIN)),
                CallFailure::RateLimited(error, ms) => {
                    self.wait_to_repeat(deadline).await.map_err(|()| error.clone())?;
                    (error, ms)
                }
                CallFailure::NotApplied(error)
                | CallFailure::Unknown(error)
                | CallFailure::BackendLost(error)
                | CallFailure::WrongServer(error) => {
                    tracing::debug!(error = %chain(&error), "server failed; calling another");
                    index = self.after(index);
                    failures += 1;
                    let error = match (wrong, earlier) {
                        (0, _) => error,
                        // No server that may be the right one has responded.
                        (_, Some(earlier)) => earlier,
                        (_, None) => self.not_called(index, &error),
                    };
                    // Only repeats need the budget: a call's first attempt at each server does not
                    // hold servers in trouble down.
                    if failures >= self.all.len() {
                        self.wait_to_repeat(deadline).await.map_err(|()| error.clone())?;
                    }
                    (error, self.pause_ms(failures))
                }
                CallFailure::Degraded(error, ms) => {
                    index = self.after(index);
                    failures += 1;
                    (error, ms.clamp(PAUSE_MS_MIN, LATER_MS_MAX))
                }
            };
            if deadline.since(self.timer.elapsed()) <= wait_ms.max(ATTEMPT_MS_MIN) {
                return Err(error);
            }
            if wait_ms > 0 {
                self.timer.sleep_ms(wait_ms).await;
            }
            earlier = Some(error);
        }
    }

    /// Returns the error when time runs out before this server is called, which may be the right
    /// one when another is not.
    fn not_called(&self, index: usize, before: &Error) -> Error {
        let address = self.all.get(index).map_or("", |server| &server.address);
        let last = before.message();
        let error =
            Error::unavailable(format!("no time left to call a server; last error: {last}"));
        match before.detail() {
            Some(detail) => error.with_detail(format!("server {address}, last error: {detail}")),
            None => at(address, error),
        }
    }

    /// Waits until the budget allows a retry; fails when the deadline comes first.
    async fn wait_to_repeat(&self, deadline: ElapsedMillis) -> Result<(), ()> {
        loop {
            let now = self.timer.elapsed();
            let spent = lock(&self.budget).try_spend(now);
            let Err(wait_ms) = spent else { return Ok(()) };
            if deadline.since(now) <= wait_ms {
                return Err(());
            }
            self.timer.sleep_ms(wait_ms).await;
        }
    }

    /// Returns the pause in milliseconds: none until every server was called once more, then longer
    /// each time.
    fn pause_ms(&self, failures: usize) -> u64 {
        let rounds = failures.checked_div(self.all.len()).unwrap_or(0);
        if rounds.saturating_mul(self.all.len()) != failures {
            return 0;
        }
        let doubled = u32::try_from(rounds.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
        (PAUSE_MS_MIN << doubled).min(PAUSE_MS_MAX)
    }

    /// Returns the server to call after this one; later calls start there.
    fn after(&self, index: usize) -> usize {
        let next = (index + 1).checked_rem(self.all.len()).unwrap_or(0);
        let relaxed = Ordering::Relaxed;
        let _ = self.preferred.compare_exchange(index, next, relaxed, relaxed);
        next
    }

    async fn attempt<T, F>(
        &self,
        index: usize,
        call: Call,
        deadline: ElapsedMillis,
        ask: &impl Fn(ServerLink) -> F,
    ) -> Result<T, CallFailure>
    where
        F: Future<Output = Result<T, CallFailure>>,
    {
        let timer = &*self.timer;
        let left_ms = || deadline.since(timer.elapsed());
        let Some(server) = self.all.get(index) else {
            return Err(CallFailure::Refused(Error::internal(format!(
                "internal error: no server at index {index}; please report it"
            ))));
        };
        let connect_ms = self.settings.connect_ms.min(left_ms());
        let link = within(timer, connect_ms, self.link(server)).await;
        let link = link.unwrap_or_else(|| {
            let error = Error::unavailable(format!(
                "server did not connect within {connect_ms} ms; check that it runs and is reachable"
            ));
            let error = at(&server.address, error);
            let is_cut_short = connect_ms < self.settings.connect_ms;
            Err(if is_cut_short {
                CallFailure::DeadlineTooShort(error)
            } else {
                CallFailure::NotApplied(error)
            })
        })?;
        let attempt_ms = call.attempt_ms.min(left_ms());
        let result = within(timer, attempt_ms, ask(link.clone())).await.unwrap_or_else(|| {
            let error = Error::unavailable(format!(
                "server did not respond within {attempt_ms} ms; the call may have been applied"
            ));
            Err(CallFailure::Unknown(at(&server.address, error)))
        });
        match result {
            Err(CallFailure::Unauthenticated(error)) => {
                server.forget(&link);
                // Tokens are replaced: the current token may be another one.
                let is_new =
                    self.connect_options.bearer().is_ok_and(|bearer| bearer != link.bearer);
                Err(if is_new {
                    CallFailure::NotApplied(error)
                } else {
                    CallFailure::Refused(error)
                })
            }
            Err(CallFailure::NotApplied(_) | CallFailure::Unknown(_)) => {
                server.forget(&link);
                result
            }
            result => result,
        }
    }

    /// Returns the connection to a server; connects if there is none.
    async fn link(&self, server: &LinkedServer) -> Result<ServerLink, CallFailure> {
        if let Some(link) = lock(&server.link).clone() {
            return Ok(link);
        }
        let _alone = server.connecting.lock().await;
        // Another task may have connected meanwhile.
        if let Some(link) = lock(&server.link).clone() {
            return Ok(link);
        }
        let link =
            ServerLink::open(&server.address, &self.connect_options, &self.secondary_store).await?;
        self.check(&link).map_err(CallFailure::WrongServer)?;
        let mut known = lock(&server.link);
        // Under the lock: `close` clears the links after it has set the flag.
        if !self.is_closed() {
            *known = Some(link.clone());
        }
        drop(known);
        Ok(link)
    }

    /// Checks that a server offers the expected store.
    fn check(&self, link: &ServerLink) -> Result<()> {
        let described = &link.described;
        if described.namespace != self.namespace {
            let message = format!(
                "server serves namespace {:?}, expected {:?}; correct the URL or store.namespace",
                described.namespace, self.namespace
            );
            return Err(at(&link.address, Error::conflict(message)));
        }
        // The newest start in an identity changes with each process that begins to write.
        let found = described.identity.as_ref().map(|identity| History::of(&identity.id).store);
        let found = found.ok_or_else(|| {
            let message =
                "internal error: server described a store without identity; please report it";
            at(&link.address, Error::internal(message))
        })?;
        let mut known = lock(&self.known);
        let known = known.get_or_insert_with(|| PinnedStore {
            identity: found.clone(),
            reported_by: format!("server {}", link.address),
        });
        if known.identity == found {
            return Ok(());
        }
        let message = format!(
            "server has store {found}, expected {}; name servers of one store, or move this one \
             forward (snowmint worker fast-forward)",
            known.identity
        );
        let detail =
            format!("server {}; the other store is that of {}", link.address, known.reported_by);
        Err(Error::store_mismatch(message).with_detail(detail))
    }
}

impl LinkedServer {
    /// Drops the link, so that the next call connects again, unless another task has done so
    /// already.
    fn forget(&self, link: &ServerLink) {
        let mut known = lock(&self.link);
        if known.as_ref().is_some_and(|known| Arc::ptr_eq(&known.described, &link.described)) {
            *known = None;
        }
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = self.all.iter().map(|server| &server.address);
        f.debug_list().entries(addresses).finish()
    }
}
