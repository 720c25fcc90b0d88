//! Limits on how much of a store the calls of programs take.

use snowmint_client::RemoteStore;
use snowmint_coord::external::external_pool;
use snowmint_coord::{Extend, Incarnation, Mark, Member, MemoryStore, Relinquish, Store, Term};
use snowmint_server::Limits;

use crate::tokens::bounds::assert_rejected;
use crate::tokens::rights::{code, joined, now, presence};
use crate::tokens::{ADMIN, BILLS, ENOUGH, ORDERS, define, remote, serve};

/// Each member is a row, which joins, claims and lists read.
#[tokio::test]
async fn token_has_few_members() {
    let store = MemoryStore::new("all").unwrap();
    let (server, _) = serve(&store, ENOUGH).await;
    let limits = server.service().limits();
    server.service().set_limits(Limits { workers_max: 1, ..(*limits).clone() });
    let bills = remote(BILLS, &[&server]).await;
    let join = async |by: &RemoteStore, number: u128| {
        let incarnation = Incarnation::new(number);
        let (owner, host, address) = ("it".into(), "here".into(), String::new());
        let member = Member { incarnation, owner, host, process: 1, address };
        by.join(&member, presence(), now()).await
    };
    for number in 1..=16 {
        join(&bills, number).await.unwrap();
    }
    let refused = join(&bills, 17).await;
    assert_eq!(code(refused.clone()), "limit_exceeded");
    assert_rejected(refused, &["bills", "16", "limits.workers_max"]);
    // A member that the store knows joins again, and another token has a count of its own.
    join(&bills, 16).await.unwrap();
    let orders = remote(ORDERS, &[&server]).await;
    join(&orders, 17).await.unwrap();
    bills.leave(Incarnation::new(3), now()).await.unwrap();
    join(&bills, 17).await.unwrap();
    assert_eq!(code(join(&bills, 18).await), "limit_exceeded");
    // A token that may move the whole store is not limited.
    let admin = remote(ADMIN, &[&server]).await;
    for number in 1..=17 {
        join(&admin, number).await.unwrap();
    }
}

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
        assert_eq!(code(refused.clone()), "limit_exceeded", "{pool}");
        assert_rejected(refused, &["65", "limits.workers_max"]);
        let results = extend(&bills, pool, most).await.unwrap();
        assert!(results.iter().all(Result::is_err), "no number was claimed");
    }
    let orders = remote(ORDERS, &[&server]).await;
    let lender = joined(&*orders, 2).await;
    let relinquish = async |count: u64| {
        let slots = (0..count).map(|slot| (slot, Term::new(1))).collect();
        let pool = external_pool("shop", 10).unwrap().name;
        orders.relinquish(&Relinquish { pool, member: lender, slots }, now()).await
    };
    assert_eq!(code(relinquish(65).await), "limit_exceeded");
    relinquish(64).await.unwrap();
    // A token that may move the whole store is not limited.
    let admin = remote(ADMIN, &[&server]).await;
    joined(&*admin, 3).await;
    assert_eq!(extend(&admin, "workers-10", 65).await.unwrap().len(), 65);
}
