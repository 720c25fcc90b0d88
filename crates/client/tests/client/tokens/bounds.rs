//! Limits for a program's part of common resources, and values of programs that are ignored.

use snowmint_client::{RemoteStore, Settings};
use snowmint_coord::external::external_pool;
use snowmint_coord::segment::NumberInterval;
use snowmint_coord::{
    BootTimer, Bounds, ClaimRequest, Extend, GiveBack, Incarnation, Lease, Mark, Member,
    MemoryStore, NewDefinition, Pool, Preference, Presence, Release, Reserve, Restripe, Retry,
    Reuse, SourceSpec, SourceState, Store, Timer as _,
};
use snowmint_core::UnixMillis;
use snowmint_server::{Limits, Settings as ServerSettings};

use crate::common::{SETTINGS, soon};
use crate::tokens::rights::{claim, code, joined, moved, now, presence, workers};
use crate::tokens::{
    ADMIN, BILLS, BUILDER, ENOUGH, ORDERS, TTL_MS, define, remote, remote_with, serve, serve_as,
};

const HOUR_MS: u64 = 3_600_000;

/// The table of the upstream decides where the numbers are, and the server does not see it.
#[tokio::test]
async fn program_without_admin_reserves_nothing_of_an_upstream() {
    let store = MemoryStore::new("all").unwrap();
    let (server, _) = serve(&store, ENOUGH).await;
    let spec = SourceSpec::from_json(r#"{"kind":"segment","upstream":"old:bills"}"#).unwrap();
    store.define(&NewDefinition::of("bills", &spec).unwrap()).await.unwrap();
    let before = store.get("bills").await.unwrap();
    let range = NumberInterval { first: 1 << 62, end: (1 << 62) + 10 };
    let reserve = async |token: &str, within: Option<Bounds>| {
        let program = remote(token, &[&server]).await;
        let (source, definition_version) = ("bills".to_owned(), before.version);
        program.reserve(&Reserve { source, length: 1, definition_version, within }).await
    };
    for within in [None, Some(Bounds::Range(range))] {
        assert_rejected(reserve(BILLS, within).await, &["\"bills\"", "upstream", "admin"]);
    }
    assert_eq!(store.get("bills").await.unwrap(), before);
    let reserved = reserve(ADMIN, Some(Bounds::Range(range))).await.unwrap();
    assert_eq!(reserved.first, range.first);
}

async fn claimed(store: &dyn Store, member: Incarnation) -> snowmint_coord::Result<Vec<Lease>> {
    store.claim(&claim(workers(), member), now()).await
}

pub(super) fn assert_rejected<T: std::fmt::Debug>(
    outcome: snowmint_coord::Result<T>,
    parts: &[&str],
) {
    let message = outcome.unwrap_err().to_string();
    assert!(parts.iter().all(|part| message.contains(part)), "{parts:?}: {message}");
}

/// Moves the mark of a lease to `ahead_ms` after now. The request allows a lead of at most
/// `allowed_ms`, and gives `caller_time` as the caller's time.
async fn ahead(
    store: &dyn Store,
    lease: &Lease,
    (ahead_ms, allowed_ms): (u64, Option<u64>),
    caller_time: UnixMillis,
) -> snowmint_coord::Result<Mark> {
    let Lease { pool, slot, term, mark: from, holder, .. } = lease.clone();
    let to = Mark::from(now().saturating_add(ahead_ms));
    let (request, ahead_max_ms) = (to.get(), allowed_ms);
    let item = Extend { pool, slot, term, holder, from, to, request, ahead_max_ms };
    store.extend(&[item], caller_time).await?.remove(0).map(|moved| moved.mark)
}

#[tokio::test]
async fn client_moves_a_mark_no_further_than_its_server() {
    let store = MemoryStore::new("all").unwrap();
    let (server, node) = serve(&store, ENOUGH).await;
    let bills = remote(BILLS, &[&server]).await;
    let member = joined(&*bills, 1).await;
    let lease = claimed(&*bills, member).await.unwrap().remove(0);
    // The limit holds for any lead that the program allows itself, and any time that it sends.
    let keys = ["worker.window", "clock.skew_max", "lead_max", "limit 75000 ms"];
    for allowed_ms in [None, Some(u64::MAX), Some(76_000)] {
        for time in [now(), UnixMillis::new(u64::MAX), UnixMillis::ZERO] {
            for ahead_ms in [120_000, HOUR_MS, 1 << 61] {
                assert_rejected(ahead(&*bills, &lease, (ahead_ms, allowed_ms), time).await, &keys);
            }
        }
    }
    let slots = store.workers(now()).await.unwrap();
    assert!(
        slots.iter().all(|slot| slot.mark <= Mark::from(now().saturating_add(75_000))),
        "{slots:?}"
    );
    // A shorter limit of the request counts, and the error names no configuration key.
    let refused = ahead(&*bills, &lease, (60_000, Some(10)), now()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "clock_ahead");
    assert!(!refused.to_string().contains("worker.window"), "{refused}");
    let mark = ahead(&*bills, &lease, (60_000, None), now()).await.unwrap();
    let lease = Lease { mark, ..lease };
    // A source with a longer lead allows windows further ahead.
    define(&node, "bills-leading", r#"{"lead_max":"30m"}"#).await;
    let far = async {
        while ahead(&*bills, &lease, (HOUR_MS / 2, None), now()).await.is_err() {
            BootTimer.sleep_ms(20).await;
        }
    };
    soon(far).await;
    // A token that may move the whole store is not limited.
    let admin = remote(ADMIN, &[&server]).await;
    let operator = joined(&*admin, 2).await;
    let lease = claimed(&*admin, operator).await.unwrap().remove(0);
    ahead(&*admin, &lease, (HOUR_MS, None), now()).await.unwrap();
}

/// A program that could set the time of a store without a clock could make all other members
/// expire.
#[tokio::test]
async fn time_sent_by_a_client_is_ignored() {
    let store = MemoryStore::new("all").unwrap();
    let (server, node) = serve(&store, ENOUGH).await;
    node.source("default").await.unwrap().mint(1, None, 60_000).await.unwrap();
    let bills = remote(BILLS, &[&server]).await;
    for (number, time) in [(1, u64::MAX), (2, now().get() + HOUR_MS), (3, 0)] {
        let time = UnixMillis::new(time);
        let incarnation = Incarnation::new(number);
        let member = Member {
            incarnation,
            owner: "it".into(),
            host: "here".into(),
            process: 1,
            address: String::new(),
        };
        for renewals in [0, 1] {
            let presence = Presence { sample: time, renewals, ttl_ms: TTL_MS };
            bills.join(&member, presence, time).await.unwrap();
            bills.renew(incarnation, presence, time).await.unwrap();
        }
        assert!(bills.members(time).await.unwrap().iter().all(|info| info.live));
        assert!(bills.workers(time).await.unwrap().iter().all(|slot| slot.live));
        // No other member's number becomes free by it.
        let own = node.store().workers(now()).await.unwrap().remove(0);
        let exactly = ClaimRequest {
            preference: Preference::Exactly(own.slot),
            ..claim(workers(), incarnation)
        };
        assert_eq!(code(bills.claim(&exactly, time).await), "pool_full");
    }
    let members = store.members(now()).await.unwrap();
    let programs = members.iter().filter(|info| info.member.incarnation.token().is_some());
    let is_now = |time: UnixMillis| now().since(time) < TTL_MS && time <= now();
    assert_eq!(programs.clone().count(), 3);
    for info in programs {
        assert!(is_now(info.presence.sample) && is_now(info.renewed_at), "{info:?}");
        assert!(is_now(info.joined_at), "{info:?}");
    }
    assert!(node.readiness().ready, "{:?}", node.readiness());
}

#[tokio::test]
async fn client_presence_lasts_no_longer_than_a_servers() {
    let store = MemoryStore::new("all").unwrap();
    let (server, _) = serve(&store, ENOUGH).await;
    let bills = remote(BILLS, &[&server]).await;
    let member = joined(&*bills, 1).await;
    for ttl_ms in [TTL_MS + 1, 41 * 86_400_000, u64::MAX] {
        let longer = Presence { ttl_ms, ..presence() };
        assert_rejected(bills.renew(member, longer, now()).await, &["counters.lease", "600000 ms"]);
    }
    bills.renew(member, presence(), now()).await.unwrap();
    let ttl = store.members(now()).await.unwrap().iter().map(|info| info.presence.ttl_ms).max();
    assert_eq!(ttl, Some(TTL_MS));
    let admin = remote(ADMIN, &[&server]).await;
    let operator = joined(&*admin, 2).await;
    admin.renew(operator, Presence { ttl_ms: 2 * TTL_MS, ..presence() }, now()).await.unwrap();
}

/// The first request that names a pool decides its shape for all later requests.
#[tokio::test]
async fn client_claims_only_from_pools_of_defined_sources() {
    let store = MemoryStore::new("all").unwrap();
    let (server, node) = serve(&store, ENOUGH).await;
    let bills = remote(BILLS, &[&server]).await;
    let member = joined(&*bills, 1).await;
    let nine = Pool { name: "workers-9".into(), slots: 512, ..workers() };
    let try_one = async |pool: &Pool| bills.claim(&claim(pool.clone(), member), now()).await;
    assert_rejected(try_one(&nine).await, &["workers-9", "admin"]);
    let never = Pool { reuse: Reuse::Never, ..workers() };
    assert_rejected(try_one(&never).await, &["worker.reuse"]);
    for wrong in [Pool { slots: 512, ..workers() }, Pool { group: 2, ..workers() }] {
        assert_eq!(code(try_one(&wrong).await), "invalid");
    }
    assert!(store.workers(now()).await.unwrap().iter().all(|slot| slot.holder.is_none()));
    define(&node, "bills-narrow", r#"{"layout":"time=41,worker=9,sequence=13"}"#).await;
    try_one(&nine).await.unwrap();
    try_one(&workers()).await.unwrap();

    // For external leases: a token that may lease numbers in their scope cannot shape a pool of it
    // otherwise.
    let orders = remote(ORDERS, &[&server]).await;
    let lender = joined(&*orders, 2).await;
    let external = external_pool("shop", 10).unwrap();
    let other = Pool { slots: 4, ..external.clone() };
    assert_eq!(code(orders.claim(&claim(other, lender), now()).await), "invalid");
    orders.claim(&claim(external, lender), now()).await.unwrap();
    // An operator may do so before any source does.
    let admin = remote(ADMIN, &[&server]).await;
    let operator = joined(&*admin, 3).await;
    let eight = Pool { name: "workers-8".into(), slots: 256, ..workers() };
    admin.claim(&claim(eight, operator), now()).await.unwrap();
}

/// External leases are limited as in CosId's compatibility API, over all pools of all scopes of a
/// token together.
#[tokio::test]
async fn external_leases_through_clients_are_limited() {
    let store = MemoryStore::new("all").unwrap();
    let mut settings = ServerSettings::default();
    settings.compat.cosid.machines_max = 2;
    let (server, _) = serve_as(settings, &store, ENOUGH).await;
    let orders = remote(ORDERS, &[&server]).await;
    let lender = joined(&*orders, 1).await;
    let claim_external = async |space: &str, width: u32, preference: Preference| {
        let pool = external_pool(space, width).unwrap();
        let request = ClaimRequest { preference, ..claim(pool, lender) };
        orders.claim(&request, now()).await.map(|mut leases| leases.remove(0))
    };
    let first = claim_external("shop", 10, Preference::Any).await.unwrap();
    claim_external("shop", 8, Preference::Any).await.unwrap();
    let next = Preference::Exactly((first.slot + 1) % 1_024);
    for (width, preference) in [(10, Preference::Any), (10, next), (12, Preference::Any)] {
        let refused = claim_external("shop", width, preference).await;
        assert_eq!(code(refused.clone()), "limit_exceeded", "{preference:?}");
        assert_rejected(refused, &["shop", "compat.cosid.machines_max"]);
    }
    // An existing lease continues, and its number is leased again when it is free.
    let mark = moved(&*orders, &first, Some(lender), first.mark.get() + 1).await.unwrap();
    orders.release(&Release { mark, ..first.unused() }, now()).await.unwrap();
    let again = claim_external("shop", 10, Preference::Exactly(first.slot)).await.unwrap();
    assert_eq!(again.slot, first.slot);
    // The limit covers all scopes of the token together: a pattern matches any number of them.
    // Another token has a limit of its own.
    let refused = claim_external("bills", 10, Preference::Any).await;
    assert_eq!(code(refused.clone()), "limit_exceeded");
    assert_rejected(refused, &["bills", "compat.cosid.machines_max"]);
    let bills = remote(BILLS, &[&server]).await;
    let other = joined(&*bills, 2).await;
    bills.claim(&claim(external_pool("bills", 10).unwrap(), other), now()).await.unwrap();
}

#[tokio::test]
async fn clients_of_a_token_share_a_number_limit_over_servers() {
    let store = MemoryStore::new("all").unwrap();
    let (one, _) = serve(&store, ENOUGH).await;
    let (two, _) = serve(&store, ENOUGH).await;
    let programs = [remote(BILLS, &[&one]).await, remote(BILLS, &[&two]).await];
    let mut held = Vec::new();
    for number in 0..16_u64 {
        let program = &programs[usize::try_from(number % 2).unwrap()];
        let member = joined(&**program, u128::from(number) + 1).await;
        held.extend(claimed(&**program, member).await.unwrap());
    }
    let more = joined(&*programs[0], 99).await;
    for program in &programs {
        assert_rejected(
            claimed(&**program, more).await,
            &["token \"bills\"", "limit 16", "limits.workers_max"],
        );
    }
    // A restarted program claims its former number, which its former member holds.
    let before = &held[5];
    let again = ClaimRequest {
        supersedes: before.holder,
        preference: Preference::Exactly(before.slot),
        ..claim(workers(), more)
    };
    held[5] = programs[1].claim(&again, now()).await.unwrap().remove(0);
    assert_eq!(code(claimed(&*programs[0], more).await), "limit_exceeded");
    // Another token has a count of its own, and a token that may administer all sources has none.
    let orders = remote(ORDERS, &[&one]).await;
    let other = joined(&*orders, 100).await;
    claimed(&*orders, other).await.unwrap();
    let admin = remote(ADMIN, &[&one]).await;
    let operator = joined(&*admin, 101).await;
    let all = ClaimRequest { count: 40, ..claim(workers(), operator) };
    assert_eq!(admin.claim(&all, now()).await.unwrap().len(), 40);
    // Released numbers make room for as many claims.
    for lease in held.drain(..3) {
        programs[0].release(&lease.unused(), now()).await.unwrap();
    }
    let many = ClaimRequest { count: 64, ..claim(workers(), more) };
    assert_eq!(programs[1].claim(&many, now()).await.unwrap().len(), 3);
    assert_eq!(code(claimed(&*programs[0], more).await), "limit_exceeded");
    let limits = one.service().limits();
    one.service().set_limits(Limits { workers_max: 17, ..(*limits).clone() });
    claimed(&*programs[0], more).await.unwrap();
}

/// A number released with its mark ahead stays unusable until that time: by releasing one after the
/// other, a program could use up the pool.
#[tokio::test]
async fn clients_of_a_token_cannot_exhaust_a_pool_by_releases() {
    let store = MemoryStore::new("all").unwrap();
    let (server, _) = serve(&store, ENOUGH).await;
    // A program does not wait for a retry that is allowed later than this limit.
    let bills = remote_with(BILLS, &[&server], Settings { call_ms: 20_000, ..SETTINGS }).await;
    let mut claims = 0;
    let refused = loop {
        let member = joined(&*bills, 1_000 + claims).await;
        let lease = match claimed(&*bills, member).await {
            Ok(mut leases) => leases.remove(0),
            Err(refused) => break refused,
        };
        ahead(&*bills, &lease, (70_000, None), now()).await.unwrap();
        bills.leave(member, now()).await.unwrap();
        claims += 1;
        assert!(claims <= 64, "it never ends");
    };
    assert_eq!(claims, 64);
    assert!(matches!(refused.retry(), Retry::AfterMs(1..=75_000)), "{refused:?}");
    assert!(refused.to_string().contains("limits.workers_max"), "{refused}");
}

/// Numbers that are given back are issued again.
#[tokio::test]
async fn client_returns_only_numbers_that_its_token_reserved() {
    let store = MemoryStore::new("all").unwrap();
    let (one, node) = serve(&store, ENOUGH).await;
    let (two, _) = serve(&store, ENOUGH).await;
    define(&node, "bills", r#"{"kind":"segment"}"#).await;
    let version = store.get("bills").await.unwrap().version;
    let bills = remote(BILLS, &[&one]).await;
    let orders = remote(ORDERS, &[&one]).await;
    let other_server = remote(BILLS, &[&two]).await;
    let reserve = async |by: &RemoteStore| {
        let source = "bills".to_owned();
        by.reserve(&Reserve { source, length: 10, definition_version: version, within: None }).await
    };
    let reserved = reserve(&bills).await.unwrap();
    let back = |first| GiveBack {
        source: "bills".into(),
        first,
        last: reserved.last,
        version: reserved.version,
    };
    let before = store.get("bills").await.unwrap();
    for other in [&orders, &other_server] {
        assert_eq!(code(other.give_back(&back(reserved.first)).await), "invalid");
    }
    // The same holds for numbers that a server reserved for itself.
    let mut mark = before.segment.mark;
    assert_eq!(store.get("bills").await.unwrap(), before);
    bills.give_back(&back(reserved.first + 4)).await.unwrap();
    assert!(store.get("bills").await.unwrap().segment.mark < mark);
    assert!(bills.give_back(&back(reserved.first)).await.is_err(), "once");
    let own =
        Reserve { source: "bills".into(), length: 9, definition_version: version, within: None };
    let of_server = store.reserve(&own).await.unwrap();
    mark = store.get("bills").await.unwrap().segment.mark;
    let last = of_server.last;
    let back = GiveBack {
        source: "bills".into(),
        first: of_server.first,
        last,
        version: of_server.version,
    };
    for by in [&bills, &orders] {
        assert_eq!(code(by.give_back(&back).await), "invalid");
    }
    assert_eq!(store.get("bills").await.unwrap().segment.mark, mark);
    let admin = remote(ADMIN, &[&one]).await;
    admin.give_back(&back).await.unwrap();
}

#[tokio::test]
async fn joins_claims_and_definitions_count_against_the_rate() {
    let store = MemoryStore::new("all").unwrap();
    let (server, _) = serve(&store, "2/h *").await;
    let builder = remote(BUILDER, &[&server]).await;
    let over = |outcome: snowmint_coord::Result<()>, what: &str| {
        let refused = outcome.unwrap_err();
        assert!(matches!(refused.retry(), Retry::AfterMs(1_000_000..)), "{refused:?}");
        assert!(refused.to_string().contains(what), "{what}: {refused}");
    };
    let join = async |number| {
        let incarnation = Incarnation::new(number);
        let (owner, host, address) = ("it".into(), "here".into(), String::new());
        let member = Member { incarnation, owner, host, process: 1, address };
        builder.join(&member, presence(), now()).await
    };
    join(1).await.unwrap();
    join(2).await.unwrap();
    over(join(3).await, "joins");
    for _ in 0..9 {
        builder.renew(Incarnation::new(1), presence(), now()).await.unwrap();
    }
    let member = Incarnation::new(1);
    for _ in 0..2 {
        claimed(&*builder, member).await.unwrap();
    }
    over(claimed(&*builder, member).await.map(drop), "claims");

    let spec = r#"{"kind":"segment"}"#;
    let define = async |name: &str| {
        let new = NewDefinition::of(name, &SourceSpec::from_json(spec).unwrap()).unwrap();
        builder.define(&new).await.map(drop)
    };
    define("build-1").await.unwrap();
    define("build-2").await.unwrap();
    over(define("build-3").await, "definitions");
    // Changes of existing sources have a count of their own.
    builder.set_state("build-1", SourceState::Disabled).await.unwrap();
    builder.set_state("build-1", SourceState::Enabled).await.unwrap();
    // Another token has counts of its own.
    joined(&*remote(ORDERS, &[&server]).await, 9).await;
}

#[tokio::test]
async fn definitions_through_the_store_have_a_catalog_share() {
    let store = MemoryStore::new("all").unwrap();
    let (server, _) = serve(&store, ENOUGH).await;
    let limits = server.service().limits();
    let narrow = Limits { sources_max: 8, prefill_ids_max: 65_536, ..(*limits).clone() };
    server.service().set_limits(narrow);
    let builder = remote(BUILDER, &[&server]).await;
    let of = |name: &str, spec: &str| {
        NewDefinition::of(name, &SourceSpec::from_json(spec).unwrap()).unwrap()
    };
    let define = async |name: &str, spec: &str| builder.define(&of(name, spec)).await;
    let segment = r#"{"kind":"segment"}"#;
    define("build-1", segment).await.unwrap();
    let large = r#"{"prefill":{"enabled":true,"boost":3}}"#;
    assert_rejected(define("build-2", large).await, &["limits.prefill_ids_max", "32768"]);
    let fits = define("build-2", r#"{"prefill":{"enabled":true,"boost":2}}"#).await.unwrap();
    assert_rejected(define("build-3", segment).await, &["limits.sources_max", "3 sources"]);
    let new = of("build-2", large);
    assert_rejected(builder.alter(&new, None).await, &["limits.prefill_ids_max"]);
    let restripe = Restripe { new, if_version: fits.version, mark: fits.segment.mark };
    assert_rejected(builder.restripe(&restripe).await, &["limits.prefill_ids_max"]);
    assert_eq!(store.get("build-2").await.unwrap(), fits);
    assert!(store.get("build-3").await.is_err());
    let sent = Release {
        pool: "sections".into(),
        slot: 1,
        term: snowmint_coord::Term::new(1),
        holder: Some(Incarnation::new(1)),
        mark: Mark::ZERO,
        from: None,
    };
    // It cannot release a section slot either, whichever member it names.
    assert_eq!(code(builder.release(&sent, now()).await), "unsupported");
    let lease = Lease {
        pool: "sections".into(),
        slot: 1,
        term: snowmint_coord::Term::new(1),
        holder: Some(Incarnation::new(1)),
        floor: Mark::ZERO,
        mark: Mark::ZERO,
    };
    assert_eq!(code(moved(&*builder, &lease, lease.holder, 1 << 62).await), "unsupported");
}
