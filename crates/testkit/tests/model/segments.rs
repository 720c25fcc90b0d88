//! Reserve and give-back of numbers.

use std::collections::BTreeSet;

use snowmint_coord::segment::{SegmentRow, decide_give_back, decide_reserve};
use snowmint_coord::{GiveBack, Mark};
use stateright::{Model, Property};

const PROCESSES: usize = 2;
const SOURCE: &str = "numbers";

/// Bounds of the model.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    /// Whether to decide wrongly, which the model must find: numbers are given back whatever
    /// happened since. Never in the real world.
    pub(crate) skip_the_version: bool,
    /// Number of numbers.
    pub(crate) numbers: u64,
    /// Number of all requests.
    pub(crate) requests: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    mark: Mark,
    floor: Mark,
    version: u64,
}

impl Row {
    const fn of(row: &SegmentRow) -> Self {
        Self { mark: row.mark, floor: row.floor, version: row.version }
    }

    const fn whole(&self) -> SegmentRow {
        SegmentRow { mark: self.mark, floor: self.floor, version: self.version }
    }
}

/// Prefetched numbers: next, last, and the segment's version.
type Prefetched = (u64, u64, u64);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    waiting: Option<u64>,
    prefetched: Option<Prefetched>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Message {
    Reserve { request: u64, length: u64 },
    GiveBack { first: u64, last: u64, version: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    row: Row,
    processes: Vec<Process>,
    sent: BTreeSet<Message>,
    /// Request and segment: a message that arrives twice has two replies.
    responses: BTreeSet<(u64, Prefetched)>,
    requests: u64,
    used: BTreeSet<u64>,
    twice: bool,
    gave_back: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Reserve { process: usize, length: u64 },
    Use(usize),
    GiveBack(usize),
    Arrive(Message),
    Hear { process: usize, segment: (u64, Prefetched) },
}

impl Model for Segments {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            row: Row::of(&SegmentRow::NEW),
            processes: vec![Process { waiting: None, prefetched: None }; PROCESSES],
            sent: BTreeSet::new(),
            responses: BTreeSet::new(),
            requests: 0,
            used: BTreeSet::new(),
            twice: false,
            gave_back: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (index, process) in state.processes.iter().enumerate() {
            if process.prefetched.is_some() {
                actions.push(Action::Use(index));
            }
            if state.requests < self.requests {
                match process.prefetched {
                    Some(_) => actions.push(Action::GiveBack(index)),
                    None if process.waiting.is_none() => actions
                        .extend((1..=2).map(|length| Action::Reserve { process: index, length })),
                    None => {}
                }
            }
            let heard = state.responses.iter().filter(|(of, _)| process.waiting == Some(*of));
            actions.extend(heard.map(|segment| Action::Hear { process: index, segment: *segment }));
        }
        actions.extend(state.sent.iter().map(|message| Action::Arrive(*message)));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Reserve { process, length } => {
                state.requests += 1;
                let request = state.requests;
                state.processes[process].waiting = Some(request);
                state.sent.insert(Message::Reserve { request, length });
            }
            Action::Use(index) => {
                let (next, last_number, version) = state.processes[index].prefetched?;
                state.twice |= !state.used.insert(next);
                state.processes[index].prefetched =
                    (next < last_number).then_some((next + 1, last_number, version));
            }
            Action::GiveBack(index) => {
                state.requests += 1;
                let (first, last, version) = state.processes[index].prefetched.take()?;
                state.sent.insert(Message::GiveBack { first, last, version });
            }
            Action::Arrive(Message::Reserve { request, length }) => {
                let before = state.row.whole();
                let after = decide_reserve(SOURCE, &before, length, None).ok()?;
                if after.mark.get() > self.numbers + 1 {
                    return None;
                }
                let segment = after.taken(0, 0);
                state.row = Row::of(&after);
                state.responses.insert((request, (segment.first, segment.last, segment.version)));
            }
            Action::Arrive(Message::GiveBack { first, last, version }) => {
                let row = state.row.whole();
                let version = if self.skip_the_version { row.version } else { version };
                let back = GiveBack { source: SOURCE.into(), first, last, version };
                let after = decide_give_back(&row, &back).ok()?;
                state.row = Row::of(&after);
                state.gave_back = true;
            }
            Action::Hear { process, segment: (_, prefetched) } => {
                let process = &mut state.processes[process];
                (process.waiting, process.prefetched) = (None, Some(prefetched));
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no number is used twice", |_, state: &State| !state.twice),
            Property::always("no number is in two stocks", |_, state: &State| {
                let ranges: Vec<_> =
                    state.processes.iter().filter_map(|one| one.prefetched).collect();
                match ranges[..] {
                    [(first, last, _), (other_first, other_last, _)] => {
                        last < other_first || other_last < first
                    }
                    _ => true,
                }
            }),
            Property::always("the mark lies above everything used", |_, state: &State| {
                state.used.iter().all(|number| *number < state.row.mark.get())
            }),
            Property::sometimes("numbers that came back are used", |_, state: &State| {
                state.gave_back && state.used.len() >= 3
            }),
        ]
    }
}
