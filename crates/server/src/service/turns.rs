//! Turns at the store, for calls that each caller's request makes of its own.
//!
//! The problem: the store works on calls in the order in which they arrive. A caller that sends
//! thousands at once puts them all ahead of the next call of any other.
//!
//! This module's way: of each client, a few calls are at the store. Its other calls wait here, in
//! order, so a call of another client waits for few. Each secondary store, each list of stores of a
//! source and each upstream has turns of its own: if one does not respond, its calls keep none from
//! the others. Lists may have stores in common, so all lists together have a bound as well.

use std::collections::{HashMap, hash_map};
use std::fmt;
use std::sync::{Arc, Mutex};

use snowmint_coord::lock;
use snowmint_coord::spec::{Plan, SegmentPlan};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clients::share::Client;
use crate::error::shown;

/// Calls of one client at one target at the same time. With 2 ms each, 4,000 a second.
const CALLS_MAX: usize = 8;
/// Calls of one client at all lists of stores together: one store may be in each.
const LISTS_CALLS_MAX: usize = 8 * CALLS_MAX;

/// Target of a call: what the call waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TurnTarget {
    /// The primary store.
    Primary,
    /// A secondary store, by its name; with commas, all stores of one source, in order.
    Secondary(String),
    /// All lists of several stores.
    Lists,
    /// An upstream, by its name. The call then records the numbers in the primary store.
    Upstream(String),
}

impl TurnTarget {
    /// Returns the store of this name: a secondary one, or the primary one without a name.
    pub(crate) fn store(name: &str) -> Self {
        if name.is_empty() { Self::Primary } else { Self::Secondary(name.to_owned()) }
    }

    /// Returns the target of calls that a source of this plan makes.
    pub(super) fn of(plan: &Plan) -> Self {
        match plan {
            Plan::Segment(SegmentPlan { upstream: Some(upstream), .. }) => {
                Self::Upstream(upstream.name.clone())
            }
            plan => {
                let mut stores = plan.stores();
                // Each order of the same stores would have turns of its own.
                stores.sort_unstable();
                Self::store(&stores.join(","))
            }
        }
    }

    fn is_list(&self) -> bool {
        matches!(self, Self::Secondary(names) if names.contains(','))
    }

    /// Returns how many calls of one client may be there at the same time.
    const fn calls_max(&self) -> usize {
        match self {
            Self::Lists => LISTS_CALLS_MAX,
            _ => CALLS_MAX,
        }
    }
}

/// Writes it for a sentence.
impl fmt::Display for TurnTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primary => f.write_str("the store"),
            Self::Secondary(name) => write!(f, "store {}", shown(name)),
            Self::Lists => f.write_str("all lists of stores"),
            Self::Upstream(name) => write!(f, "upstream {}", shown(name)),
        }
    }
}

/// Holder of turns: a client, at one target.
type TurnHolder = (Client, TurnTarget);

/// The turns of all clients that have one, or wait for one.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<TurnHolder, HolderTurns>>);

#[derive(Debug)]
struct HolderTurns {
    semaphore: Arc<Semaphore>,
    /// Places of this holder. The count of the semaphore's owners would not do: a place drops its
    /// own share only after its `drop` has unlocked the map.
    places: usize,
}

/// The right to one call, until this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _at_target: TurnPermit,
    _at_lists: Option<TurnPermit>,
}

/// One of a holder's permits.
#[derive(Debug)]
struct TurnPermit {
    /// Returned first: the place forgets a client without calls.
    _permit: OwnedSemaphorePermit,
    _place: TurnPlace,
}

/// Turn that its call may release for a while. Clones are the same turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedTurn(Arc<Mutex<Option<Turn>>>);

impl SharedTurn {
    pub(crate) fn new(turn: Option<Turn>) -> Self {
        Self(Arc::new(Mutex::new(turn)))
    }

    /// Releases the turn, and keeps this one from now on.
    pub(super) fn replace(&self, turn: Option<Turn>) {
        // Dropped after the lock is released.
        let _before = {
            let mut kept = lock(&self.0);
            std::mem::replace(&mut *kept, turn)
        };
    }
}

/// Place of a client that has a turn or waits for one.
#[derive(Debug)]
struct TurnPlace {
    turns: Arc<Turns>,
    holder: TurnHolder,
}

impl Turns {
    /// Waits until fewer calls of the client are at the target than may be. Returns none only if a
    /// semaphore were closed, which this module never does.
    pub(super) async fn acquire(self: &Arc<Self>, holder: TurnHolder) -> Option<Turn> {
        let lists = holder.1.is_list().then(|| (holder.0.clone(), TurnTarget::Lists));
        let at_target = self.permit(holder).await?;
        // Second, so that calls that wait at one list take nothing of the others'. Those that have
        // both permits wait for none.
        let at_lists = match lists {
            Some(lists) => Some(self.permit(lists).await?),
            None => None,
        };
        Some(Turn { _at_target: at_target, _at_lists: at_lists })
    }

    async fn permit(self: &Arc<Self>, holder: TurnHolder) -> Option<TurnPermit> {
        let (place, semaphore) = self.place(holder);
        let permit = semaphore.acquire_owned().await.ok()?;
        Some(TurnPermit { _permit: permit, _place: place })
    }

    fn place(self: &Arc<Self>, holder: TurnHolder) -> (TurnPlace, Arc<Semaphore>) {
        let semaphore = {
            let mut holders = lock(&self.0);
            let calls_max = holder.1.calls_max();
            let new = || HolderTurns { semaphore: Arc::new(Semaphore::new(calls_max)), places: 0 };
            let entry = holders.entry(holder.clone()).or_insert_with(new);
            entry.places += 1;
            Arc::clone(&entry.semaphore)
        };
        (TurnPlace { turns: Arc::clone(self), holder }, semaphore)
    }
}

impl Drop for TurnPlace {
    fn drop(&mut self) {
        if let hash_map::Entry::Occupied(mut entry) = lock(&self.turns.0).entry(self.holder.clone())
        {
            entry.get_mut().places -= 1;
            if entry.get().places == 0 {
                entry.remove();
            }
        }
    }
}

/// Returns the message for a client whose earlier calls had all turns for so long.
pub(super) fn overloaded(client: &Client, target: &TurnTarget, wait_ms: u64) -> String {
    let lists = if target.is_list() {
        format!(", or {LISTS_CALLS_MAX} at {},", TurnTarget::Lists)
    } else {
        String::new()
    };
    format!(
        "{CALLS_MAX} calls of {client} were at {target}{lists} for {wait_ms} ms \
         (limits.wait_max), and more wait; send fewer at once"
    )
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use snowmint_coord::SourceSpec;

    use super::*;

    fn plan(json: &str) -> Plan {
        SourceSpec::from_json(json).unwrap().check().unwrap()
    }

    #[test]
    fn target_of_a_source_is_what_its_calls_wait_for() {
        for (json, target) in [
            (r#"{"kind":"segment"}"#, TurnTarget::Primary),
            (r#"{"kind":"counter"}"#, TurnTarget::Primary),
            (r#"{"kind":"segment","stores":"a, b"}"#, TurnTarget::Secondary("a,b".into())),
            (r#"{"kind":"segment","stores":"b,c,a"}"#, TurnTarget::Secondary("a,b,c".into())),
            (
                r#"{"layout":"redis","mint":"store","stores":"a=3,b=4"}"#,
                TurnTarget::Secondary("a,b".into()),
            ),
            (r#"{"kind":"segment","upstream":"old:bills"}"#, TurnTarget::Upstream("old".into())),
        ] {
            assert_eq!(TurnTarget::of(&plan(json)), target, "{json}");
        }
        assert_eq!(TurnTarget::store(""), TurnTarget::Primary);
        assert_eq!(TurnTarget::store("a").to_string(), r#"store "a""#);
    }

    /// A store that does not respond has all the turns that it can get.
    #[tokio::test]
    async fn turns_at_one_target_are_kept_from_no_other() {
        let turns = Arc::new(Turns::default());
        let at = |target: &TurnTarget| (Client::token("one"), target.clone());
        let targets = [
            TurnTarget::Primary,
            TurnTarget::Secondary("a".into()),
            TurnTarget::Upstream("a".into()),
        ];
        let mut acquired = Vec::new();
        for target in &targets {
            for _ in 0..CALLS_MAX {
                acquired.push(turns.acquire(at(target)).now_or_never().flatten().unwrap());
            }
            assert!(turns.acquire(at(target)).now_or_never().is_none(), "{target} is full");
        }
        drop(acquired);
        assert!(lock(&turns.0).is_empty(), "targets without calls are forgotten");
    }

    /// A store could otherwise have calls of as many lists as its client can define.
    #[tokio::test]
    async fn turns_at_all_lists_of_one_client_are_bounded() {
        let turns = Arc::new(Turns::default());
        let at = |client: &str, stores: &str| (Client::token(client), TurnTarget::store(stores));
        let mut acquired = Vec::new();
        for list in 0..LISTS_CALLS_MAX / CALLS_MAX {
            let stores = format!("a,b{list}");
            for _ in 0..CALLS_MAX {
                let turn = turns.acquire(at("one", &stores)).now_or_never().flatten();
                acquired.push(turn.unwrap());
            }
            // Tokio bounds what a task acquires before it yields.
            tokio::task::yield_now().await;
        }
        let mut waiting = Box::pin(turns.acquire(at("one", "a,c")));
        assert!((&mut waiting).now_or_never().is_none(), "one more list waits");
        let others = [at("one", "a"), at("one", ""), at("two", "a,b0")];
        let others = others.map(|holder| turns.acquire(holder).now_or_never().flatten().unwrap());
        acquired.pop();
        let last = waiting.await.unwrap();
        drop((acquired, others, last));
        assert!(lock(&turns.0).is_empty(), "clients without calls are forgotten");
    }

    #[test]
    fn overloaded_client_gets_each_limit_by_name() {
        let message = |stores| overloaded(&Client::token("one"), &TurnTarget::store(stores), 50);
        let lists =
            r#"8 calls of token one were at store "a,b", or 64 at all lists of stores, for"#;
        assert!(message("a,b").starts_with(lists), "{}", message("a,b"));
        for single in ["", "a"] {
            assert!(!message(single).contains("lists"), "{}", message(single));
        }
    }

    #[tokio::test]
    async fn released_turn_is_free_for_the_next_call() {
        let turns = Arc::new(Turns::default());
        let holder = (Client::token("one"), TurnTarget::Primary);
        let shared = SharedTurn::new(turns.acquire(holder).now_or_never().flatten());
        assert_eq!(lock(&turns.0).len(), 1);
        let same = shared.clone();
        same.replace(None);
        assert!(lock(&turns.0).is_empty());
        drop(shared);
    }

    #[tokio::test]
    async fn turns_of_one_client_are_few_and_do_not_hold_up_others() {
        let turns = Arc::new(Turns::default());
        let at_store = |name: &str| (Client::token(name), TurnTarget::Primary);
        let (greedy, other) = (at_store("greedy"), at_store("other"));
        let mut acquired = Vec::new();
        for _ in 0..CALLS_MAX {
            acquired.push(turns.acquire(greedy.clone()).now_or_never().flatten().unwrap());
        }
        let mut waiting = Box::pin(turns.acquire(greedy.clone()));
        assert!((&mut waiting).now_or_never().is_none(), "one more waits");
        let honest = turns.acquire(other).now_or_never().flatten().unwrap();
        acquired.pop();
        let last = waiting.await.unwrap();
        // A caller that gives up while it waits leaves nothing behind.
        drop(turns.acquire(greedy).now_or_never());
        drop((acquired, last, honest));
        assert!(lock(&turns.0).is_empty(), "clients without calls are forgotten");
    }
}
