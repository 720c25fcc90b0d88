//! Long random histories, with equal results from the store and the memory store.

use super::case::{Case, cases, definition};
use snowmint_coord::{
    ClaimRequest, Definition, Error, Extend, FastForward, GiveBack, Incarnation, Lease, Mark,
    Member, MemoryClock, MemoryStore, Pool, Preference, Presence, Release, Reserve, Result, Reuse,
    Segment, SourceState, Store,
};
use snowmint_core::{MIX_STEP, UnixMillis, mixed};

cases![random_histories_match_the_memory_store];

const HISTORIES: u64 = 8;
const STEPS: u64 = 150;

/// The splitmix64 sequence: sufficient for choosing verbs, and the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(MIX_STEP);
        mixed(self.0) % below
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let count = u64::try_from(from.len()).unwrap();
        let index = (count > 0).then(|| self.roll(count))?;
        Some(from[usize::try_from(index).unwrap()].clone())
    }
}

/// Earlier results, from which sensible (and stale) arguments are chosen.
#[derive(Default)]
struct ResultHistory {
    leases: Vec<Lease>,
    segments: Vec<(String, Segment)>,
    definitions: Vec<Definition>,
    marks: Vec<Mark>,
}

/// Returns a result without the parts that differ between two stores: `writes`, and the causes of
/// errors.
fn comparable<T: std::fmt::Debug>(result: &Result<T>) -> String {
    match result {
        Ok(result) => format!("{result:?}"),
        Err(error) => format!("{:?}: {}", error.kind(), error.message()),
    }
}

async fn random_histories_match_the_memory_store(case: Case) {
    for seed in 0..HISTORIES {
        let namespace = case.numbered_namespace(seed).await;
        play(&namespace, seed).await;
    }
}

async fn play(case: &Case, seed: u64) {
    let mut dice = Dice(seed);
    let mut history = ResultHistory::default();
    let mut now = case.now().await;
    let clock = MemoryClock::new(now);
    let reference = MemoryStore::with_clock("reference", clock.clone()).unwrap();
    for step in 0..STEPS {
        if case.goes_by_callers() {
            now = now.saturating_add(dice.roll(400));
        } else {
            // Far enough apart that both clocks see the same order.
            case.pass_ms(2).await;
            now = case.now().await;
        }
        clock.set(now);
        let verb = dice.roll(14);
        let context = format!("seed {seed}, step {step}, verb {verb}");
        one_step(case, &reference, verb, &mut dice, &mut history, now, &context).await;
    }
    let live = |infos: Vec<snowmint_coord::SlotInfo>| {
        infos
            .into_iter()
            .map(|info| (info.slot, info.term, info.mark, info.holder))
            .collect::<Vec<_>>()
    };
    let ours = case.store.workers(now).await.unwrap();
    assert_eq!(live(ours), live(reference.workers(now).await.unwrap()), "seed {seed}");
}

/// Sends one verb to both stores and compares the results.
async fn one_step(
    case: &Case,
    reference: &MemoryStore,
    verb: u64,
    dice: &mut Dice,
    history: &mut ResultHistory,
    now: UnixMillis,
    context: &str,
) {
    macro_rules! both {
        ($verb:ident($($argument:expr),*)) => {{
            let ours = case.store.$verb($($argument),*).await;
            let theirs = reference.$verb($($argument),*).await;
            (ours, theirs)
        }};
    }
    let incarnation = Incarnation::new(u128::from(1 + dice.roll(4)));
    // Long enough that real time does not matter to a store with a clock of its own.
    let ttl_ms = if case.goes_by_callers() { 1000 } else { 600_000 };
    let presence = Presence { sample: now, renewals: dice.roll(100), ttl_ms };
    let name = ["a", "b", "c"][usize::try_from(dice.roll(3)).unwrap()];
    match verb {
        0 => {
            let member = Member {
                incarnation,
                owner: name.into(),
                host: "h".into(),
                process: 1,
                address: String::new(),
            };
            let (ours, theirs) = both!(join(&member, presence, now));
            assert_eq!(comparable(&ours), comparable(&theirs), "{context}");
        }
        1 => {
            let (ours, theirs) = both!(renew(incarnation, presence, now));
            assert_eq!(comparable(&ours), comparable(&theirs), "{context}");
        }
        2 if dice.roll(3) == 0 => {
            let (ours, theirs) = both!(leave(incarnation, now));
            assert_eq!(comparable(&ours), comparable(&theirs), "{context}");
        }
        2..=4 => {
            let request = a_claim(dice, incarnation, name, now);
            let (ours, theirs) = both!(claim(&request, now));
            assert_eq!(strip_times(&ours), strip_times(&theirs), "{context}: {request:?}");
            for lease in ours.into_iter().flatten() {
                history.marks.push(lease.mark);
                history.leases.push(lease);
            }
        }
        5..=7 => {
            let items: Vec<Extend> =
                (0..1 + dice.roll(3)).filter_map(|_| an_extend(case, dice, history, now)).collect();
            let (ours, theirs) = both!(extend(&items, now));
            let results = ours.unwrap().into_iter().zip(theirs.unwrap());
            for ((ours, theirs), item) in results.zip(&items) {
                let mark = |result: Result<snowmint_coord::Extended>| {
                    result.map(|extended| (extended.mark, extended.catalog_version))
                };
                let (ours, theirs) = (mark(ours), mark(theirs));
                assert_eq!(strip_times(&ours), strip_times(&theirs), "{context}: {item:?}");
                history.marks.extend(ours.into_iter().map(|(mark, _)| mark));
            }
        }
        8 => {
            let (Some(lease), Some(mark)) = (dice.pick(&history.leases), dice.pick(&history.marks))
            else {
                return;
            };
            let holder = a_holder(dice, history, &lease);
            let release = Release { holder, mark, ..lease.unused() };
            let (ours, theirs) = both!(release(&release, now));
            assert_eq!(comparable(&ours), comparable(&theirs), "{context}: {release:?}");
        }
        9 | 10 => {
            let Some(source) = dice.pick(&history.definitions) else { return };
            let reserve = Reserve {
                source: source.name.clone(),
                length: dice.roll(5),
                definition_version: source.version,
                within: None,
            };
            let (ours, theirs) = both!(reserve(&reserve));
            let numbers = |result: &Result<Segment>| {
                comparable(&result.clone().map(|s| (s.first, s.last, s.version)))
            };
            assert_eq!(numbers(&ours), numbers(&theirs), "{context}: {reserve:?}");
            history.segments.extend(ours.into_iter().map(|segment| (source.name.clone(), segment)));
        }
        11 => {
            let Some((source, segment)) = dice.pick(&history.segments) else { return };
            let back = GiveBack {
                source,
                first: segment.first + dice.roll(4),
                last: segment.last,
                version: segment.version,
            };
            let (ours, theirs) = both!(give_back(&back));
            assert_eq!(comparable(&ours), comparable(&theirs), "{context}: {back:?}");
        }
        12 => {
            let mut new = definition(name, if dice.roll(2) == 0 { "x" } else { "y" });
            if dice.roll(8) == 0 {
                new.identity.push(' ');
            }
            let version = dice.roll(20);
            let (ours, theirs) = match dice.roll(4) {
                0 => both!(define(&new)),
                1 => both!(alter(&new, None)),
                2 => both!(alter(&new, Some(version))),
                _ => {
                    let state = [SourceState::Enabled, SourceState::Disabled, SourceState::Deleted]
                        [usize::try_from(dice.roll(3)).unwrap()];
                    both!(set_state(name, state))
                }
            };
            assert_eq!(comparable(&ours), comparable(&theirs), "{context}: {new:?}");
            history.definitions.extend(ours);
            let (ours, theirs) = both!(list());
            assert_eq!(comparable(&ours), comparable(&theirs), "{context}");
        }
        _ => {
            if dice.roll(4) != 0 {
                return;
            }
            let forward = FastForward {
                marks_at_least: Mark::new(now.get().saturating_sub(dice.roll(2000))),
                segments: vec![(name.into(), Mark::new(dice.roll(60)))],
                // Servers make no recovery for a program.
                values_only: dice.roll(2) == 0 || case.is_behind_servers(),
                ..FastForward::default()
            };
            let (ours, theirs) = both!(fast_forward(&forward));
            let (ours, theirs) = (ours.map(|_| ()), theirs.map(|_| ()));
            assert_eq!(comparable(&ours), comparable(&theirs), "{context}: {forward:?}");
        }
    }
}

fn a_claim(dice: &mut Dice, member: Incarnation, owner: &str, now: UnixMillis) -> ClaimRequest {
    let pools = [
        Pool { name: "single".into(), slots: 3, group: 1, reuse: Reuse::Recycle },
        Pool { name: "pairs".into(), slots: 6, group: 2, reuse: Reuse::Recycle },
        Pool { name: "fresh".into(), slots: 40, group: 1, reuse: Reuse::Never },
    ];
    let preference = match dice.roll(4) {
        0 => Preference::Any,
        1 => Preference::Exactly(dice.roll(4)),
        _ => Preference::LastOfOwner,
    };
    ClaimRequest {
        pool: pools[usize::try_from(dice.roll(3)).unwrap()].clone(),
        member,
        owner: owner.into(),
        count: 1 + u32::from(dice.roll(5) == 0),
        preference,
        supersedes: (dice.roll(4) == 0).then(|| Incarnation::new(u128::from(1 + dice.roll(4)))),
        mark_at_most: Mark::new(now.get() + dice.roll(500)),
        request: 1 + dice.roll(40),
    }
}

/// Returns mostly the holder; sometimes none, for a call by the term alone, and sometimes another
/// holder.
fn a_holder(dice: &mut Dice, history: &ResultHistory, lease: &Lease) -> Option<Incarnation> {
    match dice.roll(6) {
        0 => None,
        1 => dice.pick(&history.leases).and_then(|other| other.holder),
        _ => lease.holder,
    }
}

fn an_extend(
    case: &Case,
    dice: &mut Dice,
    history: &ResultHistory,
    now: UnixMillis,
) -> Option<Extend> {
    let lease = dice.pick(&history.leases)?;
    let from = if dice.roll(2) == 0 { lease.mark } else { dice.pick(&history.marks)? };
    Some(Extend {
        holder: a_holder(dice, history, &lease),
        pool: lease.pool,
        slot: lease.slot,
        term: lease.term,
        from,
        // Real time passes between the two calls where the store has a clock of its own: the limit
        // must lie far from both times.
        to: Mark::new(
            now.get() + dice.roll(1000) * if case.goes_by_callers() { 1 } else { 36_000 },
        ),
        request: dice.roll(6),
        ahead_max_ms: (dice.roll(2) == 0).then_some(if case.goes_by_callers() {
            500
        } else {
            500 * 36_000 - 18_000
        }),
    })
}

/// Returns a result without the times, which depend on the exact moment of the call.
fn strip_times<T: std::fmt::Debug>(result: &Result<T, Error>) -> String {
    match result {
        Ok(result) => format!("{result:?}"),
        Err(error) => error.kind().code().into(),
    }
}
