//! A store as a network shows it: late, deaf, mute, and sometimes told the same thing twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use snowmint_coord::{
    Capabilities, Catalog, ClaimRequest, Definition, Error, ErrorKind, Extend, Extended,
    FastForward, GiveBack, Incarnation, Lease, Member, MemberInfo, NewDefinition, Presence,
    Release, Reserve, Result, Segment, SlotInfo, SourceState, Store, StoreIdentity, Timer,
};
use snowmint_core::UnixMillis;

use super::random::Chance;
use super::time::TrueTime;

/// How a network misbehaves, for everybody who goes through it.
#[derive(Debug, Default)]
pub(super) struct Weather {
    /// In how many of a hundred calls something goes wrong.
    pub(super) trouble_percent: AtomicU64,
    /// Nothing gets through at all.
    pub(super) away: AtomicBool,
}

/// One node's way to the store.
#[derive(Debug)]
pub(super) struct Faulty {
    inner: Arc<dyn Store>,
    weather: Arc<Weather>,
    chance: Chance,
    time: TrueTime,
}

enum Fate {
    Fine,
    Late { there_ms: u64, back_ms: u64 },
    QuestionLost,
    AnswerLost,
    Twice { later_ms: u64 },
}

impl Faulty {
    pub(super) fn new(
        inner: Arc<dyn Store>,
        weather: Arc<Weather>,
        chance: Chance,
        time: TrueTime,
    ) -> Self {
        Self { inner, weather, chance, time }
    }

    fn fate(&self) -> Fate {
        if self.weather.away.load(Ordering::SeqCst) {
            return Fate::QuestionLost;
        }
        if !self.chance.percent(self.weather.trouble_percent.load(Ordering::SeqCst)) {
            return Fate::Fine;
        }
        match self.chance.below(5) {
            0 => Fate::QuestionLost,
            1 => Fate::AnswerLost,
            2 => Fate::Twice { later_ms: self.chance.between(1, 5_000) },
            // Sometimes later than anybody waits for.
            _ => Fate::Late {
                there_ms: self.chance.between(1, 4_000),
                back_ms: self.chance.between(1, 4_000),
            },
        }
    }
}

fn away<T>(op: &'static str) -> Result<T> {
    Err(Error::new(op, ErrorKind::Unavailable { what: "the simulated store".into() }))
}

/// Sends a call through the weather. What is sent is cloned first: a message that arrives late, or
/// twice, arrives as it was.
macro_rules! through {
    ($self:ident, $op:literal, |$store:ident| $call:expr) => {{
        match $self.fate() {
            Fate::Fine => {
                let $store = &$self.inner;
                $call.await
            }
            Fate::Late { there_ms, back_ms } => {
                let ($store, time) = (Arc::clone(&$self.inner), $self.time.clone());
                // Its own task: the message arrives although nobody waits for the answer any more.
                let sent = tokio::spawn(async move {
                    time.sleep_ms(there_ms).await;
                    let answer = $call.await;
                    time.sleep_ms(back_ms).await;
                    answer
                });
                sent.await.unwrap_or_else(|_| away($op))
            }
            Fate::QuestionLost => away($op),
            Fate::AnswerLost => {
                let $store = &$self.inner;
                let _ = $call.await;
                away($op)
            }
            Fate::Twice { later_ms } => {
                let answer = {
                    let $store = &$self.inner;
                    $call.await
                };
                let ($store, time) = (Arc::clone(&$self.inner), $self.time.clone());
                tokio::spawn(async move {
                    time.sleep_ms(later_ms).await;
                    let _ = $call.await;
                });
                answer
            }
        }
    }};
}

#[async_trait]
impl Store for Faulty {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn namespace(&self) -> &str {
        self.inner.namespace()
    }

    async fn now(&self) -> Result<Option<UnixMillis>> {
        through!(self, "now", |store| store.now())
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        through!(self, "identity", |store| store.identity())
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        let member = member.clone();
        through!(self, "join", |store| {
            let member = member.clone();
            async move { store.join(&member, presence, now).await }
        })
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        through!(self, "renew", |store| store.renew(member, presence, now))
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        through!(self, "leave", |store| store.leave(member, now))
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        through!(self, "members", |store| store.members(now))
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        let request = request.clone();
        through!(self, "claim", |store| {
            let request = request.clone();
            async move { store.claim(&request, now).await }
        })
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        let items = items.to_vec();
        through!(self, "extend", |store| {
            let items = items.clone();
            async move { store.extend(&items, now).await }
        })
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        let release = release.clone();
        through!(self, "release", |store| {
            let release = release.clone();
            async move { store.release(&release, now).await }
        })
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        through!(self, "workers", |store| store.workers(now))
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        let reserve = reserve.clone();
        through!(self, "reserve", |store| {
            let reserve = reserve.clone();
            async move { store.reserve(&reserve).await }
        })
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        let back = back.clone();
        through!(self, "give_back", |store| {
            let back = back.clone();
            async move { store.give_back(&back).await }
        })
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        self.inner.define(new).await
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        self.inner.alter(new, if_version).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.inner.set_state(name, state).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        self.inner.get(name).await
    }

    async fn list(&self) -> Result<Catalog> {
        through!(self, "list", |store| store.list())
    }

    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        self.inner.fast_forward(forward).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
