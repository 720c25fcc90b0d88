//! Claim, extend and release of slots.

mod parts;

use std::collections::BTreeSet;

use snowmint_coord::lease::{ExtendStep, decide_extend, decide_release};
use snowmint_coord::machine::{WindowMachine, WindowPolicy};
use snowmint_coord::pool::{Choice, SlotDefaults, choose};
use snowmint_coord::{
    ClaimRequest, ErrorKind, Extend, Lease, Mark, Pool, Preference, Release, Reuse, SlotRow, Term,
};
use snowmint_core::UnixMillis;
use stateright::{Model, Property};

use parts::{
    Action, HeldLease, Message, POOL, PROCESSES, Process, Response, Row, State, incarnation,
    members,
};
pub(crate) use parts::{Flaw, Leases};

impl Leases {
    /// Delivers a message to the store, which makes its real decisions.
    fn arrive(&self, state: &mut State, message: Message, others_live: bool) {
        match message {
            Message::Claim { request, member, supersedes } => {
                let claim = ClaimRequest {
                    pool: Pool {
                        name: POOL.into(),
                        slots: self.slots,
                        group: 1,
                        reuse: Reuse::Recycle,
                    },
                    member,
                    owner: String::new(),
                    count: 1,
                    preference: Preference::Any,
                    supersedes,
                    mark_at_most: Mark::MAX,
                    request,
                };
                let rows: Vec<_> = state.rows.iter().map(Row::whole).collect();
                let members = members(|other| other == member || others_live, self.lives);
                let ground = SlotDefaults::default();
                let chosen = choose(&claim, &rows, &members, ground, 0, UnixMillis::ZERO, 0);
                let used = match chosen {
                    Ok(Choice::Repeat(rows)) => rows,
                    Ok(Choice::Claim { rows, .. }) => {
                        for row in &rows {
                            state.rows.retain(|known| known.slot != row.slot);
                            state.rows.push(Row::of(row));
                        }
                        state.rows.sort_by_key(|row| row.slot);
                        rows
                    }
                    // The claim is retried later: the message is still there.
                    Err(_) => return,
                };
                for row in used {
                    let SlotRow { slot, term, floor, mark, .. } = row;
                    state.responses.insert(Response::Claimed { request, slot, term, floor, mark });
                }
            }
            Message::Extend { request, slot, term, from, to } => {
                let Some(row) = state.rows.iter_mut().find(|row| row.slot == slot) else { return };
                let pool = POOL.to_owned();
                let term = self.term_seen(term, row);
                let item = Extend {
                    pool,
                    slot,
                    term,
                    holder: None,
                    from,
                    to,
                    request,
                    ahead_max_ms: None,
                };
                let anywhere = self.flaw == Some(Flaw::ExtendWithoutComparingFrom);
                let decided = match decide_extend(&row.whole(), &item, UnixMillis::ZERO) {
                    Err(error)
                        if anywhere && matches!(error.kind(), ErrorKind::MarkMoved { .. }) =>
                    {
                        Ok(ExtendStep::Move)
                    }
                    decided => decided,
                };
                let response = match decided {
                    Ok(step) => {
                        if step == ExtendStep::Move {
                            (row.mark, row.extend_request) = (to, request);
                        }
                        Response::Extended { request, mark: row.mark }
                    }
                    Err(_) => Response::Lost { request },
                };
                state.responses.insert(response);
            }
            Message::Release { slot, term, mark } => {
                let Some(row) = state.rows.iter_mut().find(|row| row.slot == slot) else { return };
                let term = self.term_seen(term, row);
                let last = self.flaw == Some(Flaw::ReleaseWithTheLastTick) && mark > row.floor;
                let mark = if last { Mark::new(mark.get() - 1) } else { mark };
                let release =
                    Release { pool: POOL.into(), slot, term, holder: None, mark, from: None };
                if let Ok(Some(after)) = decide_release(&row.whole(), &release, UnixMillis::ZERO) {
                    *row = Row::of(&after);
                }
            }
        }
    }

    /// Returns the term of a message as the store sees it.
    fn term_seen(&self, term: Term, row: &Row) -> Term {
        if self.flaw == Some(Flaw::SkipTheTermCheck) { row.term } else { term }
    }

    fn hear(process: &mut Process, response: Response) {
        process.waiting = None;
        match response {
            Response::Claimed { slot, term, floor, mark, .. } => {
                // The node does the same: one term after the journal's, no member held the slot in
                // between.
                let finer = process
                    .journal
                    .filter(|(of, before, _)| *of == slot && before.next() == term)
                    .map_or(floor.get(), |(_, _, mark)| mark.min(floor.get()));
                let used = finer;
                let held = HeldLease { slot, term, floor: finer, lease_floor: floor, mark, used };
                process.held = Some(held);
            }
            Response::Extended { mark, .. } => {
                if let Some(held) = &mut process.held {
                    held.mark = mark;
                }
            }
            Response::Lost { .. } => process.held = None,
        }
    }
}

/// Returns the release by which a process gives up its slot: the real closing of a window.
fn release(held: &HeldLease) -> Release {
    let lease = Lease {
        pool: POOL.into(),
        slot: held.slot,
        term: held.term,
        holder: None,
        floor: held.lease_floor,
        mark: held.mark,
    };
    let window_policy = WindowPolicy::new(1_000, 1, 0, 0, false);
    let mut window = WindowMachine::new(lease, UnixMillis::new(held.floor), window_policy, 1);
    window.close(UnixMillis::new(held.used))
}

impl Model for Leases {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let process = Process { life: 1, waiting: None, held: None, journal: None };
        vec![State {
            rows: Vec::new(),
            processes: vec![process; PROCESSES],
            sent: BTreeSet::new(),
            responses: BTreeSet::new(),
            requests: 0,
            minted: BTreeSet::new(),
            twice: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let may_ask = state.requests < self.requests;
        for (index, process) in state.processes.iter().enumerate() {
            if let Some(held) = &process.held {
                actions.extend(
                    (held.used..held.mark.get()).map(|tick| Action::Mint { process: index, tick }),
                );
                if may_ask {
                    if process.waiting.is_none() {
                        for by in 1..=2 {
                            if held.mark.get() + by <= self.ticks {
                                actions.push(Action::Extend { process: index, by });
                            }
                        }
                    }
                    actions.push(Action::Release(index));
                }
            } else if process.waiting.is_none() && may_ask {
                actions.push(Action::Claim(index));
            }
            if process.life < self.lives {
                let marks = match &process.held {
                    Some(held) if self.journal => held.used..=held.mark.get().max(held.used),
                    _ => 0..=0,
                };
                actions.extend(marks.map(|journal| Action::Die { process: index, journal }));
            }
            for response in &state.responses {
                if process.waiting == Some(response.request()) {
                    actions.push(Action::Hear { process: index, response: *response });
                }
            }
        }
        for message in &state.sent {
            for others_live in [false, true] {
                if others_live && !matches!(message, Message::Claim { .. }) {
                    continue;
                }
                actions.push(Action::Arrive { message: *message, others_live });
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Claim(index) => {
                state.requests += 1;
                let request = state.requests;
                let process = &mut state.processes[index];
                process.waiting = Some(request);
                let member = incarnation(index, process.life);
                // The lock of the data directory proves that the earlier life is over.
                let before = (process.life > 1).then(|| incarnation(index, process.life - 1));
                let supersedes = before.filter(|_| self.journal);
                state.sent.insert(Message::Claim { request, member, supersedes });
            }
            Action::Extend { process, by } => {
                state.requests += 1;
                let request = state.requests;
                let process = &mut state.processes[process];
                process.waiting = Some(request);
                let HeldLease { slot, term, mark: from, .. } = process.held?;
                let to = Mark::new(from.get() + by);
                state.sent.insert(Message::Extend { request, slot, term, from, to });
            }
            Action::Release(index) => {
                state.requests += 1;
                let process = &mut state.processes[index];
                let Release { slot, term, mark, .. } = release(&process.held.take()?);
                process.waiting = None;
                process.journal = None;
                state.sent.insert(Message::Release { slot, term, mark });
            }
            Action::Mint { process: index, tick } => {
                let held = state.processes[index].held.as_mut()?;
                held.used = tick + 1;
                let slot = held.slot;
                let again = (0..PROCESSES).any(|by| state.minted.contains(&(slot, tick, by)));
                state.minted.insert((slot, tick, index));
                state.twice |= again;
            }
            Action::Die { process: index, journal } => {
                let process = &mut state.processes[index];
                if self.journal {
                    process.journal = process
                        .held
                        .map(|held| (held.slot, held.term, journal))
                        .or(process.journal);
                }
                (process.held, process.waiting) = (None, None);
                process.life += 1;
            }
            Action::Arrive { message, others_live } => {
                self.arrive(&mut state, message, others_live);
            }
            Action::Hear { process, response } => {
                Self::hear(&mut state.processes[process], response)
            }
        }
        (state != *last).then_some(state)
    }

    /// Limits the terms: a claim that arrives again and again could change hands for ever.
    fn within_boundary(&self, state: &State) -> bool {
        state.rows.iter().all(|row| row.term.get() <= self.terms)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mark_covers = |_: &Self, state: &State| {
            let mark = |slot| {
                let row = state.rows.iter().find(|row: &&Row| row.slot == slot);
                row.map_or(0, |row| row.mark.get())
            };
            let minted = state.minted.iter().all(|(slot, tick, _)| *tick < mark(*slot));
            let mut held = state.processes.iter().filter_map(|process| process.held);
            minted && held.all(|held| held.mark.get() <= mark(held.slot))
        };
        vec![
            Property::always("no tick is minted twice", |_, state: &State| !state.twice),
            Property::always("a mark never falls below anything minted or mintable", mark_covers),
            Property::sometimes(
                "both mint, from one slot where there is one",
                |model: &Self, state: &State| {
                    let by =
                        |who| state.minted.iter().find(|(_, _, by)| *by == who).map(|one| one.0);
                    by(0).is_some() && by(1).is_some() && (model.slots > 1 || by(0) == by(1))
                },
            ),
            Property::sometimes(
                "a slot changes hands twice, and is minted from",
                |_, state: &State| {
                    state.rows.iter().any(|row| row.term.get() >= 3) && state.minted.len() >= 2
                },
            ),
        ]
    }
}
