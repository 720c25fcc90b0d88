//! Counters of several nodes over the memory store.

use std::collections::BTreeMap;

use super::*;
use crate::error::Retry;
use crate::machine::section_assignment::SectionLocation;
use crate::model::exclusive::stall_ms;
use crate::model::pool::SECTIONS;
use crate::model::segment::NUMBER_MAX;
use crate::sources::BOUND_MAX;
use crate::spec::Kind;

const TTL_MS: u64 = 9_000;

pub(super) async fn server(world: &World, address: &str) -> (Node, Source) {
    server_with(world, address, NodeSettings::default()).await
}

pub(super) async fn server_with(
    world: &World,
    address: &str,
    settings: NodeSettings,
) -> (Node, Source) {
    let settings = NodeSettings {
        address: address.into(),
        owner: address.into(),
        presence_ttl_ms: TTL_MS,
        ..settings
    };
    opened(world, settings).await
}

async fn opened(world: &World, settings: NodeSettings) -> (Node, Source) {
    let node = Node::open(world.handle(), settings, world.platform()).await.unwrap();
    node.define("messages", &SourceSpec::of(Kind::Counter)).await.unwrap();
    let source = node.source("messages").await.unwrap();
    for _ in 0..5 {
        settle().await;
    }
    (node, source)
}

/// Repeats the call, without time passing, until there is a result.
pub(super) async fn count(source: &Source, key: &str) -> Result<u64> {
    for _ in 0..200 {
        match source.try_count(key.as_bytes(), 1) {
            Err(error) if error.retry() != Retry::Never => settle().await,
            result => return result.map(|(first, _)| first),
        }
    }
    source.try_count(key.as_bytes(), 1).map(|(first, _)| first)
}

/// Raises a key in the same way.
async fn raise(source: &Source, key: &str, highest: u64) -> Result<()> {
    for _ in 0..200 {
        match source.raise(key.as_bytes(), highest, 0).await {
            Err(error) if error.retry() != Retry::Never => settle().await,
            result => return result,
        }
    }
    source.raise(key.as_bytes(), highest, 0).await
}

fn is_not_owner(result: &Result<u64>) -> bool {
    matches!(result, Err(error) if matches!(error.kind(), ErrorKind::NotOwner { .. }))
}

/// Highest result of each key: every later one must be greater.
#[derive(Default)]
pub(super) struct History(BTreeMap<String, u64>);

impl History {
    pub(super) fn rises(&mut self, key: &str, value: u64) {
        let before = self.0.insert(key.into(), value).unwrap_or(0);
        assert!(value > before, "{key}: {value} after {before}");
    }
}

#[tokio::test]
async fn numbers_of_a_key_rise_one_by_one_and_many_in_a_row() {
    let world = World::new();
    let (node, source) = server(&world, "").await;
    for wanted in 1..=5 {
        assert_eq!(count(&source, "alice").await.unwrap(), wanted);
        assert_eq!(count(&source, "4711").await.unwrap(), wanted);
    }
    assert_eq!(source.try_count(b"alice", 100).unwrap(), (6, 105));
    assert_eq!(source.bound_of(b"alice", 0).await.unwrap(), 105);
    assert_eq!(source.try_count(b"alice", 0).unwrap_err().kind().code(), "invalid");
    assert_eq!(source.try_count(b"", 1).unwrap_err().kind().code(), "invalid");
    assert_eq!(source.try_count(b"alice", 1_000_001).unwrap_err().kind().code(), "limit_exceeded");
    assert_eq!(source.mint(1, None, 0).await.unwrap_err().kind().code(), "invalid");
    node.close().await.unwrap();
    assert_eq!(source.try_count(b"alice", 1).unwrap_err().kind().code(), "closed");
}

#[tokio::test]
async fn a_section_is_written_once_a_step_whatever_the_number_of_keys() {
    let world = World::new();
    let (_node, source) = server(&world, "").await;
    let own = |number: u64| format!("{{one}}-{number}");
    count(&source, &own(0)).await.unwrap();
    settle().await;
    let writes = world.handle().identity().await.unwrap().writes;
    for round in 1..=4 {
        for number in 1..1_000 {
            assert_eq!(count(&source, &own(number)).await.unwrap(), round);
        }
    }
    settle().await;
    assert_eq!(world.handle().identity().await.unwrap().writes, writes);
}

/// An import raises each key of another system.
#[tokio::test]
async fn raised_keys_stay_within_memory_limit() {
    const BYTES_MAX: usize = 256 * 1_024;
    let world = World::new();
    let settings = NodeSettings { counter_bytes_max: BYTES_MAX, ..NodeSettings::default() };
    let (_node, source) = server_with(&world, "", settings).await;
    let keys = || (0..40_000_u64).map(|number| (format!("{{one}}-{number}"), 1_000 + number % 7));
    for (key, highest) in keys() {
        raise(&source, &key, highest).await.unwrap();
    }
    let (known, bytes) = source.stats().keys.unwrap();
    assert!(bytes <= BYTES_MAX as u64, "{bytes} bytes for {known} keys");
    for (key, highest) in keys() {
        let next = count(&source, &key).await.unwrap();
        assert!(next > highest, "{key}: {next} after {highest}");
    }
    let (_, bytes) = source.stats().keys.unwrap();
    // Bounds below the section's present number are not kept.
    for (key, highest) in keys() {
        raise(&source, &format!("{key}-other"), highest).await.unwrap();
    }
    assert_eq!(source.stats().keys.unwrap().1, bytes);
}

/// All keys of a section continue above the bound that one of them was raised to.
#[tokio::test]
async fn key_cannot_be_raised_beyond_its_section() {
    let world = World::new();
    let (node, source) = server(&world, "").await;
    for highest in [BOUND_MAX + 1, NUMBER_MAX, u64::MAX] {
        let refused = raise(&source, "{one}-a", highest).await.unwrap_err();
        assert_eq!(refused.kind().code(), "invalid", "{refused}");
        assert!(refused.to_string().contains(&BOUND_MAX.to_string()), "{refused}");
    }
    assert_eq!(count(&source, "{one}-a").await.unwrap(), 1);
    raise(&source, "{one}-a", BOUND_MAX).await.unwrap();
    raise(&source, "{one}-b", 70).await.unwrap();
    assert_eq!(count(&source, "{one}-a").await.unwrap(), BOUND_MAX + 1);
    assert_eq!(count(&source, "{one}-b").await.unwrap(), 71);
    node.close().await.unwrap();
    let (_node, source) = server(&world, "").await;
    let mut history = History::default();
    history.rises("a", BOUND_MAX + 1);
    history.rises("b", 71);
    for _ in 0..1_000 {
        history.rises("a", count(&source, "{one}-a").await.unwrap());
        history.rises("b", count(&source, "{one}-b").await.unwrap());
    }
}

#[tokio::test]
async fn next_owner_after_a_close_continues_above() {
    let world = World::new();
    let mut history = History::default();
    for _ in 0..4 {
        let (node, source) = server(&world, "").await;
        for key in ["alice", "bob", "7"] {
            for _ in 0..3 {
                history.rises(key, count(&source, key).await.unwrap());
            }
        }
        node.close().await.unwrap();
    }
}

#[tokio::test]
async fn section_moves_only_after_lease_and_margin() {
    // The second is the default lease of servers, with the time that
    // docs/explanation/counters.md promises.
    for (ttl_ms, within_ms) in [(TTL_MS, stall_ms(TTL_MS) + TTL_MS / 3 + 500), (3_000, 5_000)] {
        let world = World::new();
        let mut history = History::default();
        let settings = || NodeSettings { presence_ttl_ms: ttl_ms, ..NodeSettings::default() };
        let (first, source) = opened(&world, settings()).await;
        history.rises("alice", count(&source, "alice").await.unwrap());
        let (_second, other) = opened(&world, settings()).await;
        let held = count(&other, "alice").await;
        assert!(is_not_owner(&held), "{held:?}");
        // As good as killed: it stops renewing, and gives nothing back.
        drop((first, source));
        let mut waited_ms = 0;
        let value = loop {
            world.pass(100).await;
            waited_ms += 100;
            assert!(waited_ms <= within_ms, "{waited_ms} of {ttl_ms}");
            match count(&other, "alice").await {
                Ok(value) => break value,
                result => assert!(is_not_owner(&result), "{result:?}"),
            }
        };
        history.rises("alice", value);
        assert!(waited_ms >= ttl_ms, "{waited_ms} of {ttl_ms}");
    }
}

#[tokio::test]
async fn servers_share_sections_and_hand_them_over() {
    const KEYS: u64 = 200;
    let world = World::new();
    let mut history = History::default();
    let keys: Vec<String> = (0..KEYS).map(|number| format!("user-{number}")).collect();
    let mut servers = vec![server(&world, "one:7701").await];
    for key in &keys {
        history.rises(key, count(&servers[0].1, key).await.unwrap());
    }
    servers.push(server(&world, "two:7701").await);
    // At every moment exactly one server counts each key, and the other one names it.
    for round in 0..60 {
        world.pass(100).await;
        let mut by_server = [0; 2];
        for key in &keys {
            let mut by = 0;
            // Repeated a moment later: during a hand-over both may send to each other.
            for _ in 0..2 {
                for index in 0..2 {
                    match count(&servers[index].1, key).await {
                        Ok(value) => {
                            history.rises(key, value);
                            by_server[index] += 1;
                            by += 1;
                        }
                        result => assert!(is_not_owner(&result), "{round}, {key}: {result:?}"),
                    }
                }
                if by > 0 {
                    break;
                }
                world.pass(10).await;
            }
            assert!(by >= 1, "round {round}, {key}: no server responds");
        }
        if round > 40 {
            assert!(by_server.iter().all(|by| (60..=140).contains(by)), "{by_server:?}");
        }
    }
    // One leaves: the other has all sections, in less than a second.
    let (left, _) = servers.remove(0);
    left.close().await.unwrap();
    let mut waited_ms = 0;
    for key in &keys {
        loop {
            match count(&servers[0].1, key).await {
                Ok(value) => break history.rises(key, value),
                result => assert!(is_not_owner(&result), "{key}: {result:?}"),
            }
            world.pass(50).await;
            waited_ms += 100;
        }
    }
    assert!(waited_ms < 1_000, "{waited_ms}");
}

#[tokio::test]
async fn all_nodes_agree_on_the_assignment() {
    let world = World::new();
    let servers = [
        server(&world, "one:7701").await,
        server(&world, "two:7701").await,
        server(&world, "three:7701").await,
    ];
    world.pass(2 * TTL_MS).await;
    // A server without counted keys reads the owners only on request.
    servers.iter().for_each(|(node, _)| drop(node.section_assignment()));
    settle().await;
    let assignments: Vec<_> = servers.iter().map(|(node, _)| node.section_assignment()).collect();
    for section in 0..SECTIONS {
        let owners: Vec<_> = assignments.iter().map(|it| it.owner(section).cloned()).collect();
        assert!(owners[0].is_some() && owners.iter().all(|owner| *owner == owners[0]));
        let here = assignments.iter().filter(|it| it.place(section) == SectionLocation::Here);
        assert_eq!(here.count(), 1, "{section}");
    }
}

/// Joins another member.
async fn joined(store: &Arc<dyn Store>, now: UnixMillis) -> Incarnation {
    let other = crate::Member {
        incarnation: Incarnation::new(7),
        owner: String::new(),
        host: String::new(),
        process: 1,
        address: String::new(),
    };
    let presence = crate::Presence { sample: now, renewals: 0, ttl_ms: TTL_MS };
    store.join(&other, presence, now).await.unwrap();
    other.incarnation
}

/// A hypervisor may halt a process without a sign on the process's clock. Then another member
/// acquires the section, and the first one trusts its lease. A source that confirms with the store
/// before each result finds out.
#[tokio::test]
async fn store_confirmation_rejects_sections_of_peers() {
    let world = World::new();
    let keys = r#"{"kind":"counter","counter":{"confirm":"store"}}"#;
    let node = world.open().await;
    node.define("sure", &spec(keys)).await.unwrap();
    node.define("messages", &SourceSpec::of(Kind::Counter)).await.unwrap();
    let (sure, plain) =
        (node.source("sure").await.unwrap(), node.source("messages").await.unwrap());
    let task = tokio::spawn({
        let sure = sure.clone();
        async move { sure.count(b"alice", 1, 5_000).await }
    });
    while !task.is_finished() {
        world.pass(10).await;
    }
    let first = task.await.unwrap().unwrap().0;
    count(&plain, "alice").await.unwrap();
    assert_eq!(sure.try_count(b"alice", 1).unwrap_err().kind().code(), "unavailable");
    let store = world.handle();
    let writes = store.identity().await.unwrap().writes;
    assert_eq!(sure.count(b"alice", 1, 0).await.unwrap().0, first + 1);
    assert_eq!(store.identity().await.unwrap().writes, writes, "asking changes nothing");
    // Another member has taken both sections.
    let now = world.clock.unix_ms();
    let other = joined(&store, now).await;
    let sections = [sure.section(b"alice").unwrap(), plain.section(b"alice").unwrap()];
    let acquire = crate::Acquire {
        pool: crate::model::pool::sections_pool(),
        member: other,
        owner: String::new(),
        slots: sections.map(u64::from).to_vec(),
        stalled: Vec::new(),
        supersedes: node.incarnation(),
        length: 100,
        request: 9,
    };
    assert_eq!(store.acquire(&acquire, now).await.unwrap().leases.len(), 2);
    count(&plain, "alice").await.expect("it believes in its lease");
    // The other member counts from below, since it knows no such bound.
    let refused = sure.raise(b"alice", first + 50, 0).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused}");
    let refused = sure.bound_of(b"alice", 0).await.unwrap_err();
    assert_eq!(
        refused.kind().code(),
        "unavailable",
        "what others have got since is not known here"
    );
    let refused = sure.count(b"alice", 1, 0).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused}");
}

/// The node was cut off for longer than its lease, another member has taken one of its sections,
/// and a copy of its join arrives once more: the store knows it again.
#[tokio::test]
async fn member_absent_beyond_its_lease_reacquires_sections() {
    let world = World::new();
    let mut history = History::default();
    let handle = Arc::new(world.faulty());
    let lacks = Arc::clone(&handle.faults.lacks);
    let settings = NodeSettings { presence_ttl_ms: TTL_MS, ..NodeSettings::default() };
    let node = Node::open(handle, settings, world.platform()).await.unwrap();
    node.define("messages", &SourceSpec::of(Kind::Counter)).await.unwrap();
    let source = node.source("messages").await.unwrap();
    history.rises("alice", count(&source, "alice").await.unwrap());
    history.rises("bob", count(&source, "bob").await.unwrap());
    let store = world.handle();
    let away = store.members(world.clock.unix_ms()).await.unwrap().remove(0);
    *lacks.lock().unwrap() = Some("renew");
    world.pass(stall_ms(TTL_MS)).await;
    assert!(source.try_count(b"alice", 1).is_err(), "its lease is over");

    let now = world.clock.unix_ms();
    let known = store.members(now).await.unwrap().remove(0);
    let other = joined(&store, now).await;
    let renewals = known.presence.renewals;
    let acquire = crate::Acquire {
        pool: crate::model::pool::sections_pool(),
        member: other,
        owner: String::new(),
        slots: vec![u64::from(source.section(b"alice").unwrap())],
        stalled: vec![crate::StalledMember { member: known.member.incarnation, renewals }],
        supersedes: None,
        length: 100,
        request: 9,
    };
    let lease = store.acquire(&acquire, now).await.unwrap().leases.remove(0);
    history.rises("alice", lease.mark.get() - 1);
    store.join(&away.member, away.presence, now).await.unwrap();
    *lacks.lock().unwrap() = None;
    for _ in 0..20 {
        world.pass(500).await;
        if let Ok(value) = count(&source, "alice").await {
            history.rises("alice", value);
        }
    }
    history.rises("bob", count(&source, "bob").await.unwrap());
}

/// All sources share the sections: one may move them further than another can count.
#[tokio::test]
async fn a_source_counts_no_further_than_there_are_numbers() {
    let world = World::new();
    let node = world.open().await;
    let far = r#"{"kind":"counter","counter":{"step":1}}"#;
    let later = r#"{"kind":"counter","counter":{"step":1,"start":1000}}"#;
    node.define("far", &spec(far)).await.unwrap();
    node.define("later", &spec(later)).await.unwrap();
    let (far, later) = (node.source("far").await.unwrap(), node.source("later").await.unwrap());
    // Another member has had the section, and has counted nearly to the end.
    let (store, now) = (world.handle(), world.clock.unix_ms());
    let other = joined(&store, now).await;
    let highest = NUMBER_MAX - 500;
    let acquire = crate::Acquire {
        pool: crate::model::pool::sections_pool(),
        member: other,
        owner: String::new(),
        slots: vec![u64::from(far.section(b"{one}").unwrap())],
        stalled: Vec::new(),
        supersedes: None,
        length: 100,
        request: 9,
    };
    let lease = store.acquire(&acquire, now).await.unwrap().leases.remove(0);
    let extend = crate::Extend {
        pool: lease.pool,
        slot: lease.slot,
        term: lease.term,
        holder: lease.holder,
        from: lease.mark,
        to: Mark::new(highest),
        request: 10,
        ahead_max_ms: None,
    };
    store.extend(&[extend], now).await.unwrap().remove(0).unwrap();
    store.leave(other, now).await.unwrap();

    let value = count(&far, "{one}").await.unwrap();
    assert!((highest..=NUMBER_MAX).contains(&value), "{value}");
    let refused = count(&later, "{one}").await.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Exhausted), "{refused}");
    assert_eq!(later.bound_of(b"{one}", 0).await.unwrap(), NUMBER_MAX);
}
