//! A machine: its clock, its disk and its network stay while processes come and go.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use snowmint_coord::batcher::Batcher;
use snowmint_coord::journal::{Disk, Journal};
use snowmint_coord::{
    AfterCrash, Error, Node, NodeSettings, Platform, Result, Source, StoreIdentity,
};
use snowmint_core::{ManualClock, UnixMillis};
use tokio::task::JoinHandle;

use super::START_MS;
use super::disk::{Files, SimDisk};
use super::forwarding::MachineLink;
use super::network::NetworkConditions;
use super::planted::Bug;
use super::random::SimRng;
use super::time::{Gate, Life, ProcessTimer, Rate, TrueTime};
use super::wall::Wall;
use crate::history::ProcessLife;

const DATA_DIR: &str = "/data";
/// Time limit in milliseconds for a node's store call.
const STORE_CALL_MS: u64 = 5_000;

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) clock: Arc<ManualClock>,
    pub(super) wall: Wall,
    /// Rate of its elapsed time.
    pub(super) rate: Rate,
    pub(super) conditions: Arc<NetworkConditions>,
    pub(super) gate: Gate,
    pub(super) disk: SimDisk,
    pub(super) journalled: bool,
    pub(super) owner: String,
    pub(super) after_crash: AfterCrash,
    /// State of the disk at some earlier time.
    pub(super) backup: Option<(u64, Files)>,
    /// Whether an operator has moved the store forward: the next process then begins without a
    /// journal.
    pub(super) set_aside: bool,
    /// Time at which freezing ends.
    pub(super) thaws: Arc<AtomicU64>,
    pub(super) life: u32,
    /// Whether a process that finds a store in doubt stays, and reports what its journal knows.
    pub(super) waits_for_recovery: bool,
    /// Whether its journal, if any, lacks some promise to its processes.
    pub(super) forgets: bool,
    /// Whether a process may start, and mint, while the store is unreachable.
    pub(super) starts_without_store: bool,
    /// Only source that its processes open; none if they open all.
    pub(super) opens_only: Option<&'static str>,
    /// Life of the present process.
    pub(super) runs: Life,
    /// Forwarding of requests by the process.
    pub(super) batcher: Option<Batcher<MachineLink>>,
    bug: Option<Bug>,
    pub(super) process: Process,
    /// Error of the last process, which did not start.
    pub(super) refused: Option<Error>,
}

#[derive(Debug)]
pub(super) enum Process {
    Stopped,
    Starting(JoinHandle<Result<(Node, Vec<Option<Source>>)>>),
    Running(Node, Vec<Option<Source>>),
}

impl Machine {
    pub(super) fn new(index: usize, bug: Option<Bug>, rng: &SimRng, time: &TrueTime) -> Self {
        let gate = Gate::new(time.clone());
        let lies = bug == Some(Bug::JournalAfterMinting);
        let after_crash = match rng.below(10) {
            0..=6 => AfterCrash::OtherWorker,
            7..=8 => AfterCrash::Wait,
            _ => AfterCrash::Lead { max_ms: 40_000 },
        };
        let journalled = rng.percent(50);
        let is_slow = bug == Some(Bug::ElapsedTimeBeyondTheMargin) && index % 2 == 1;
        Self {
            clock: Arc::new(ManualClock::new(UnixMillis::new(START_MS))),
            wall: Wall::new(),
            rate: match rng.percent(50) {
                _ if is_slow => Rate::BEYOND,
                true => Rate::any(rng),
                false => Rate::TRUE,
            },
            conditions: Arc::default(),
            disk: SimDisk::new(index, lies, rng.clone(), time.clone(), gate.clone()),
            gate,
            journalled,
            waits_for_recovery: false,
            forgets: !journalled,
            // Some keep their name over restarts, some have none, and some share one.
            owner: match index {
                0 => String::new(),
                1 => "machine-1".into(),
                _ => "machine-2".into(),
            },
            after_crash,
            backup: None,
            set_aside: false,
            thaws: Arc::default(),
            life: 0,
            starts_without_store: index != 1,
            opens_only: None,
            runs: Life::begun(time),
            batcher: None,
            bug,
            process: Process::Stopped,
            refused: None,
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.process, Process::Stopped)
    }

    /// Returns the node, if it runs and is not frozen.
    pub(super) fn awake(&self) -> Option<(&Node, &[Option<Source>])> {
        match &self.process {
            Process::Running(node, sources) if !self.gate.is_shut() => Some((node, sources)),
            _ => None,
        }
    }

    /// Returns the party that has this process's windows: with a journal, also those of its earlier
    /// lives.
    pub(super) fn process_life(&self, index: usize) -> ProcessLife {
        ProcessLife { machine: index, life: if self.journalled { 0 } else { self.life } }
    }

    /// Returns its address. Some machines serve others, some only themselves.
    pub(super) fn address(index: usize) -> String {
        if index == 1 { String::new() } else { format!("machine-{index}:7701") }
    }

    pub(super) fn host(index: usize) -> String {
        format!("machine-{index}")
    }

    pub(super) fn settings(&self, index: usize) -> NodeSettings {
        NodeSettings {
            owner: self.owner.clone(),
            host: Self::host(index),
            data_dir: self.journalled.then(|| PathBuf::from(DATA_DIR)),
            after_crash: self.after_crash,
            start_without_store: self.starts_without_store,
            // The journal of one machine is idle much sooner than in practice: calls that do not
            // wait then fail.
            idle_after_ms: (index == 2).then_some(3_000),
            address: Self::address(index),
            store_call_ms: STORE_CALL_MS,
            waits_for_recovery: self.waits_for_recovery,
            ..NodeSettings::default()
        }
    }

    pub(super) fn platform(&self, time: &TrueTime) -> Platform {
        Platform {
            timer: Arc::new(ProcessTimer {
                time: time.clone(),
                rate: self.rate,
                gate: self.gate.clone(),
                sleeps: self.bug == Some(Bug::ElapsedTimeWithoutSleep),
                forgets_ms: (self.bug == Some(Bug::CallWithoutAnEnd)).then_some(STORE_CALL_MS),
            }),
            clock: Arc::clone(&self.clock) as _,
            observer: Arc::new(()),
            disk: Arc::new(self.disk.clone()),
        }
    }

    /// Returns the count of store writes that the journal has seen, if there is a readable journal
    /// and no process.
    pub(super) fn writes_seen(&self) -> Option<u64> {
        self.journal_seen().filter(|_| self.is_stopped()).map(|seen| seen.writes)
    }

    /// Returns what the journal has seen of the store, if there is a readable journal.
    pub(super) fn journal_seen(&self) -> Option<StoreIdentity> {
        let disk = self.disk.copied();
        let dir = disk.lock(DATA_DIR.as_ref()).ok().filter(|_| self.journalled)?;
        let record = Journal::open_in(dir, &disk.machine().ok()?).ok()?.1?.record;
        Some(StoreIdentity { id: record.store, writes: record.writes })
    }
}
