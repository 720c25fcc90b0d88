//! Values that must rise over all processes: IDs of a source of global order, and the numbers of a
//! counter's keys. Numbers returned before a request began are smaller than those of its response.

use snowmint_coord::{Node, Result, Source, SourceSpec, Values};

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
pub(super) enum Asked {
    /// IDs of the source of global order.
    Order,
    /// Numbers of this key.
    Key(u64),
}

impl Asked {
    fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Order).chain((0..KEYS).map(Self::Key))
    }

    const fn name(self) -> &'static str {
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
    async fn answer(self, source: &Source, count: u64, within_ms: u64) -> Result<(u64, u64)> {
        match self {
            Self::Key(key) => source.count(key.to_string().as_bytes(), count, within_ms).await,
            Self::Order => {
                let count = u32::try_from(count).unwrap();
                let Values::Numbers(ids) = source.mint(count, None, within_ms).await? else {
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

    pub(super) fn asked(&self) -> Asked {
        match self.chance.below(2 + KEYS) {
            0..=1 => Asked::Order,
            key => Asked::Key(key - 2),
        }
    }

    pub(super) fn asked_key(&self) -> Asked {
        Asked::Key(self.chance.below(KEYS))
    }

    pub(super) fn rising_source(&self, index: usize, asked: Asked) -> Option<Source> {
        let (_, sources) = self.machines[index].awake()?;
        sources.iter().flatten().find(|source| source.name() == asked.name()).cloned()
    }

    /// Checks the numbers that one machine returns at once.
    pub(super) async fn rise(&mut self, index: usize) -> Checked {
        let (asked, count) = (self.asked(), self.chance.between(1, COUNT_MAX));
        self.rise_of(index, asked, count).await
    }

    async fn rise_of(&mut self, index: usize, asked: Asked, count: u64) -> Checked {
        let Some(source) = self.rising_source(index, asked) else { return Ok(()) };
        let before = self.rising.floor(&asked);
        match asked.answer(&source, count, 0).await {
            Ok(answer) => self.rose(index, asked, before, answer),
            Err(_) => Ok(()),
        }
    }

    /// Checks the numbers that one machine returns while the world continues. Sometimes its process
    /// is frozen meanwhile.
    pub(super) async fn rise_waiting(&mut self, index: usize) -> Checked {
        let (asked, count) = (self.asked(), self.chance.between(1, COUNT_MAX));
        let Some(source) = self.rising_source(index, asked) else { return Ok(()) };
        let before = self.rising.floor(&asked);
        let answer = tokio::spawn(async move { asked.answer(&source, count, 2_000).await });
        if self.chance.percent(20) {
            self.pass(1).await;
            self.machines[index].gate.shut();
            let frozen_ms = self.chance.between(100, 30_000);
            self.others_rise(index, asked, frozen_ms).await?;
            self.machines[index].gate.open();
            self.count("freeze while counting");
            // It has not learned yet of what others did meanwhile.
            self.rise_of(index, asked, 1).await?;
        }
        while !answer.is_finished() {
            self.pass(20).await;
        }
        match answer.await.unwrap() {
            Ok(answer) => self.rose(index, asked, before, answer),
            Err(_) => Ok(()),
        }
    }

    /// Returns the machine that serves this request now.
    pub(super) async fn answering(
        &mut self,
        asked: Asked,
    ) -> std::result::Result<Option<usize>, Violation> {
        for index in 0..self.machines.len() {
            let Some(source) = self.rising_source(index, asked) else { continue };
            let before = self.rising.floor(&asked);
            if let Ok(answer) = asked.answer(&source, 1, 0).await {
                self.rose(index, asked, before, answer)?;
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Lets time pass, while all awake machines except one get the same request again and again.
    async fn others_rise(&mut self, index: usize, asked: Asked, ms: u64) -> Checked {
        self.rise_for(asked, ms, 2_000, |other| other != index).await
    }

    /// Does the same, more often, with all machines.
    pub(super) async fn all_rise(&mut self, asked: Asked, ms: u64) -> Checked {
        self.rise_for(asked, ms, 600, |_| true).await
    }

    async fn rise_for(
        &mut self,
        asked: Asked,
        ms: u64,
        step_max_ms: u64,
        is_asked: impl Fn(usize) -> bool,
    ) -> Checked {
        let end_ms = self.time.now_ms() + ms;
        while self.time.now_ms() < end_ms {
            let step_ms = self.chance.between(50, step_max_ms).min(end_ms - self.time.now_ms());
            self.pass(step_ms).await;
            for other in (0..self.machines.len()).filter(|other| is_asked(*other)) {
                let Some(source) = self.rising_source(other, asked) else { continue };
                let before = self.rising.floor(&asked);
                match asked.answer(&source, 1, 0).await {
                    Ok(answer) => self.rose(other, asked, before, answer)?,
                    Err(_) if asked == Asked::Order => self.pass_on(other),
                    Err(_) => {}
                }
            }
            self.see_passed().await?;
        }
        Ok(())
    }

    pub(super) fn rose(
        &mut self,
        index: usize,
        asked: Asked,
        before: u64,
        answer: (u64, u64),
    ) -> Checked {
        self.count(match asked {
            Asked::Order => "ordered",
            Asked::Key(_) => "counted",
        });
        let life = self.machines[index].life;
        let by = format!("machine {index} in life {life} at {} ms", self.time.now_ms());
        let answered = self.rising.answered(&asked, before, answer, &by);
        let of = |violation| Violation { check: asked.check(), ..violation };
        self.truth.judge(answered.map_err(of))
    }

    /// Checks that some machine serves each kind of request before `end_ms`.
    pub(super) async fn must_rise(&mut self, end_ms: u64) -> Checked {
        for asked in Asked::all() {
            while let Some(refusals) = self.refused_everywhere(asked).await? {
                if self.time.now_ms() >= end_ms {
                    let why = format!("not within {RESUME_MS} ms of calm: {asked:?}: {refusals}");
                    return self.truth.judge(Err(Check::Healing.broken(why)));
                }
                self.pass(1_000).await;
            }
        }
        Ok(())
    }

    /// Returns the errors of all machines; `None` when one of them serves the request.
    async fn refused_everywhere(
        &mut self,
        asked: Asked,
    ) -> std::result::Result<Option<String>, Violation> {
        let mut refusals = Vec::new();
        for index in 0..self.machines.len() {
            self.look(index).await;
            let Process::Running(node, _) = &self.machines[index].process else {
                refusals.push(format!("machine {index} does not run"));
                continue;
            };
            let before = self.rising.floor(&asked);
            let answer = tokio::spawn(open_and_ask(node.clone(), asked));
            while !answer.is_finished() {
                self.pass(20).await;
            }
            match answer.await.unwrap() {
                Ok(answer) => {
                    self.rose(index, asked, before, answer)?;
                    return Ok(None);
                }
                Err(error) => refusals.push(format!("machine {index}: {error}")),
            }
        }
        Ok(Some(refusals.join("; ")))
    }
}

async fn open_and_ask(node: Node, asked: Asked) -> Result<(u64, u64)> {
    let source = node.source(asked.name()).await?;
    asked.answer(&source, 1, 10_000).await
}
