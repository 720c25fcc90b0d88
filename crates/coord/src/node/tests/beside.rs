//! Sources whose numbers several stores hand out, over memory stores that are away at times.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::beside::{Place, Places};

/// A store beside the world's own.
#[derive(Clone, Debug)]
struct At {
    store: Arc<MemoryStore>,
    away: Arc<AtomicBool>,
}

impl At {
    fn new() -> Self {
        let store = MemoryStore::new("default").unwrap();
        Self { store: Arc::new(store), away: Arc::default() }
    }

    /// The next number of the store's own count.
    async fn mark(&self) -> u64 {
        let store = self.store.handle("default").unwrap();
        store.get("bills").await.unwrap().segment.mark.get()
    }
}

#[async_trait::async_trait]
impl Place for At {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        if self.away.load(Ordering::SeqCst) {
            let what = "a memory store that is away".into();
            return Err(Error::new("open store", ErrorKind::Unavailable { what }));
        }
        Ok(Arc::new(self.store.handle("default")?))
    }
}

struct Stores {
    world: World,
    all: Vec<At>,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Stores {
    fn new(count: usize) -> Self {
        Self { world: World::new(), all: (0..count).map(|_| At::new()).collect() }
    }

    async fn open(&self) -> Node {
        let places = NAMES.into_iter().zip(&self.all);
        let beside: Places =
            places.map(|(name, at)| (name.to_owned(), Arc::new(at.clone()) as _)).collect();
        self.world.open_with(NodeSettings { beside, ..NodeSettings::default() }).await
    }

    /// A node with the source.
    async fn serving(&self) -> (Node, Source) {
        let node = self.open().await;
        let stores = NAMES[..self.all.len()].join(",");
        let keys = format!(
            r#"{{"kind":"segment","stores":"{stores}","step":{{"rule":"fixed","size":50}}}}"#
        );
        node.define("bills", &spec(&keys)).await.unwrap();
        let source = self.passing(node.source("bills")).await.unwrap();
        (node, source)
    }

    async fn passing<T>(&self, call: impl Future<Output = T>) -> T {
        tokio::pin!(call);
        for _ in 0..10_000 {
            tokio::select! {
                biased;
                answer = &mut call => return answer,
                () = self.world.pass(5) => {}
            }
        }
        panic!("no answer within 50 s");
    }

    async fn drawn(&self, source: &Source, count: u32) -> Vec<u64> {
        numbers(self.passing(source.mint(count, None, 20_000)).await.unwrap())
    }
}

fn serving(source: &Source) -> Vec<bool> {
    source.stats().stores.iter().map(|share| share.serves).collect()
}

#[tokio::test]
async fn each_store_has_a_residue_and_all_of_them_serve() {
    let stores = Stores::new(3);
    let (node, source) = stores.serving().await;
    let mut seen = HashSet::new();
    for _ in 0..30 {
        let ids = stores.drawn(&source, 7).await;
        for id in ids {
            assert!(seen.insert(id), "{id} came twice");
        }
        assert!(seen.insert(stores.passing(async { source.try_mint() }).await.unwrap()));
        let row = stores.passing(source.row(4, 20_000)).await.unwrap();
        assert_eq!((row.increment, row.last), (3, row.first + 9));
        for index in 0..4 {
            assert!(seen.insert(row.first + 3 * index));
        }
    }
    for residue in 0..3 {
        assert!(seen.iter().filter(|id| *id % 3 == residue).count() > 50);
    }
    let stats = source.stats();
    assert_eq!(serving(&source), [true; 3]);
    let stripes: Vec<_> = stats.stores.iter().map(|share| share.stripe.unwrap()).collect();
    assert_eq!(stripes, [(1, 3), (2, 3), (3, 3)]);
    assert!(stats.numbers.unwrap().fetched >= 360);
    assert!(source.numbers().is_err(), "no short way");
    let shares = node.definition("bills").await.unwrap().shares;
    assert_eq!(shares.len(), 3);
    let marks = [stores.all[0].mark().await, stores.all[1].mark().await];
    node.close().await.unwrap();
    assert!(source.try_mint().is_err());
    assert!(stores.all[0].mark().await < marks[0] && stores.all[1].mark().await < marks[1]);
}

#[tokio::test]
async fn residues_are_given_when_all_stores_are_there_and_then_any_may_be_away() {
    let stores = Stores::new(2);
    stores.all[1].away.store(true, Ordering::SeqCst);
    let node = stores.open().await;
    node.define("bills", &spec(r#"{"kind":"segment","stores":"a,b"}"#)).await.unwrap();
    let refused = stores.passing(node.source("bills")).await.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Unavailable { .. }), "{refused}");
    for said in ["a: ", "reached once", "b: ", "away"] {
        assert!(refused.to_string().contains(said), "{said}: {refused}");
    }
    let readiness = node.readiness();
    assert!(!readiness.ready && readiness.reasons.join(" ").contains("no store of source bills"));
    stores.all[1].away.store(false, Ordering::SeqCst);
    stores.world.pass(3_000).await;
    let source = stores.passing(node.source("bills")).await.unwrap();
    assert_eq!(serving(&source), [true; 2]);
    assert!(node.readiness().ready, "{:?}", node.readiness());
    let mut seen: HashSet<_> = stores.drawn(&source, 300).await.into_iter().collect();
    node.close().await.unwrap();

    stores.all[0].away.store(true, Ordering::SeqCst);
    let node = stores.open().await;
    let source = stores.passing(node.source("bills")).await.unwrap();
    assert_eq!(serving(&source), [false, true]);
    assert!(source.stats().stores[0].trouble.as_ref().unwrap().contains("away"));
    stores.world.pass(3_000).await;
    assert!(node.readiness().ready, "one is enough: {:?}", node.readiness());
    for id in stores.drawn(&source, 300).await {
        assert!(id % 2 == 0 && seen.insert(id), "{id}");
    }
    stores.all[0].away.store(false, Ordering::SeqCst);
    stores.world.pass(3_000).await;
    assert_eq!(serving(&source), [true; 2]);
}

/// Somebody gives a store a stripe by hand that another has.
#[tokio::test]
async fn stores_that_share_numbers_stop_both_and_are_shown() {
    let stores = Stores::new(2);
    let (_node, source) = stores.serving().await;
    let highest = stores.drawn(&source, 40).await.into_iter().max().unwrap();
    let other = stores.all[1].store.handle("default").unwrap();
    let by_hand = Node::open(Arc::new(other), NodeSettings::default(), stores.world.parts());
    let by_hand = by_hand.await.unwrap();
    let stripe = NewStripe { offset: 1, increment: 2, first: None, if_version: None };
    by_hand.restripe("bills", stripe).await.unwrap();
    stores.world.pass(8_000).await;
    assert_eq!(serving(&source), [false; 2]);
    let refused = source.try_mint().unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Conflict { .. }), "{refused}");
    let stripe = NewStripe { offset: 2, ..stripe };
    by_hand.restripe("bills", stripe).await.unwrap();
    stores.world.pass(8_000).await;
    assert_eq!(serving(&source), [true; 2], "{:?}", source.stats().stores);
    assert!(stores.drawn(&source, 10).await.into_iter().all(|id| id > highest));
}

#[tokio::test]
async fn what_may_be_altered_is_passed_on() {
    let stores = Stores::new(2);
    let (node, source) = stores.serving().await;
    stores.drawn(&source, 20).await;
    let altered = r#"{"kind":"segment","stores":"a,b","step":{"rule":"fixed","size":7}}"#;
    node.alter("bills", &spec(altered), None).await.unwrap();
    stores.world.pass(3_000).await;
    for at in &stores.all {
        let stored = at.store.handle("default").unwrap().get("bills").await.unwrap();
        assert!(stored.spec.contains(r#""size":7"#), "{}", stored.spec);
    }
    stores.drawn(&source, 200).await;
    for (stores, error) in [("a,b,c", "name it under [stores]"), ("a", "2 to 64")] {
        let keys = format!(r#"{{"kind":"segment","stores":"{stores}"}}"#);
        let refused = node.alter("bills", &spec(&keys), None).await.unwrap_err();
        assert!(refused.to_string().contains(error), "{refused}");
    }
    let plain = node.alter("bills", &spec(r#"{"kind":"segment"}"#), None).await.unwrap_err();
    assert!(matches!(plain.kind(), ErrorKind::Conflict { .. }), "{plain}");
    assert!(
        node.restripe(
            "bills",
            NewStripe { offset: 1, increment: 2, first: None, if_version: None }
        )
        .await
        .unwrap_err()
        .to_string()
        .contains("come from the stores")
    );
    node.set_enabled("bills", false).await.unwrap();
    let off = source.try_mint().unwrap_err();
    assert!(matches!(off.kind(), ErrorKind::Disabled { .. }), "{off}");
}
