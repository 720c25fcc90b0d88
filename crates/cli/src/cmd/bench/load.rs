//! The run: each thread drives its part of the connections, and each connection sends one round of
//! requests after the other.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Barrier};
use std::thread;

use hdrhistogram::Histogram;
use snowmint_coord::{BootTimer, Source, Timer as _};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;

use super::alarm::Alarm;
use super::check::{Chunk, IdForm, Keeper};
use super::cpu::Got;
use super::grpc::{Grpc, TRANSPORT};
use super::http::Http;
use super::local::Local;
use super::observations::{ErrorCount, LoadRequest, Observations, latencies};
use super::resp::Resp;
use super::server::BenchServer;
use super::shared::SharedState;
use super::target::Speaks;
use super::work::{BenchWork, Schedule};
use crate::open::store;
use crate::terminal::exit::{Failure, Outcome};

/// Pause before a broken connection is replaced.
const RECONNECT_PAUSE_MS: u64 = 100;
/// Interval of the checks for the end of the run.
const POLL_MS: u64 = 50;
/// Longest wait for requests in flight after the end, and longest part of a run without any
/// response.
const RESPONSE_WAIT_NS_MAX: u64 = 30_000_000_000;

/// Target of the load.
#[derive(Clone)]
pub(super) enum LoadTarget {
    Server(Box<BenchServer>),
    Here(Source),
}

impl LoadTarget {
    /// Returns a hint for a first response in another protocol: the port or TLS may be wrong.
    fn astray(&self) -> String {
        match self {
            Self::Server(server) => format!("; {}", server.target.astray()),
            Self::Here(_) => String::new(),
        }
    }
}

/// A connection to the target.
enum TargetLink {
    Http(Http),
    Resp(Resp),
    Grpc(Grpc),
    Local(Local),
}

impl TargetLink {
    async fn open(load_target: &LoadTarget, work: &BenchWork) -> Result<Self, String> {
        Ok(match load_target {
            LoadTarget::Here(source) => Self::Local(Local::open(source, work)),
            LoadTarget::Server(server) => match server.target.speaks {
                Speaks::Http => Self::Http(Http::open(server, work).await?),
                Speaks::Resp => Self::Resp(Resp::open(server, work).await?),
                Speaks::Grpc => Self::Grpc(Grpc::open(server, work).await?),
            },
        })
    }

    /// Sends all requests, and waits for every response. After an error the connection is unusable,
    /// and only `done` requests got a response.
    async fn round(
        &mut self,
        round: &[LoadRequest],
        observations: &RefCell<Observations>,
        done: &mut usize,
    ) -> Result<(), String> {
        match self {
            Self::Http(link) => link.round(round, observations, done).await?,
            Self::Resp(link) => link.round(round, observations, done).await?,
            Self::Grpc(link) => link.round(round, observations).await,
            Self::Local(link) => link.round(round, observations).await,
        }
        *done = round.len();
        Ok(())
    }
}

/// Sum of what all threads saw.
pub(super) struct Sum {
    pub(super) latencies: Histogram<u64>,
    pub(super) ids: u64,
    pub(super) refused: BTreeMap<String, ErrorCount>,
    /// Requests that were due but not sent before the end.
    pub(super) unsent: u64,
    pub(super) got: Got,
    pub(super) run_ns: u64,
}

/// Requests a few IDs once: finds out whether the server and the source exist, and the form of the
/// IDs.
pub(super) async fn first(
    load_target: &LoadTarget,
    work: &BenchWork,
    count: u32,
) -> Outcome<Chunk> {
    let shared = Arc::new(SharedState::new(None, None, u64::from(count)));
    let observations =
        Observations::new(Arc::clone(&shared), Keeper::new(IdForm::Text, shared, None));
    let observations = RefCell::new(observations);
    let load_request = LoadRequest { count, due_ns: BootTimer.elapsed_ns() };
    let mut link = TargetLink::open(load_target, work).await.map_err(Failure::unavailable)?;
    let astray = |error: String| Failure::unavailable(format!("{error}{}", load_target.astray()));
    link.round(&[load_request], &observations, &mut 0).await.map_err(astray)?;
    let observations = observations.into_inner();
    if let Some((code, ErrorCount { example, .. })) = observations.refused.first_key_value() {
        let stranger = ["noauth", "unauthenticated"].iter().any(|it| code.eq_ignore_ascii_case(it));
        let way = if stranger { "; set SNOWMINT_TOKEN or SNOWMINT_TOKEN_FILE" } else { "" };
        return Err(match snowmint_wire::error::Code::from_name(code) {
            Some(code) => Failure::coded(code, format!("{example}{way}")),
            None if code == TRANSPORT => astray(example.clone()),
            None => Failure::unavailable(format!("{code}: {example}{way}")),
        });
    }
    Ok(observations.into_first())
}

/// Runs the load until the end. Calls `poll` at intervals.
pub(super) async fn run(
    load_target: &LoadTarget,
    work: &BenchWork,
    shared: &Arc<SharedState>,
    form: IdForm,
    keep: &SyncSender<Chunk>,
    mut poll: impl FnMut(),
) -> Outcome<Sum> {
    // Registered once: registering in each turn misses a signal that comes between two turns.
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|error| Failure::unavailable(format!("signal handlers cannot be set: {error}")))?;
    let begin = Arc::new(Barrier::new(work.threads));
    let threads: Vec<_> = (0..work.threads)
        .map(|number| {
            let (load_target, work, begin) =
                (load_target.clone(), work.clone(), Arc::clone(&begin));
            let observations = Observations::new(
                Arc::clone(shared),
                Keeper::new(form, Arc::clone(shared), Some(keep.clone())),
            );
            let shared = Arc::clone(shared);
            thread::spawn(move || {
                one_thread(&load_target, &work, number, &shared, observations, &begin)
            })
        })
        .collect();
    let mut last_response = (0, BootTimer.elapsed_ns());
    while !threads.iter().all(thread::JoinHandle::is_finished) {
        let now_ns = BootTimer.elapsed_ns();
        if last_response.0 != shared.responses() {
            last_response = (shared.responses(), now_ns);
        }
        // With a rate, up to a second may pass without a response.
        if now_ns.saturating_sub(last_response.1) > RESPONSE_WAIT_NS_MAX {
            shared.stop();
        }
        poll();
        tokio::select! {
            () = BootTimer.sleep_ms(POLL_MS) => {}
            // An interrupted run still reports its results.
            _ = interrupts.recv() => shared.end(),
        }
    }
    let mut sum = Sum {
        latencies: latencies(),
        ids: 0,
        refused: BTreeMap::new(),
        unsent: 0,
        got: Got { ran_ns: 0, waited_ns: Some(0) },
        run_ns: 0,
    };
    for thread in threads {
        let ended = thread.join();
        sum.merge(ended.map_err(|_| Failure::internal("thread failed"))??)?;
    }
    Ok(sum)
}

impl Sum {
    fn merge(&mut self, other: Self) -> Outcome {
        self.latencies
            .add(other.latencies)
            .map_err(|error| Failure::internal(format_args!("{error:?}")))?;
        self.ids += other.ids;
        for (code, ErrorCount { times, example }) in other.refused {
            let all = self.refused.entry(code).or_insert(ErrorCount { times: 0, example });
            all.times += times;
        }
        self.unsent += other.unsent;
        self.got = self.got.and(other.got);
        self.run_ns = std::cmp::max(self.run_ns, other.run_ns);
        Ok(())
    }
}

/// Drives one thread's connections, on a runtime of its own.
fn one_thread(
    load_target: &LoadTarget,
    work: &BenchWork,
    number: usize,
    shared: &Arc<SharedState>,
    observations: Observations,
    begin: &Barrier,
) -> Outcome<Sum> {
    let runtime = store::runtime();
    let links = match &runtime {
        Ok(runtime) => runtime.block_on(open_all(load_target, work, number)),
        Err(_) => Ok(Vec::new()),
    };
    if links.is_err() || runtime.is_err() {
        shared.stop();
    }
    // A thread that fails must not leave the other threads waiting.
    begin.wait();
    let (runtime, links) = (runtime?, links?);
    let before = Got::by_this_thread();
    shared.start_ns();
    let observations = Rc::new(RefCell::new(observations));
    let tasks = LocalSet::new();
    for (connection, link) in links {
        let driver = Driver {
            load_target: load_target.clone(),
            work: work.clone(),
            schedule: Schedule::new(work, connection, shared.start_ns()),
            shared: Arc::clone(shared),
            observations: Rc::clone(&observations),
            alarm: None,
        };
        tasks.spawn_local(driver.drive(link));
    }
    runtime.block_on(async {
        tokio::select! {
            () = tasks => {}
            () = stopped(shared) => {}
        }
    });
    let got = Got::by_this_thread().since(before);
    let run_ns = shared.running_ns().unwrap_or(0);
    // Requests still in flight have no response.
    drop(runtime);
    let Ok(observations) = Rc::try_unwrap(observations) else {
        return Err(Failure::internal("connection outlived its thread"));
    };
    let mut observations = observations.into_inner();
    observations.end();
    let Observations { latencies, ids, refused, unsent, .. } = observations;
    Ok(Sum { latencies, ids, refused, unsent, got, run_ns })
}

async fn stopped(shared: &SharedState) {
    while !shared.is_stopped() {
        BootTimer.sleep_ms(POLL_MS).await;
    }
}

async fn open_all(
    load_target: &LoadTarget,
    work: &BenchWork,
    number: usize,
) -> Outcome<Vec<(usize, TargetLink)>> {
    let mut links = Vec::new();
    for connection in (number..work.connections).step_by(work.threads) {
        let link = TargetLink::open(load_target, work).await.map_err(|error| {
            Failure::unavailable(format!("connection {}: {error}", connection + 1))
        })?;
        links.push((connection, link));
    }
    Ok(links)
}

/// Driver of one connection.
struct Driver {
    load_target: LoadTarget,
    work: BenchWork,
    schedule: Schedule,
    shared: Arc<SharedState>,
    observations: Rc<RefCell<Observations>>,
    alarm: Option<Alarm>,
}

impl Driver {
    async fn drive(mut self, mut link: TargetLink) {
        let mut round = Vec::with_capacity(self.work.pipeline);
        while self.next_round(&mut round).await {
            let mut done = 0;
            self.observations.borrow_mut().sent(round.len());
            let Err(error) = link.round(&round, &self.observations, &mut done).await else {
                continue;
            };
            for _ in round.iter().skip(done) {
                self.observations.borrow_mut().refused("connection", &error);
            }
            match self.reconnect().await {
                Some(another) => link = another,
                None => break,
            }
        }
        if self.shared.has_end() && !self.shared.is_ended() {
            self.observations.borrow_mut().unsent += self.schedule.unsent(self.shared.end_ns());
        }
    }

    /// Collects the requests that are due; returns false at the end.
    async fn next_round(&mut self, round: &mut Vec<LoadRequest>) -> bool {
        round.clear();
        let end_ns = self.shared.end_ns();
        let mut now_ns = BootTimer.elapsed_ns();
        let due_ns = self.schedule.next_due_ns(now_ns);
        if due_ns >= end_ns || now_ns >= end_ns || self.shared.is_ended() {
            return false;
        }
        if due_ns > now_ns {
            self.alarm.get_or_insert_with(Alarm::new).until_ns(due_ns).await;
            now_ns = BootTimer.elapsed_ns();
        }
        while round.len() < self.work.pipeline {
            let due_ns = self.schedule.next_due_ns(now_ns);
            if due_ns > now_ns || due_ns >= end_ns {
                break;
            }
            let Some(count) = self.shared.take(self.work.batch) else { break };
            round.push(LoadRequest { count, due_ns });
            self.schedule.sent();
        }
        !round.is_empty()
    }

    /// Replaces a broken connection. Each failed attempt counts as a failed request.
    async fn reconnect(&mut self) -> Option<TargetLink> {
        loop {
            BootTimer.sleep_ms(RECONNECT_PAUSE_MS).await;
            if BootTimer.elapsed_ns() >= self.shared.end_ns() || self.shared.is_ended() {
                return None;
            }
            match TargetLink::open(&self.load_target, &self.work).await {
                Ok(link) => return Some(link),
                Err(error) => {
                    self.shared.take(self.work.batch)?;
                    self.schedule.sent();
                    let mut observations = self.observations.borrow_mut();
                    observations.sent(1);
                    observations.refused("connection", &error);
                }
            }
        }
    }
}
