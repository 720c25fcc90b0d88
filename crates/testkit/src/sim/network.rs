//! A store behind a network: requests and replies are late, get lost, or arrive a second time, much
//! later, when their sender is long gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use snowmint_coord::{BoxFuture, Error, Result, Store, StoreCall, StoreReply, Verb, VerbKind};

use super::happened::Happened;
use super::oracle::Oracle;
use super::planted::Bug;
use super::random::SimRng;
use super::time::{Gate, TrueTime};
use crate::history::Check;

/// Time in milliseconds that is longer than any wait for a call, frozen or not.
const NEVER_MS: u64 = 600_000;

/// Faults of a network, for all that goes through it.
#[derive(Debug, Default)]
pub(super) struct NetworkConditions {
    /// Percentage of calls with a fault.
    pub(super) fault_percent: AtomicU64,
    /// Whether nothing gets through.
    pub(super) away: AtomicBool,
    /// Whether claims arrive, and their replies get lost.
    pub(super) claims_unanswered: AtomicBool,
    /// Delay of replies in milliseconds, while requests arrive at once.
    pub(super) replies_late_ms: AtomicU64,
    /// Delay of the next acquire in milliseconds.
    pub(super) acquire_late_ms: AtomicU64,
    /// Time in milliseconds for which the next call begins a transaction and stops: all other calls
    /// wait for it.
    pub(super) holds_up_ms: AtomicU64,
    /// Whether reads come from a server that lags.
    pub(super) reads_behind: AtomicBool,
}

impl NetworkConditions {
    /// Lets everything through from now on.
    pub(super) fn calm(&self) {
        self.fault_percent.store(0, Ordering::SeqCst);
        self.away.store(false, Ordering::SeqCst);
        self.holds_up_ms.store(0, Ordering::SeqCst);
        self.acquire_late_ms.store(0, Ordering::SeqCst);
    }

    /// Returns whether a message to another machine gets lost.
    pub(super) fn is_bad(&self, rng: &SimRng) -> bool {
        self.away.load(Ordering::SeqCst) || rng.percent(self.fault_percent.load(Ordering::SeqCst))
    }
}

/// The store's end of the network, the same for all processes.
#[derive(Debug)]
pub(super) struct StoreLink {
    pub(super) up: AtomicBool,
    /// Number of times that all connections were cut. Messages that were in flight never arrive.
    cuts: AtomicU64,
    /// Time until which a stopped transaction delays all other calls.
    held_until_ms: AtomicU64,
    /// Whether the address leads to a promoted replica: another server than the one whose marks it
    /// has.
    pub(super) replica: AtomicBool,
    pub(super) happened: Happened,
}

impl StoreLink {
    pub(super) fn new() -> Self {
        Self {
            up: AtomicBool::new(true),
            cuts: AtomicU64::new(0),
            held_until_ms: AtomicU64::new(0),
            replica: AtomicBool::new(false),
            happened: Happened::default(),
        }
    }

    /// Cuts all connections. A server also ends the transactions that were begun with it.
    pub(super) fn cut(&self) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
        self.let_on();
    }

    /// Ends the delay by a stopped transaction.
    pub(super) fn let_on(&self) {
        self.held_until_ms.store(0, Ordering::SeqCst);
    }

    pub(super) fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }

    /// Returns whether a message that was sent after this many cuts arrives now.
    pub(super) fn carries(&self, cuts: u64) -> bool {
        self.up.load(Ordering::SeqCst) && self.cuts() == cuts
    }
}

/// One node's connection to the store.
#[derive(Debug)]
pub(super) struct Faulty {
    pub(super) inner: Arc<dyn Store>,
    pub(super) conditions: Arc<NetworkConditions>,
    pub(super) link: Arc<StoreLink>,
    pub(super) oracle: Oracle,
    pub(super) rng: SimRng,
    pub(super) time: TrueTime,
    pub(super) gate: Gate,
    /// Planted bug: a renewal counts from its reply. The value: whether a reply came that is to be
    /// counted.
    pub(super) counts_from_reply: Option<AtomicBool>,
}

enum Delivery {
    Fine,
    Late { there_ms: u64, back_ms: u64 },
    RequestLost,
    ReplyLost,
    Twice { later_ms: u64 },
    Never,
}

impl Faulty {
    /// Returns the state of the planted bug: see [`counts_from_reply`](Self::counts_from_reply).
    pub(super) fn planted(bug: Option<Bug>) -> Option<AtomicBool> {
        (bug == Some(Bug::LeaseFromTheReply)).then(AtomicBool::default)
    }

    /// Returns the delay of a message in milliseconds: sometimes longer than its sender lives.
    fn late_ms(&self) -> u64 {
        match self.rng.below(10) {
            0..=6 => self.rng.between(1, 4_000),
            7..=8 => self.rng.between(4_000, 40_000),
            _ => self.rng.between(40_000, 150_000),
        }
    }

    fn delivery(&self) -> Delivery {
        if self.conditions.away.load(Ordering::SeqCst) || !self.link.up.load(Ordering::SeqCst) {
            return Delivery::RequestLost;
        }
        if let Some(delivery) = self.held_up() {
            return delivery;
        }
        let back_ms = self.conditions.replies_late_ms.load(Ordering::SeqCst);
        if back_ms > 0 {
            return Delivery::Late { there_ms: 0, back_ms };
        }
        if !self.rng.percent(self.conditions.fault_percent.load(Ordering::SeqCst)) {
            return Delivery::Fine;
        }
        match self.rng.below(6) {
            0 => Delivery::RequestLost,
            1 => Delivery::ReplyLost,
            2 => Delivery::Twice { later_ms: self.late_ms() },
            3 => Delivery::Never,
            // Sometimes later than any caller waits.
            _ => Delivery::Late { there_ms: self.late_ms(), back_ms: self.rng.between(1, 4_000) },
        }
    }

    /// Returns the delivery of a call that delays the others, and of the others.
    fn held_up(&self) -> Option<Delivery> {
        let now_ms = self.time.now_ms();
        let holds_ms = self.conditions.holds_up_ms.swap(0, Ordering::SeqCst);
        if holds_ms > 0 {
            self.link.held_until_ms.store(now_ms + holds_ms, Ordering::SeqCst);
            self.link.happened.count("a call holds the others up");
            // It ends well, or is undone.
            let ends_well = self.rng.percent(50);
            return Some(if ends_well {
                Delivery::Late { there_ms: holds_ms, back_ms: 0 }
            } else {
                Delivery::Never
            });
        }
        let there_ms = self.link.held_until_ms.load(Ordering::SeqCst).saturating_sub(now_ms);
        (there_ms > 0).then_some(Delivery::Late { there_ms, back_ms: 0 })
    }

    /// Applies nothing, and sends no reply. The caller must end the wait by itself.
    async fn never(&self, verb: Verb) {
        self.link.happened.count("a call never ends");
        self.time.sleep_ms(NEVER_MS).await;
        let what = format!("{verb} was waited for for {NEVER_MS} ms");
        self.oracle.fail(Check::Bound.broken(what));
    }
}

fn away() -> Result<StoreReply> {
    Err(Error::unavailable("simulated store is unavailable; retry"))
}

impl Faulty {
    /// Sends a call through the network.
    async fn send(&self, call: StoreCall<'_>) -> Result<StoreReply> {
        let (store, link, time) = (&self.inner, Arc::clone(&self.link), self.time.clone());
        let cuts = link.cuts();
        let result = match self.delivery() {
            Delivery::Fine => store.call(call).await,
            Delivery::Late { there_ms, back_ms } => {
                let message = call.detached(Arc::clone(store));
                // In its own task: the message arrives although the caller no longer waits for the
                // reply.
                let sent = tokio::spawn(async move {
                    time.sleep_ms(there_ms).await;
                    if !link.carries(cuts) {
                        return away();
                    }
                    let result = message.await;
                    time.sleep_ms(back_ms).await;
                    result
                });
                sent.await.unwrap_or_else(|_| away())
            }
            Delivery::RequestLost => away(),
            Delivery::Never => {
                self.never(call.verb()).await;
                away()
            }
            Delivery::ReplyLost => {
                let _ = store.call(call).await;
                away()
            }
            Delivery::Twice { later_ms } => {
                let result = store.call(call).await;
                let (message, cuts) = (call.detached(Arc::clone(store)), link.cuts());
                tokio::spawn(async move {
                    time.sleep_ms(later_ms).await;
                    if link.carries(cuts) {
                        let _ = message.await;
                    }
                });
                result
            }
        };
        // A frozen process receives nothing until it resumes.
        self.gate.pass().await;
        result
    }
}

impl Store for Faulty {
    snowmint_coord::as_inner!(inner);

    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        Box::pin(async move {
            match (call, &self.counts_from_reply) {
                // Operators are next to the store.
                _ if call.verb().kind() == VerbKind::Operate => self.inner.call(call).await,
                (StoreCall::Ground {}, _) => self.inner.call(call).await,
                // The process counts from before it sends. To make it count from the reply, the
                // reply is withheld until it sends again, which it does at once.
                (StoreCall::Renew { .. }, Some(counts_now)) => {
                    if counts_now.swap(false, Ordering::SeqCst) {
                        return Ok(StoreReply::Renew(()));
                    }
                    self.send(call).await?;
                    counts_now.store(true, Ordering::SeqCst);
                    away()
                }
                (StoreCall::Claim { .. }, _)
                    if self.conditions.claims_unanswered.load(Ordering::SeqCst) =>
                {
                    let _ = self.inner.call(call).await;
                    away()
                }
                (StoreCall::Acquire { .. }, _) => {
                    let late_ms = self.conditions.acquire_late_ms.swap(0, Ordering::SeqCst);
                    if late_ms > 0 {
                        self.time.sleep_ms(late_ms).await;
                    }
                    self.send(call).await
                }
                _ => self.send(call).await,
            }
        })
    }
}
