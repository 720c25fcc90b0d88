//! Disguises: the key that a source has, and its version.

use futures_util::FutureExt as _;

use super::faulty::Meanwhile;
use super::*;
use crate::ids::Mark;
use crate::model::catalog::{Definition, NewDefinition};
use crate::sources::{DisguiseKeys, Keyrings};

const KEY: &str = "000102030405060708090a0b0c0d0e0f";
/// Definition that 0.1.0 wrote of a segment source with this key, and its first three numbers as
/// shown.
const OLD_SPEC: &str = r#"{"disguise":{"bits":63,"check":"378dd200a00a7977","key":1,"mode":"full"},"increment":1,"kind":"segment","offset":1,"step":{"lasts":"10s","max":1000000,"min":100},"text":"decimal"}"#;
const OLD_IDENTITY: &str = r#"{"disguise":{"bits":63,"check":"378dd200a00a7977","key":1,"mode":"full"},"increment":1,"kind":"segment","offset":1}"#;
const OLD_SHOWN: [u64; 3] =
    [4_003_086_543_929_112_951, 3_436_551_487_194_784_526, 7_438_959_437_269_116_368];
const HIDDEN: &str = r#"{"kind":"segment","disguise":{"mode":"full"}}"#;
const SHARED: &str = r#"{"unique":"namespace","disguise":{"mode":"full"}}"#;
const SHARED_OLD: &str = r#"{"unique":"namespace","disguise":{"mode":"full","version":1}}"#;

fn settings() -> NodeSettings {
    let keyrings = Keyrings::from([(1, DisguiseKeys::new(KEY.parse().unwrap()))]);
    NodeSettings { keyrings, ..NodeSettings::default() }
}

async fn open(world: &World) -> Node {
    world.open_with(settings()).await
}

fn new(name: &str, spec: &str, identity: &str) -> NewDefinition {
    let (spec, identity) = (spec.to_owned(), identity.to_owned());
    NewDefinition { name: name.to_owned(), spec, identity, enabled: None }
}

/// Defines a source as 0.1.0 did.
async fn defined_before(world: &World, name: &str) -> Definition {
    world.handle().define(&new(name, OLD_SPEC, OLD_IDENTITY)).await.unwrap()
}

/// Returns the definition that a server writes of a source, if nothing prevents it.
async fn written(name: &str, json: &str) -> NewDefinition {
    let world = World::new();
    open(&world).await.define(name, &spec(json)).await.unwrap();
    let Definition { spec, identity, .. } = world.handle().get(name).await.unwrap();
    new(name, &spec, &identity)
}

async fn drawn(node: &Node, name: &str, count: u32) -> Vec<u64> {
    let source = node.source(name).await.unwrap();
    numbers(source.mint(count, None, 1_000).await.unwrap())
}

fn version(info: &SourceInfo) -> Option<u8> {
    info.spec.disguise.as_ref().unwrap().version
}

fn is_conflict(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Conflict)
}

async fn read(node: &Node, name: &str, shown: u64) -> u64 {
    match node.source(name).await.unwrap().decode(&shown.to_string(), None).unwrap() {
        Decoded::Snowflake { id, .. } | Decoded::Number { id } => id,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_source_reads_nothing_of_another_that_names_the_same_key() {
    let world = World::new();
    let node = open(&world).await;
    for (index, json) in [
        HIDDEN,
        r#"{"disguise":{"mode":"full"}}"#,
        r#"{"disguise":{"mode":"ordered"}}"#,
        r#"{"layout":"js53","disguise":{"mode":"full"}}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let (secret, guest) = (format!("secret-{index}"), format!("guest-{index}"));
        for name in [&secret, &guest] {
            let defined = node.define(name, &spec(json)).await.unwrap();
            assert_eq!(version(&defined), Some(2), "{json}");
        }
        for shown in drawn(&node, &secret, 5).await {
            let (own, other) =
                (read(&node, &secret, shown).await, read(&node, &guest, shown).await);
            assert_ne!(own, other, "{json}");
        }
        // Different keys also apply to the same name in two namespaces.
        let other_store = Arc::new(world.store.handle("elsewhere").unwrap());
        let other_node = Node::open(other_store, settings(), world.platform()).await.unwrap();
        other_node.define(&secret, &spec(json)).await.unwrap();
        let shown = drawn(&node, &secret, 1).await[0];
        assert_ne!(read(&node, &secret, shown).await, read(&other_node, &secret, shown).await);
    }
}

#[tokio::test]
async fn definition_without_a_version_stays_unchanged() {
    let world = World::new();
    let before = defined_before(&world, "orders").await;
    let node = open(&world).await;
    // As a configuration does at each start: the same, byte by byte.
    node.define("orders", &spec(HIDDEN)).await.unwrap();
    assert_eq!(world.handle().get("orders").await.unwrap(), before);
    assert_eq!(drawn(&node, "orders", 3).await, OLD_SHOWN);
    assert_eq!(read(&node, "orders", OLD_SHOWN[2]).await, 3);
    let defined = spec(r#"{"kind":"segment","disguise":{"mode":"full","version":1}}"#);
    node.define("orders", &defined).await.unwrap();
    assert_eq!(world.handle().get("orders").await.unwrap().spec, OLD_SPEC);

    // Another key of the source changes, by its full definition and by an operator's.
    let hex = spec(r#"{"kind":"segment","disguise":{"mode":"full"},"text":"hex"}"#);
    let altered = node.alter("orders", &hex, None).await.unwrap();
    assert_eq!(version(&altered), None);
    let spec_now = SourceSpec { text: Some("base62".into()), ..altered.spec };
    node.alter("orders", &spec_now, None).await.unwrap();
    let after = world.handle().get("orders").await.unwrap();
    assert_eq!(after.spec, OLD_SPEC.replace("decimal", "base62"));
    assert_eq!(after.identity, OLD_IDENTITY);
    let newer = spec(r#"{"kind":"segment","disguise":{"mode":"full","version":2}}"#);
    for refused in [node.define("orders", &newer).await, node.alter("orders", &newer, None).await] {
        assert!(is_conflict(&refused.unwrap_err()));
    }
}

/// A definition from before versions keeps its meaning in any store: without a version, the first.
#[tokio::test]
async fn definition_keys_make_same_source_in_other_store() {
    let (world, other) = (World::new(), World::new());
    defined_before(&world, "orders").await;
    let keys = open(&world).await.definition("orders").await.unwrap().spec;
    let node = open(&other).await;
    node.define("orders", &SourceSpec { enabled: None, ..keys }).await.unwrap();
    assert_eq!(other.handle().get("orders").await.unwrap().spec, OLD_SPEC);
    assert_eq!(drawn(&node, "orders", 3).await, OLD_SHOWN);
}

#[tokio::test]
async fn redefined_source_keeps_its_disguise_key() {
    let world = World::new();
    let node = open(&world).await;
    defined_before(&world, "old").await;
    let new = node.define("new", &spec(HIDDEN)).await.unwrap();
    assert_eq!(version(&new), Some(2));
    for (name, had) in [("old", None), ("new", Some(2))] {
        node.delete(name).await.unwrap();
        assert_eq!(version(&node.define(name, &spec(HIDDEN)).await.unwrap()), had, "{name}");
    }
}

/// The store was restored, and moved past numbers of which it knows nothing else.
#[tokio::test]
async fn lost_source_is_redefined_with_its_version() {
    let world = World::new();
    let segments =
        vec![("orders".to_owned(), Mark::new(1_000)), ("plain".to_owned(), Mark::new(7))];
    let forward = FastForward { segments, ..FastForward::default() };
    world.handle().fast_forward(&forward).await.unwrap();
    let node = open(&world).await;
    let error = node.define("orders", &spec(HIDDEN)).await.unwrap_err();
    assert!(error.to_string().contains("disguise.version = 1"), "{error}");
    node.define("plain", &spec(r#"{"kind":"segment"}"#)).await.unwrap();
    let defined = spec(r#"{"kind":"segment","disguise":{"mode":"full","version":1}}"#);
    node.define("orders", &defined).await.unwrap();
    assert_eq!(world.handle().get("orders").await.unwrap().spec, OLD_SPEC);
}

#[tokio::test]
async fn sources_unique_in_the_namespace_have_one_key_and_one_version() {
    for (first, is_deleted, had) in
        [(SHARED, false, Some(2)), (SHARED_OLD, false, None), (SHARED_OLD, true, None)]
    {
        let world = World::new();
        let node = open(&world).await;
        assert_eq!(version(&node.define("first", &spec(first)).await.unwrap()), had);
        let mut names = vec!["first", "second", "third"];
        for name in &names[1..] {
            assert_eq!(version(&node.define(name, &spec(SHARED)).await.unwrap()), had, "{first}");
        }
        let mut seen = HashSet::new();
        if is_deleted {
            seen.extend(drawn(&node, "first", 100).await);
            node.delete("first").await.unwrap();
            assert_eq!(version(&node.define("fourth", &spec(SHARED)).await.unwrap()), had);
            names = vec!["second", "third", "fourth"];
        }
        for name in names.iter().cycle().take(30) {
            for shown in drawn(&node, name, 20).await {
                assert!(seen.insert(shown), "{name}: {shown} came twice");
            }
        }
        let other = if had.is_none() { 2 } else { 1 };
        let other = SHARED.replace(r#""full""#, &format!(r#""full","version":{other}"#));
        let refused = node.define("other", &spec(&other)).await.unwrap_err();
        assert!(is_conflict(&refused), "{refused}");
        // A source outside the group has a key of its own.
        let own = node.define("own", &spec(r#"{"disguise":{"mode":"full"}}"#)).await.unwrap();
        assert_eq!(version(&own), Some(2));
    }
}

/// When the last source of a namespace is deleted, its IDs still exist.
#[tokio::test]
async fn a_version_outlives_the_sources_that_had_it() {
    let world = World::new();
    let node = open(&world).await;
    node.define("first", &spec(SHARED_OLD)).await.unwrap();
    node.delete("first").await.unwrap();
    assert_eq!(version(&node.define("second", &spec(SHARED)).await.unwrap()), None);
}

/// Two servers, each of which has read before the other wrote.
#[tokio::test]
async fn conflicting_disguise_versions_stop_minting() {
    let world = World::new();
    let old = written("old", SHARED_OLD).await;
    let store = world.faulty();
    let meanwhile = Arc::clone(&store.faults.meanwhile);
    let one = Node::open(Arc::new(store), settings(), world.platform()).await.unwrap();
    let other = world.store.handle("default").unwrap();
    let writes = move || {
        other.define(&old).now_or_never().unwrap().unwrap();
    };
    *meanwhile.lock().unwrap() = Some(("define", Meanwhile(Box::new(writes))));
    assert_eq!(version(&one.define("new", &spec(SHARED)).await.unwrap()), Some(2));
    let two = open(&world).await;
    for node in [&one, &two] {
        for name in ["old", "new"] {
            let refused = node.source(name).await.unwrap_err();
            assert!(is_conflict(&refused), "{name}: {refused}");
        }
    }
    // One of them is deleted, and the other continues unchanged.
    one.delete("old").await.unwrap();
    assert_eq!(drawn(&one, "new", 5).await.len(), 5);
}

/// The source that came first continues to mint; the one that came second never mints.
#[tokio::test]
async fn a_version_that_came_later_is_not_minted_from() {
    let world = World::new();
    let (one, two) = (open(&world).await, open(&world).await);
    one.define("new", &spec(SHARED)).await.unwrap();
    drawn(&one, "new", 5).await;
    world.handle().define(&written("old", SHARED_OLD).await).await.unwrap();
    for node in [&one, &two] {
        assert!(is_conflict(&node.source("old").await.unwrap_err()));
    }
}
