//! Forwarding of requests for IDs of a global order, in the batches of a real server ([`Batcher`]).
//! The network fails, machines freeze, and callers abandon their requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_coord::batcher::{Batcher, Forward};
use snowmint_coord::{Error, ErrorKind, IdBatch, Result, Source};
use tokio::task::JoinHandle;

use super::machine::{Machine, Process};
use super::monotonicity::OrderedRequest;
use super::network::NetworkConditions;
use super::planted::Bug;
use super::random::SimRng;
use super::time::{Gate, Life, TrueTime};
use super::world::World;
use crate::history::Checked;

/// Most IDs of one call, so that some batches are cut.
const BATCH_MAX: u32 = 50;
/// Time limits in milliseconds: for minting at the called process, and for its response.
const MINT_WITHIN_MS: u64 = 2_000;
const RESPONSE_WITHIN_MS: u64 = 4_000;

/// A process that can be called.
#[derive(Clone, Debug)]
struct Other {
    source: Source,
    gate: Gate,
    /// Ends when the process is killed: IDs that it minted then reach no caller.
    life: Life,
}

/// Processes that can be called, by their addresses. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Reached(Arc<Mutex<BTreeMap<String, Other>>>);

impl Reached {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Other>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a process that is gone.
    pub(super) fn forget(&self, address: &str) {
        self.all().remove(address);
    }
}

/// One machine's connection to the others.
#[derive(Debug)]
pub(super) struct MachineLink {
    reached: Reached,
    conditions: Arc<NetworkConditions>,
    rng: SimRng,
    time: TrueTime,
    /// Gate of the calling machine.
    gate: Gate,
    /// Planted bug: surplus IDs of a call are kept for later callers.
    surplus: Option<Mutex<Vec<u64>>>,
}

impl MachineLink {
    pub(super) fn new(
        reached: &Reached,
        conditions: &Arc<NetworkConditions>,
        gate: &Gate,
        rng: &SimRng,
        time: &TrueTime,
        bug: Option<Bug>,
    ) -> Batcher<Self> {
        Batcher::new(Self {
            reached: reached.clone(),
            conditions: Arc::clone(conditions),
            rng: rng.clone(),
            time: time.clone(),
            gate: gate.clone(),
            surplus: (bug == Some(Bug::SurplusToALaterRequest)).then(Mutex::default),
        })
    }

    /// Returns IDs that another machine mints, if the request gets there, and the response back.
    async fn minted(&self, address: &str, count: u64) -> Result<Vec<u64>> {
        let is_faulty = || self.conditions.is_bad(&self.rng);
        if is_faulty() {
            return Err(not_reached(address));
        }
        self.time.sleep_ms(self.rng.between(1, 200)).await;
        let other = self.reached.all().get(address).cloned();
        let Other { source, gate, life } = other.ok_or_else(|| not_reached(address))?;
        let count = u32::try_from(count).unwrap();
        let mints = async move {
            // A frozen machine has the request in a buffer.
            gate.pass().await;
            let minted = source.mint(count, None, MINT_WITHIN_MS).await;
            gate.pass().await;
            minted
        };
        let minted = tokio::select! {
            biased;
            () = life.ended() => return Err(not_reached(address)),
            minted = mints => minted,
        };
        self.time.sleep_ms(self.rng.between(1, 200)).await;
        if is_faulty() {
            return Err(not_reached(address));
        }
        match minted? {
            IdBatch::Numbers(ids) => Ok(ids),
            other => panic!("not numbers: {other:?}"),
        }
    }

    async fn in_time(&self, address: &str, count: u64) -> Result<Vec<u64>> {
        tokio::select! {
            biased;
            ids = self.minted(address, count) => ids,
            () = self.time.sleep_ms(RESPONSE_WITHIN_MS) => Err(not_reached(address)),
        }
    }
}

impl Forward for MachineLink {
    type Error = Arc<Error>;

    async fn ask(
        &self,
        _source: &str,
        address: &str,
        count: u64,
    ) -> std::result::Result<Vec<u64>, Arc<Error>> {
        let wanted = usize::try_from(count).unwrap();
        let kept = |surplus: &Mutex<Vec<u64>>| {
            let mut surplus = surplus.lock().unwrap_or_else(PoisonError::into_inner);
            (surplus.len() >= wanted).then(|| surplus.drain(..wanted).collect())
        };
        if let Some(ids) = self.surplus.as_ref().and_then(kept) {
            return Ok(ids);
        }
        self.gate.pass().await;
        let more = if self.surplus.is_some() { 2 } else { 1 };
        let ids = self.in_time(address, count * more).await;
        self.gate.pass().await;
        let mut ids = ids.map_err(Arc::new)?;
        if let Some(surplus) = &self.surplus {
            *surplus.lock().unwrap_or_else(PoisonError::into_inner) = ids.split_off(wanted);
        }
        Ok(ids)
    }

    fn batch_max(&self) -> u32 {
        BATCH_MAX
    }

    fn ends(&self) -> Arc<Error> {
        Arc::new(not_reached("ourselves"))
    }
}

fn not_reached(address: &str) -> Error {
    Error::unavailable(format!("machine at {address} is unavailable; retry"))
}

/// A forwarded request.
#[derive(Debug)]
pub(super) struct ForwardedRequest {
    index: usize,
    life: u32,
    /// Number that the response must exceed.
    floor: u64,
    response: JoinHandle<std::result::Result<Vec<u64>, Arc<Error>>>,
}

impl World {
    /// Sends several requests to a machine that may not mint itself, which forwards them. Some are
    /// abandoned at once.
    pub(super) fn forward(&mut self, index: usize) {
        self.update_reached();
        let Some(source) = self.rising_source(index, OrderedRequest::Order) else { return };
        let Err(error) = source.try_mint() else { return };
        let ErrorKind::NotOwner { address, .. } = error.kind() else { return };
        for _ in 0..self.rng.between(1, 4) {
            let Some(batcher) = self.machines[index].batcher.clone() else { return };
            let address = address.clone();
            let count = u32::try_from(self.rng.between(1, 20)).unwrap();
            let floor = self.monotonicity.floor(&OrderedRequest::Order);
            let response =
                tokio::spawn(async move { batcher.fetch("ordered", address, count).await });
            let life = self.machines[index].life;
            self.forwarded.push(ForwardedRequest { index, life, floor, response });
        }
        if self.rng.percent(30)
            && let Some(given_up) = self.forwarded.pop()
        {
            given_up.response.abort();
        }
    }

    /// Checks the responses to forwarded requests.
    pub(super) async fn check_forwarded(&mut self) -> Checked {
        let (done, forwarded) = std::mem::take(&mut self.forwarded)
            .into_iter()
            .partition(|one| one.response.is_finished());
        self.forwarded = forwarded;
        let done: Vec<ForwardedRequest> = done;
        for one in done {
            // A process that was killed meanwhile has responded to no caller.
            let lives = self.machines[one.index].life == one.life
                && matches!(self.machines[one.index].process, Process::Running(..));
            let Ok(Ok(ids)) = one.response.await else { continue };
            if lives {
                self.count("forwarded");
                let numbers = (ids[0], ids[ids.len() - 1]);
                self.rose(one.index, OrderedRequest::Order, one.floor, numbers)?;
            }
        }
        Ok(())
    }

    fn update_reached(&self) {
        let all = self.machines.iter().enumerate().filter_map(|(index, machine)| {
            let Process::Running(_, sources) = &machine.process else { return None };
            let source = sources.iter().flatten().find(|source| source.name() == "ordered")?;
            let (source, gate) = (source.clone(), machine.gate.clone());
            let other = Other { source, gate, life: machine.runs.clone() };
            Some((Machine::address(index), other))
        });
        *self.reached.all() = all.collect();
    }
}
