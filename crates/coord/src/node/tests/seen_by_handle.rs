//! Reports of what only the handle of a process has seen of its store.

use std::sync::atomic::{AtomicBool, Ordering};

use super::kills::Scratch;
use super::restored::{in_doubt, open, recover, settings};
use super::*;
use crate::store::lazy_store::LazyStore;

/// A recovery must exceed them, or the process would put the recovered store in doubt again.
#[tokio::test]
async fn report_has_the_recoveries_that_the_handle_has_seen() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, Some(&dir)).await;
    let backup = world.store.backup();
    let raised = FastForward { same_server: true, values_only: true, ..FastForward::default() };
    for _ in 0..3 {
        world.handle().fast_forward(&raised).await.unwrap();
    }
    node.core().ctx.store.identity().await.unwrap();
    world.store.restore(backup);
    in_doubt(&world).await;
    assert_eq!(world.handle().standing().await.unwrap().known.recoveries, 3);
    recover(&world, &node).await;
    world.pass(5_000).await;
    assert_eq!(world.handle().standing().await.unwrap().doubt, None);
}

/// A process without a journal has met the store through its handle alone (Restores, seed 11,052).
#[tokio::test]
async fn report_before_the_first_join_has_what_the_handle_has_seen() {
    let world = World::new();
    let is_up = Arc::new(AtomicBool::new(false));
    let (handle, up) = (world.handle(), Arc::clone(&is_up));
    let store = LazyStore::new("default", move || {
        let (handle, up) = (Arc::clone(&handle), up.load(Ordering::SeqCst));
        Box::pin(async move {
            if up { Ok(handle) } else { Err(Error::unavailable("store is unavailable")) }
        })
    });
    let settings = NodeSettings { start_without_store: true, ..settings(None) };
    let node = Node::open(Arc::new(store), settings, world.platform()).await.unwrap();
    let backup = world.store.backup();
    let raised = FastForward { same_server: true, values_only: true, ..FastForward::default() };
    for _ in 0..3 {
        world.handle().fast_forward(&raised).await.unwrap();
    }
    is_up.store(true, Ordering::SeqCst);
    let seen = node.core().ctx.store.identity().await.unwrap();
    world.store.restore(backup);
    in_doubt(&world).await;
    let known = world.handle().standing().await.unwrap().known;
    assert_eq!((known.recoveries, known.writes), (3, seen.writes));
    recover(&world, &node).await;
    world.pass(5_000).await;
    assert_eq!(world.handle().standing().await.unwrap().doubt, None);
}
