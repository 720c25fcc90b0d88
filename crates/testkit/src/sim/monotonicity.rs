//! Values that must rise over all processes: IDs of a source of global order, and the numbers of a
//! counter's keys. Numbers returned before a request began are smaller than those of its response.

use snowmint_coord::{IdBatch, Node, Result, Source, SourceSpec};

use super::machine::Process;
use super::sources::EPOCH;
use super::world::World;
use super::{Profile, RESUME_MS};
use crate::history::{Check, Checked, Violation};

/// Number of counted keys.
const KEYS: u64 = 3;
/// Most numbers of one request.
const COUNT_MAX: u64 = 20;

/// Kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum OrderedRequest {
    /// IDs of the source of global order.
    Order,
    /// Numbers of this key.
    Key(u64),
}

impl OrderedRequest {
    fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Order).chain((0..KEYS).map(Self::Key))
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Order => "ordered",
            Self::Key(_) => "messages",
        }
    }

    /// Returns the check that covers its order.
    const fn check(self) -> Check {
        match self {
            Self::Order => Check::GlobalOrder,
            Self::Key(_) => Check::Counters,
        }
    }

    /// Returns the lowest and the highest of `count` numbers.
    pub(super) async fn numbers(
        self,
        source: &Source,
        count: u64,
        within_ms: u64,
    ) -> Result<(u64, u64)> {
        match self {
            Self::Key(key) => source.count(key.to_string().as_bytes(), count, within_ms).await,
            Self::Order => {
                let count = u32::try_from(count).unwrap();
                let IdBatch::Numbers(ids) = source.mint(count, None, within_ms).await? else {
                    panic!("IDs of a snowflake source are numbers");
                };
                assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
                Ok((ids[0], ids[ids.len() - 1]))
            }
        }
    }
}

/// Returns the sources, with their keys.
pub(super) fn sources() -> [(&'static str, SourceSpec); 2] {
    let layout = format!("time=41,worker=2,sequence=6,epoch={EPOCH}");
    let spec = |json: &str| SourceSpec::from_json(json).unwrap();
    [
        ("ordered", spec(&format!(r#"{{"order":"global","layout":"{layout}"}}"#))),
        ("messages", spec(r#"{"kind":"counter","counter":{"step":10}}"#)),
    ]
}

impl World {
    /// Returns whether order is checked. A store that is restored, and moved forward by an
    /// operator, promises no order to processes that are cut off from it meanwhile.
    pub(super) fn checks_order(&self) -> bool {
        self.profile != Profile::Restores
    }

    pub(super) fn request(&self) -> OrderedRequest {
        match self.rng.below(2 + KEYS) {
            0..=1 => OrderedRequest::Order,
            key => OrderedRequest::Key(key - 2),
        }
    }

    pub(super) fn key_request(&self) -> OrderedRequest {
        OrderedRequest::Key(self.rng.below(KEYS))
    }

    pub(super) fn rising_source(&self, index: usize, request: OrderedRequest) -> Option<Source> {
        let (_, sources) = self.machines[index].awake()?;
        sources.iter().flatten().find(|source| source.name() == request.name()).cloned()
    }

    /// Checks the numbers that one machine returns at once.
    pub(super) async fn rise(&mut self, index: usize) -> Checked {
        let (request, count) = (self.request(), self.rng.between(1, COUNT_MAX));
        self.rise_of(index, request, count).await
    }

    async fn rise_of(&mut self, index: usize, request: OrderedRequest, count: u64) -> Checked {
        let Some(source) = self.rising_source(index, request) else { return Ok(()) };
        let before = self.monotonicity.floor(&request);
        match request.numbers(&source, count, 0).await {
            Ok(numbers) => self.rose(index, request, before, numbers),
            Err(_) => Ok(()),
        }
    }

    /// Checks the numbers that one machine returns while the world continues. Sometimes its process
    /// is frozen meanwhile.
    pub(super) async fn rise_waiting(&mut self, index: usize) -> Checked {
        let (request, count) = (self.request(), self.rng.between(1, COUNT_MAX));
        let Some(source) = self.rising_source(index, request) else { return Ok(()) };
        let before = self.monotonicity.floor(&request);
        let call = tokio::spawn(async move { request.numbers(&source, count, 2_000).await });
        if self.rng.percent(20) {
            self.pass(1).await;
            self.machines[index].gate.shut();
            let frozen_ms = self.rng.between(100, 30_000);
            self.others_rise(index, request, frozen_ms).await?;
            self.machines[index].gate.open();
            self.count("freeze while counting");
            // It has not learned yet of what others did meanwhile.
            self.rise_of(index, request, 1).await?;
        }
        while !call.is_finished() {
            self.pass(20).await;
        }
        match call.await.unwrap() {
            Ok(numbers) => self.rose(index, request, before, numbers),
            Err(_) => Ok(()),
        }
    }

    /// Returns the machine that serves this request now.
    pub(super) async fn serving_machine(
        &mut self,
        request: OrderedRequest,
    ) -> std::result::Result<Option<usize>, Violation> {
        for index in 0..self.machines.len() {
            let Some(source) = self.rising_source(index, request) else { continue };
            let before = self.monotonicity.floor(&request);
            if let Ok(numbers) = request.numbers(&source, 1, 0).await {
                self.rose(index, request, before, numbers)?;
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Lets time pass, while all awake machines except one get the same request again and again.
    async fn others_rise(&mut self, index: usize, request: OrderedRequest, ms: u64) -> Checked {
        self.rise_for(request, ms, 2_000, |other| other != index).await
    }

    /// Does the same, more often, with all machines.
    pub(super) async fn all_rise(&mut self, request: OrderedRequest, ms: u64) -> Checked {
        self.rise_for(request, ms, 600, |_| true).await
    }

    async fn rise_for(
        &mut self,
        request: OrderedRequest,
        ms: u64,
        step_max_ms: u64,
        is_called: impl Fn(usize) -> bool,
    ) -> Checked {
        let end_ms = self.time.now_ms() + ms;
        while self.time.now_ms() < end_ms {
            let step_ms = self.rng.between(50, step_max_ms).min(end_ms - self.time.now_ms());
            self.pass(step_ms).await;
            for other in (0..self.machines.len()).filter(|other| is_called(*other)) {
                let Some(source) = self.rising_source(other, request) else { continue };
                let before = self.monotonicity.floor(&request);
                match request.numbers(&source, 1, 0).await {
                    Ok(numbers) => self.rose(other, request, before, numbers)?,
                    Err(_) if request == OrderedRequest::Order => self.forward(other),
                    Err(_) => {}
                }
            }
            self.check_forwarded().await?;
        }
        Ok(())
    }

    pub(super) fn rose(
        &mut self,
        index: usize,
        request: OrderedRequest,
        before: u64,
        numbers: (u64, u64),
    ) -> Checked {
        self.count(match request {
            OrderedRequest::Order => "ordered",
            OrderedRequest::Key(_) => "counted",
        });
        let life = self.machines[index].life;
        let by = format!("machine {index} in life {life} at {} ms", self.time.now_ms());
        let recorded = self.monotonicity.record(&request, before, numbers, &by);
        let of = |violation| Violation { check: request.check(), ..violation };
        self.oracle.judge(recorded.map_err(of))
    }

    /// Checks that some machine serves each kind of request before `end_ms`.
    pub(super) async fn must_rise(&mut self, end_ms: u64) -> Checked {
        for request in OrderedRequest::all() {
            while let Some(errors) = self.refused_everywhere(request).await? {
                if self.time.now_ms() >= end_ms {
                    let reason =
                        format!("not within {RESUME_MS} ms of calm: {request:?}: {errors}");
                    return self.oracle.judge(Err(Check::Healing.broken(reason)));
                }
                self.pass(1_000).await;
            }
        }
        Ok(())
    }

    /// Returns the errors of all machines; `None` when one of them serves the request.
    async fn refused_everywhere(
        &mut self,
        request: OrderedRequest,
    ) -> std::result::Result<Option<String>, Violation> {
        let mut errors = Vec::new();
        for index in 0..self.machines.len() {
            self.look(index).await;
            let Process::Running(node, _) = &self.machines[index].process else {
                errors.push(format!("machine {index} does not run"));
                continue;
            };
            let before = self.monotonicity.floor(&request);
            let call = tokio::spawn(open_and_call(node.clone(), request));
            while !call.is_finished() {
                self.pass(20).await;
            }
            match call.await.unwrap() {
                Ok(numbers) => {
                    self.rose(index, request, before, numbers)?;
                    return Ok(None);
                }
                Err(error) => errors.push(format!("machine {index}: {error}")),
            }
        }
        Ok(Some(errors.join("; ")))
    }
}

async fn open_and_call(node: Node, request: OrderedRequest) -> Result<(u64, u64)> {
    let source = node.source(request.name()).await?;
    request.numbers(&source, 1, 10_000).await
}
