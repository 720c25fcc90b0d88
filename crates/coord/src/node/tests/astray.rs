//! A store that is another one from one moment to the next: once anybody was told so, nothing is minted, from stock or
//! anew, until the store was joined again.

use super::faulty::Faults;
use super::kills::in_time;
use super::*;

const FIXED: &str = r#"{"kind":"segment","step":{"rule":"fixed","size":100}}"#;
const ONE: &str = r#"{"kind":"segment","step":{"rule":"fixed","size":1}}"#;
const BY_STORE: &str = r#"{"layout":"redis","mint":"store","worker":77}"#;
const PREFILLED: &str = r#"{"prefill":{"enabled":true,"boost":0},"on_rollback":"borrow"}"#;
const GLOBAL: &str = r#"{"order":"global","layout":"twitter"}"#;

/// A node with a source of each kind that rests on the store, and what makes its store another.
async fn with_each_kind(world: &World) -> (Node, Vec<Source>, Arc<Mutex<Vec<&'static str>>>) {
    let store = world.faulty();
    let astray = Arc::clone(&store.faults.astray);
    let node = Node::open(Arc::new(store), NodeSettings::default(), world.parts()).await.unwrap();
    let mut sources = Vec::new();
    for (name, json) in [
        ("segment", FIXED),
        ("one", ONE),
        ("by-store", BY_STORE),
        ("snowflake", "{}"),
        ("prefilled", PREFILLED),
        ("global", GLOBAL),
    ] {
        node.define(name, &spec(json)).await.unwrap();
        sources.push(in_time(world, node.source(name)).await.unwrap());
    }
    (node, sources, astray)
}

async fn some(world: &World, source: &Source) -> Result<Vec<u64>> {
    let minted = in_time(world, source.mint(3, None, 2_000)).await;
    minted.map(numbers)
}

/// Whichever verb is told so first, and also where no other is: of a store that is set to lose what it acknowledged.
#[tokio::test]
async fn nothing_is_minted_once_a_store_is_another_until_it_was_joined_anew() {
    for (first, astray_verbs) in
        [("reserve", &[Faults::EVERY_VERB][..]), ("renew", &["renew", "join"])]
    {
        let world = World::new();
        let (node, sources, astray) = with_each_kind(&world).await;
        let mut seen = HashSet::new();
        for source in &sources {
            let minted = some(&world, source).await.unwrap();
            assert!(minted.into_iter().all(|id| seen.insert((source.name().to_owned(), id))));
        }
        assert!(sources[0].try_mint().is_ok_and(|id| seen.insert(("segment".into(), id))));
        *astray.lock().unwrap() = astray_verbs.to_vec();
        match first {
            "reserve" => {
                let refused = some(&world, &sources[1]).await.unwrap_err();
                assert_eq!(refused.kind().code(), "other_store", "{refused}");
            }
            _ => world.pass(4_000).await,
        }
        settle().await;
        for source in &sources {
            let name = source.name();
            assert!(source.try_mint().is_err(), "{first}: {name}, from stock");
            let refused = some(&world, source).await;
            assert!(refused.is_err(), "{first}: {name} gave {refused:?}");
        }
        assert!(!node.readiness().ready, "{first}");
        let lost = sources[0].stats().numbers.unwrap().lost;
        assert!(lost >= 96, "{first}: what was in stock is counted as lost, not {lost}");

        astray.lock().unwrap().clear();
        world.pass(5_000).await;
        for source in &sources {
            let name = source.name();
            let minted =
                some(&world, source).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(minted.into_iter().all(|id| seen.insert((name.to_owned(), id))), "{name}");
        }
        assert!(node.readiness().ready, "{first}: {:?}", node.readiness());
    }
}

/// The store has counted further since than anybody here has seen, by a process that was there all along: so its numbers
/// alone tell that it went back.
#[tokio::test]
async fn a_source_that_went_back_stops_all_until_the_store_was_moved_forward() {
    let world = World::new();
    let (node, sources, _) = with_each_kind(&world).await;
    let other = world.open().await;
    other.define("another", &spec(FIXED)).await.unwrap();
    let before = world.store.backup();
    let (one, snowflake) = (&sources[1], &sources[3]);
    let seen = some(&world, one).await.unwrap();
    snowflake.try_mint().unwrap();
    world.store.restore(before);
    for number in 0..50 {
        other.define(&format!("another-{number}"), &spec(FIXED)).await.unwrap();
    }
    let refused = some(&world, one).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_went_back", "{refused}");
    for _ in 0..3 {
        world.pass(3_000).await;
        for source in &sources {
            let refused = some(&world, source).await;
            assert!(refused.is_err(), "{} gave {refused:?}", source.name());
        }
        let reasons = node.readiness().reasons.join("; ");
        assert!(reasons.contains("the next number of source one"), "{reasons}");
    }
    let segments = vec![("one".to_owned(), Mark::new(1_000))];
    let forward = FastForward { segments, ..FastForward::default() };
    world.handle().fast_forward(&forward).await.unwrap();
    world.pass(10_000).await;
    let after = some(&world, one).await.unwrap();
    assert!(after[0] >= 1_000 && after[0] > seen[2], "{after:?}");
    in_time(&world, snowflake.mint(1, None, 5_000)).await.unwrap();
    assert!(node.readiness().ready, "{:?}", node.readiness());
}
