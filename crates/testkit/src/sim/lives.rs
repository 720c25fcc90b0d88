//! Lives of processes: start, kill and end.

use std::sync::{Arc, Mutex};

use snowmint_coord::{Error, Node};

use super::forwarding::MachineLink;
use super::keys::SimConnection;
use super::machine::{Machine, Process};
use super::monotonicity;
use super::network::Faulty;
use super::planted::Bug;
use super::recording_store::RecordingStore;
use super::time::Life;
use super::world::World;
use crate::history::Checked;

/// Time that a server has for a hand-over, and for which it serves after it.
const HAND_OVER_MS: u64 = 2_000;
const REDIRECTS_MS: u64 = 500;

impl World {
    /// Checks whether a starting process has come up.
    pub(super) async fn look(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        if let Process::Starting(starting) = &mut machine.process
            && starting.is_finished()
        {
            machine.process = match starting.await.unwrap() {
                Ok((node, sources)) => Process::Running(node, sources),
                Err(error) => {
                    machine.refused = Some(error);
                    Process::Stopped
                }
            };
        }
    }

    /// Waits until a started process is up or rejected: for its disk, and on keys for its steps.
    pub(super) async fn come_up(&mut self, index: usize) {
        let rounds = if self.kind.is_keyed() { 20 } else { 1 };
        for _ in 0..rounds {
            self.pass(200).await;
            self.look(index).await;
            if !matches!(self.machines[index].process, Process::Starting(_)) {
                return;
            }
        }
    }

    pub(super) fn start(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        if !machine.is_stopped() {
            return;
        }
        if std::mem::take(&mut machine.set_aside) {
            machine.disk.set_aside();
        }
        machine.life += 1;
        machine.batcher = Some(MachineLink::new(
            &self.reached,
            &machine.conditions,
            &machine.gate,
            &self.rng,
            &self.time,
            self.bug,
        ));
        let (settings, platform) = (machine.settings(index), machine.platform(&self.time));
        let connection = SimConnection {
            link: Arc::clone(&self.link),
            conditions: Arc::clone(&machine.conditions),
            gate: machine.gate.clone(),
            life: machine.runs.clone(),
            time: self.time.clone(),
            rng: self.rng.clone(),
            timer: Arc::clone(&platform.timer),
            bug: self.bug,
        };
        let inner = RecordingStore {
            store: self.store.handle(Some(connection)),
            is_keyed: self.kind.is_keyed(),
            oracle: self.oracle.clone(),
            process_life: machine.process_life(index),
            link: Arc::clone(&self.link),
            conditions: Arc::clone(&machine.conditions),
            rng: self.rng.clone(),
            behind: Mutex::default(),
            bug: self.bug,
        };
        let store = Faulty {
            inner: Arc::new(inner),
            conditions: Arc::clone(&machine.conditions),
            link: Arc::clone(&self.link),
            oracle: self.oracle.clone(),
            rng: self.rng.clone(),
            time: self.time.clone(),
            gate: machine.gate.clone(),
            counts_from_reply: Faulty::planted(self.bug),
        };
        let mut names: Vec<_> = self.sources.iter().map(|source| source.name).collect();
        names.extend(monotonicity::sources().map(|(name, _)| name));
        names.retain(|name| machine.opens_only.is_none_or(|only| only == *name));
        machine.process = Process::Starting(tokio::spawn(async move {
            let node = Node::open(Arc::new(store), settings, platform).await?;
            let mut sources = Vec::new();
            for name in names {
                sources.push(node.source(name).await.ok());
            }
            Ok((node, sources))
        }));
        self.count("start");
    }

    /// Kills the process at once.
    pub(super) async fn kill(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        std::mem::replace(&mut machine.runs, Life::begun(&self.time)).end();
        self.reached.forget(&Machine::address(index));
        match std::mem::replace(&mut machine.process, Process::Stopped) {
            Process::Stopped => return,
            Process::Starting(starting) => starting.abort(),
            Process::Running(node, sources) => drop((node, sources)),
        }
        self.time.settle().await;
        let machine = &self.machines[index];
        machine.gate.open();
        machine.disk.crash();
        self.count("kill");
    }

    /// Hands sections and orders over to the peers, as a server does before it stops, while all
    /// machines continue to mint. Time may run out at any step.
    pub(super) async fn hand_over(&mut self, index: usize) -> Checked {
        let Some((node, _)) = self.machines[index].awake() else { return Ok(()) };
        let node = node.clone();
        let awake = self.machines.iter().filter_map(|machine| Some(machine.awake()?.0.clone()));
        let peers: Vec<Node> =
            awake.filter(|peer| peer.incarnation() != node.incarnation()).collect();
        let handing_over = tokio::spawn(async move {
            if node.announce_stop().await? {
                for peer in peers {
                    peer.members_changed(1_000).await;
                }
                node.hand_over().await?;
            }
            Ok::<(), Error>(())
        });
        let end_ms = self.time.now_ms() + HAND_OVER_MS;
        while !handing_over.is_finished() && self.time.now_ms() < end_ms {
            let request = self.request();
            self.all_rise(request, 100).await?;
        }
        if handing_over.is_finished() {
            self.count("hand over");
        }
        handing_over.abort();
        let request = self.request();
        self.all_rise(request, REDIRECTS_MS).await
    }

    /// Closes the node cleanly, however long it takes.
    pub(super) async fn close(&mut self, index: usize) {
        let Some((node, _)) = self.machines[index].awake() else { return };
        let node = node.clone();
        self.machines[index].disk.forgets(self.bug == Some(Bug::ReleaseUnwritten));
        let closing = tokio::spawn(async move { node.close().await });
        while !closing.is_finished() {
            self.pass(500).await;
        }
        self.machines[index].disk.forgets(false);
        self.reached.forget(&Machine::address(index));
        self.machines[index].process = Process::Stopped;
        self.time.settle().await;
        self.count("close");
    }
}
