//! Limits on how much of a store the calls of programs take.

use snowmint_client::RemoteStore;
use snowmint_coord::lend::lent_pool;
use snowmint_coord::{Extend, LetGo, Mark, MemoryStore, Store, Term};

use crate::tokens::bounds::said;
use crate::tokens::rights::{code, joined, now};
use crate::tokens::{ADMIN, BILLS, ENOUGH, ORDERS, define, remote, serve};

/// Each call is a step of the store, for which all others wait.
#[tokio::test]
async fn program_names_few_numbers_in_a_call() {
    let store = MemoryStore::new("all").unwrap();
    let (server, node) = serve(&store, ENOUGH).await;
    define(&node, "bills", "{}").await;
    let clocked = r#"{"layout":"time=41,clock=3,worker=7,sequence=12"}"#;
    define(&node, "bills-clocked", clocked).await;
    let bills = remote(BILLS, &[&server]).await;
    let member = joined(&*bills, 1).await;
    let extend = async |by: &RemoteStore, pool: &str, slots: u64| {
        let item = |slot| Extend {
            pool: pool.to_owned(),
            slot,
            term: Term::new(1),
            holder: Some(member),
            from: Mark::ZERO,
            to: Mark::new(1),
            request: slot + 1,
            ahead_max_ms: None,
        };
        by.extend(&(0..slots).map(item).collect::<Vec<_>>(), now()).await
    };
    // Four times `limits.workers_max`; a number of the second pool has eight slots.
    for (pool, most) in [("workers-10", 64), ("workers-7-clock-3", 512)] {
        let refused = extend(&bills, pool, most + 1).await;
        assert_eq!(code(refused.clone()), "too_many", "{pool}");
        said(refused, &["65", "limits.workers_max"]);
        let results = extend(&bills, pool, most).await.unwrap();
        assert!(results.iter().all(Result::is_err), "no number was claimed");
    }
    let orders = remote(ORDERS, &[&server]).await;
    let lender = joined(&*orders, 2).await;
    let let_go = async |count: u64| {
        let slots = (0..count).map(|slot| (slot, Term::new(1))).collect();
        let pool = lent_pool("shop", 10).unwrap().name;
        orders.let_go(&LetGo { pool, member: lender, slots }, now()).await
    };
    assert_eq!(code(let_go(65).await), "too_many");
    let_go(64).await.unwrap();
    // A token that may move the whole store is not limited.
    let admin = remote(ADMIN, &[&server]).await;
    joined(&*admin, 3).await;
    assert_eq!(extend(&admin, "workers-10", 65).await.unwrap().len(), 65);
}
