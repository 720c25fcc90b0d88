//! Recovery of a store whose rows another server has than the one that wrote them: a promoted
//! replica, or a server to which a copy was moved. It may lack acknowledged writes, and its reports
//! may be older than what the journals know.

use std::sync::Arc;

use snowmint_coord::recovery::accept_other_server;
use snowmint_coord::{FastForward, Mark, Result, Store};

use super::case::{definition, reached};
use super::joined_holder::five_of;

const SOURCE: &str = "orders";

/// Ways to recover rows on another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// An operator accepts the server, which puts the store in doubt, and then recovers it.
    Accepted,
    /// The recovery itself accepts the server: no process uses the former one.
    Vouched,
}

/// Tests a store that another server takes over, twice. `open` returns a new handle of the store's
/// own URL. `take_over` puts another server with the same rows in the place of the present one.
/// `is_distinguished` says whether the store can distinguish the two; where it cannot, a recovery
/// accepts both.
///
/// # Panics
/// When a recovery that checks the server moves a store on another one, or a recovery on an
/// accepted server moves nothing.
pub async fn recovery_checks_the_server(
    open: impl AsyncFn() -> Arc<dyn Store>,
    mut take_over: impl AsyncFnMut(),
    is_distinguished: bool,
) {
    let running = open().await;
    let new = definition(SOURCE, "a");
    reached(|| running.define(&new)).await.unwrap();
    reserve(&running).await;
    recover(&running, 100, true).await.unwrap();
    assert_eq!(next(&running).await, 100, "the server is the one that wrote the rows");
    for (way, number) in [(Way::Accepted, 1_000), (Way::Vouched, 2_000)] {
        take_over().await;
        let fresh = open().await;
        let before = (reached(|| fresh.identity()).await.unwrap(), next(&fresh).await);
        for handle in [&running, &fresh] {
            let recovered = recover(handle, number, true).await;
            if !is_distinguished {
                recovered.unwrap();
                continue;
            }
            let refused = recovered.expect_err("it was written by another server");
            assert_eq!(refused.kind().code(), "store_mismatch", "{way:?}: {refused}");
            assert!(refused.to_string().contains("--other-server"), "{way:?}: {refused}");
            let after = (fresh.identity().await.unwrap(), next(&fresh).await);
            assert_eq!(after, before, "{way:?}: a rejected recovery changes nothing");
        }
        if way == Way::Accepted {
            accept_other_server(&*fresh).await.unwrap();
            let doubt = fresh.standing().await.unwrap().doubt;
            assert_eq!(doubt.is_some(), is_distinguished, "{doubt:?}");
        }
        recover(&fresh, number, way == Way::Accepted).await.unwrap();
        assert_eq!(next(&fresh).await, number, "{way:?}");
        // The server has the store from now on.
        recover(&fresh, number + 1, true).await.unwrap();
        assert_eq!(reserve(&fresh).await, number + 1, "{way:?}");
    }
    running.close().await.unwrap();
}

/// Moves the source to a number, by a plan on the store's present state.
async fn recover(store: &Arc<dyn Store>, number: u64, same_server: bool) -> Result<()> {
    reached(|| async {
        let planned_on = Some(store.standing().await?);
        let segments = vec![(SOURCE.to_owned(), Mark::new(number))];
        let forward = FastForward { segments, planned_on, same_server, ..FastForward::default() };
        store.fast_forward(&forward).await.map(drop)
    })
    .await
}

/// Reserves numbers, and returns the first.
async fn reserve(store: &Arc<dyn Store>) -> u64 {
    let five = five_of(&reached(|| store.get(SOURCE)).await.unwrap());
    reached(|| store.reserve(&five)).await.unwrap().first
}

async fn next(store: &Arc<dyn Store>) -> u64 {
    reached(|| store.get(SOURCE)).await.unwrap().segment.mark.get()
}
