//! Many callers that read the store through one node: the store gets one call for all of them, and
//! the node's own calls wait for none.

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::kills::in_time;
use super::*;

/// Minting node, with calls that a test can hold for any time.
struct Ground {
    world: World,
    node: Node,
    source: Source,
    faults: faulty::Faults,
}

impl Ground {
    async fn new() -> Self {
        let world = World::new();
        let store = world.faulty();
        let faults = faulty::Faults {
            held: Arc::clone(&store.faults.held),
            late: Arc::clone(&store.faults.late),
            verbs: Arc::clone(&store.faults.verbs),
            ..faulty::Faults::default()
        };
        let settings = NodeSettings { store_call_ms: 600_000, ..NodeSettings::default() };
        let node = Node::open(Arc::new(store), settings, world.platform()).await.unwrap();
        node.define("orders", &spec("{}")).await.unwrap();
        let source = in_time(&world, node.source("orders")).await.unwrap();
        in_time(&world, source.mint(1, None, 5_000)).await.unwrap();
        settle().await;
        Self { world, node, source, faults }
    }

    fn calls(&self, verb: &str) -> usize {
        self.faults.verbs.lock().unwrap().iter().filter(|called| **called == verb).count()
    }

    fn list(&self) -> JoinHandle<Result<Listed>> {
        let node = self.node.clone();
        tokio::spawn(async move { node.sources().await })
    }

    fn see(&self, name: &str) -> JoinHandle<Result<SourceInfo>> {
        let (node, name) = (self.node.clone(), name.to_owned());
        tokio::spawn(async move { node.definition(&name).await })
    }
}

fn names(listed: &Listed) -> Vec<&str> {
    listed.sources.iter().map(|source| source.name.as_str()).collect()
}

#[tokio::test]
async fn concurrent_lists_share_a_call_while_windows_extend() {
    let ground = Ground::new().await;
    let (before, resume) = (ground.calls("list"), Arc::<Notify>::default());
    *ground.faults.held.lock().unwrap() = Some(("list", Arc::clone(&resume)));
    let first = ground.list();
    settle().await;
    let callers: Vec<_> = (0..200).map(|_| ground.list()).collect();
    settle().await;
    assert_eq!(ground.calls("list"), before + 1, "one is in flight");

    let extended = ground.calls("extend");
    while ground.calls("extend") < extended + 2 {
        ground.world.pass(1_000).await;
        in_time(&ground.world, ground.source.mint(1, None, 5_000)).await.unwrap();
    }
    assert!(ground.node.readiness().ready, "{:?}", ground.node.readiness());
    assert!(callers.iter().all(|caller| !caller.is_finished()));

    // The node's own reads do not wait for those of callers.
    let meanwhile = ground.calls("list");
    resume.notify_one();
    for caller in std::iter::once(first).chain(callers) {
        assert_eq!(names(&caller.await.unwrap().unwrap()), ["orders"]);
    }
    assert!(ground.calls("list") <= meanwhile + 1, "one for all who came after it");
}

/// A result in flight may be older than the caller's own change.
#[tokio::test]
async fn defined_source_is_in_the_next_list() {
    let ground = Ground::new().await;
    let resume = Arc::<Notify>::default();
    *ground.faults.late.lock().unwrap() = Some(("list", Arc::clone(&resume)));
    let first = ground.list();
    while ground.faults.late.lock().unwrap().is_some() {
        tokio::task::yield_now().await;
    }
    ground.node.define("bills", &spec("{}")).await.unwrap();
    let second = ground.list();
    settle().await;
    resume.notify_one();
    assert_eq!(names(&first.await.unwrap().unwrap()), ["orders"]);
    assert_eq!(names(&second.await.unwrap().unwrap()), ["bills", "orders"]);
}

/// Holds for any number of names: a few are read individually, and the rest together.
#[tokio::test]
async fn many_definition_reads_cost_few_calls() {
    let ground = Ground::new().await;
    let (gets, lists) = (ground.calls("get"), ground.calls("list"));
    let resume = Arc::<Notify>::default();
    *ground.faults.held.lock().unwrap() = Some(("get", Arc::clone(&resume)));
    let first = ground.see("orders");
    settle().await;
    let others: Vec<_> = (0..100).map(|number| ground.see(&format!("tmp-{number}"))).collect();
    let known: Vec<_> = (0..100).map(|_| ground.see("orders")).collect();
    settle().await;
    assert_eq!(ground.calls("get"), gets + 1, "one is in flight");
    resume.notify_one();
    assert_eq!(first.await.unwrap().unwrap().name, "orders");
    for other in others {
        let error = other.await.unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotFound), "{error}");
    }
    for known in known {
        assert_eq!(known.await.unwrap().unwrap().name, "orders");
    }
    let calls = ground.calls("get") - gets + ground.calls("list") - lists;
    assert!(calls <= 16, "{calls}");
}
