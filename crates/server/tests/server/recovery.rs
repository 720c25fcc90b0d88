//! Tests of a store in doubt, and of its recovery through a server, over HTTP and gRPC.

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmint_coord::{
    BootTimer, Doubt, Evidence, JournalInfo, Known, Mark, MemoryStore, Node, NodeSettings,
    Platform, Proof, Recalled, Store, StoreIdentity, Timer as _,
};
use snowmint_core::{Clock as _, Rfc3339, SystemClock};
use snowmint_wire::error::Code as ErrorCode;
use snowmint_wire::grpc::RecoverRequest;
use snowmint_wire::grpc::store::{FastForwardRequest, SourceMark};

use super::common::{Server, in_time, node_on, server_of, settings, soon, timer};
use super::grpc::reason;
use super::slow_store::BlockedStore;

/// Leaves the missing journal out; no counter has counted.
const WITHOUT: &str = r#"{"without": ["b"], "counters_above": "0"}"#;

/// Returns the same request for gRPC.
fn without() -> RecoverRequest {
    let (without, counters_above) = (vec!["b".into()], Some(0));
    RecoverRequest { without, counters_above, ..RecoverRequest::default() }
}

/// Returns a server on a store in doubt: one journal has reported, another has not.
pub(super) async fn in_doubt() -> (Server, MemoryStore) {
    let (node, second_handle) = waiting_node(300, Platform::system()).await;
    let server = server_of(node, settings()).await;
    assert_eq!(server.get("/v1/ids/numbers").await.status, 200);
    doubted(&second_handle).await;
    (server, second_handle)
}

/// Returns a node that waits for recoveries, and another handle on its store.
async fn waiting_node(presence_ttl_ms: u64, parts: Platform) -> (Node, MemoryStore) {
    let store = MemoryStore::new("test").unwrap();
    let second_handle = store.handle("test").unwrap();
    let settings_of_node = NodeSettings {
        builtin: true,
        waits_for_recovery: true,
        presence_ttl_ms,
        ..NodeSettings::default()
    };
    (Node::open(Arc::new(store), settings_of_node, parts).await.unwrap(), second_handle)
}

/// Puts the store in doubt: one journal reports again and again, another has not reported.
pub(super) async fn doubted(second_handle: &MemoryStore) {
    let found = second_handle.identity().await.unwrap();
    let doubt = Doubt { evidence: "a journal".into(), seen: found.writes + 9, found: found.writes };
    let seen = StoreIdentity { writes: doubt.seen, ..found.clone() };
    let evidence = Evidence { id: found.id, seen, ends: BTreeMap::new(), proof: Proof::Comparison };
    second_handle.doubt(&doubt, &evidence).await.unwrap();
    let known = Known { ends: [("numbers".to_owned(), 5_000)].into(), ..Known::default() };
    second_handle.report(&journal("a"), Some(&known)).await.unwrap();
    second_handle.report(&journal("b"), None).await.unwrap();
    let repeating = second_handle.handle("test").unwrap();
    tokio::spawn(async move {
        for seen_at_ms in 2_000.. {
            let again = JournalInfo { seen_at_ms, ..journal("a") };
            repeating.report(&again, Some(&Known::default())).await.unwrap();
            BootTimer.sleep_ms(20).await;
        }
    });
}

fn journal(id: &str) -> JournalInfo {
    let (owner, host) = (format!("shop-{id}"), "here".to_owned());
    JournalInfo {
        id: id.into(),
        owner,
        host,
        seen_at_ms: 1_000,
        has_reported: false,
        is_heard_of: false,
        reports: 0,
        far_mark: 0,
    }
}

#[tokio::test]
async fn http_recovers_a_store_once_no_journal_is_missing() {
    let (server, _second_handle) = in_doubt().await;
    let plan = server.get("/v1/recovery").await.json();
    assert!(plan["doubt"].as_str().unwrap().contains("a journal"), "{plan}");
    assert_eq!(
        (&plan["journals"][0]["state"], &plan["journals"][1]["state"]),
        (&"reported".into(), &"MISSING".into())
    );
    assert!(plan["unsaid"].as_str().unwrap().contains("b of shop-b on here"), "{plan}");
    assert_eq!((&plan["segments"]["numbers"], &plan["done"]), (&"5000".into(), &false.into()));

    let early = server.post("/v1/recovery", "{}").await;
    assert_eq!((early.status, early.code().as_str()), (503, "store_rolled_back"));
    for (wrong, status) in [
        (r#"{"without": ["c"]}"#, 400),
        (r#"{"mark": "soon"}"#, 400),
        (r#"{"mark": "9999-01-01T00:00:00Z"}"#, 400),
        (r#"{"segments": {"numbers": "-1"}}"#, 400),
        (r#"{"segments": {"nubmers": "1"}}"#, 404),
        (r#"{"withuot": ["b"]}"#, 400),
    ] {
        assert_eq!(server.post("/v1/recovery", wrong).await.status, status, "{wrong}");
    }
    let dry = server
        .post("/v1/recovery", r#"{"without": ["b"], "counters_above": "0", "dry_run": true}"#)
        .await
        .json();
    assert!(dry["done"] == false && dry["unsaid"].is_null(), "{dry}");
    // Prefetched numbers are issued until the server notices the doubt; a dry run changes nothing.
    while server.get("/v1/ids/numbers").await.status == 200 {}

    let named = r#"{"without": ["b"], "counters_above": "0", "segments": {"numbers": "7000"}}"#;
    let done = soon(server.post("/v1/recovery", named)).await.json();
    assert!(done["done"] == true && done["store"]["id"].is_string(), "{done}");
    continues_from(&server, 7_000).await;
    // At this point a caller has certainly got an error.
    let page = server.get("/metrics").await.body;
    let refused = page
        .lines()
        .find(|line| line.starts_with("snowmint_source_errors_total{source=\"numbers\"}"));
    assert!(refused.is_some_and(|line| !line.ends_with(" 0")), "{page}");
    let again = server.post("/v1/recovery", "{}").await.json();
    assert!(again["doubt"].is_null() && again["done"] == false, "{again}");
}

/// A journal that is left out may know of another recovery, which moved the counters.
#[tokio::test]
async fn counters_need_a_number_if_a_journal_is_left_out() {
    let (server, second_handle) = in_doubt().await;
    let refused = server.post("/v1/recovery", r#"{"without": ["b"]}"#).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "store_rolled_back"));
    assert!(refused.body.contains("--counters-above"), "{refused:?}");
    let wrong = r#"{"without": ["b"], "counters_above": "many"}"#;
    assert_eq!(server.post("/v1/recovery", wrong).await.status, 400);
    let request = RecoverRequest { counters_above: None, ..without() };
    let refused = soon(server.grpc().await.recover(request)).await.unwrap_err();
    assert_eq!(reason(&refused), ErrorCode::StoreRolledBack);
    let above = r#"{"without": ["b"], "counters_above": "3298534883329"}"#;
    let done = soon(server.post("/v1/recovery", above)).await.json();
    assert_eq!(done["done"], true, "{done}");
    let next = second_handle.ground().await.unwrap().term.get() >> 32 << 40;
    assert_eq!(next, 4 << 40, "above 3 * 2^40 + 1");
}

/// Returns a server on such a store, to which a mark five years ahead is reported, and that mark.
async fn far_ahead() -> (Server, String) {
    let (server, second_handle) = in_doubt().await;
    let far = SystemClock.unix_ms().saturating_add(5 * 365 * 86_400_000);
    let known = Known { mark: far.get(), ..Known::default() };
    second_handle.report(&journal("a"), Some(&known)).await.unwrap();
    (server, Rfc3339(far).to_string())
}

#[tokio::test]
async fn mark_far_ahead_needs_a_word_over_http() {
    let (server, far) = far_ahead().await;
    let refused = soon(server.post("/v1/recovery", WITHOUT)).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "store_rolled_back"));
    for part in [&*far, "--far-ahead", "--no-ids-ahead"] {
        assert!(refused.body.contains(part), "{part}: {refused:?}");
    }
    let unnamed = r#"{"without": ["b"], "counters_above": "0", "no_ids_ahead": true}"#;
    assert_eq!(server.post("/v1/recovery", unnamed).await.status, 400);
    let vouched = r#"{"without": ["b"], "counters_above": "0", "no_ids_ahead": true,
        "mark": "2026-01-01T00:00:00Z"}"#;
    let done = soon(server.post("/v1/recovery", vouched)).await.json();
    assert!(done["done"] == true && done["unsaid"].is_null(), "{done}");
    let mark: Rfc3339 = done["marks_at_least"].as_str().unwrap().parse().unwrap();
    assert!(mark.0.since(SystemClock.unix_ms()) < 600_000, "{done}");
}

#[tokio::test]
async fn mark_far_ahead_needs_a_word_over_grpc() {
    let (server, far) = far_ahead().await;
    let mut client = server.grpc().await;
    let refused = soon(client.recover(without())).await.unwrap_err();
    assert_eq!(reason(&refused), ErrorCode::StoreRolledBack);
    assert!(refused.message().contains(&far), "{refused:?}");
    let mark = Some(far.clone());
    let accepted = RecoverRequest { far_ahead: true, mark, ..without() };
    let done = soon(client.recover(accepted)).await.unwrap().into_inner();
    assert_eq!((done.done, done.marks_at_least), (true, Some(far)));
}

#[tokio::test]
async fn grpc_recovers_a_store_by_the_recover_call_only() {
    let (server, _second_handle) = in_doubt().await;
    let mut client = server.grpc().await;
    let early = soon(client.recover(RecoverRequest::default())).await.unwrap_err();
    assert_eq!(reason(&early), ErrorCode::StoreRolledBack);

    // The verb fast_forward waits for no journal. The error is the store's, which no client retries.
    let forward = FastForwardRequest::default();
    let refused = soon(server.program("").await.call(forward)).await.unwrap().error.unwrap();
    assert_eq!(refused.code, "store_rolled_back", "{refused:?}");
    assert!(refused.message.contains("snowmint worker recover"), "{refused:?}");

    // Before the server notices the doubt, it issues prefetched numbers.
    let request = without();
    let done = soon(client.recover(request)).await.unwrap().into_inner();
    assert!(done.done && done.store.is_some() && done.writes.is_some(), "{done:?}");
    assert_eq!(done.segments["numbers"], 5_000);
    assert_eq!(
        done.journals.iter().map(|it| it.state.as_str()).collect::<Vec<_>>(),
        ["reported", "left out"]
    );
    continues_from(&server, 5_000).await;
}

/// An operator may mistype the year, and nothing lowers a mark.
#[tokio::test]
async fn move_by_a_program_goes_at_most_a_day_ahead() {
    const HOUR_MS: u64 = 3_600_000;
    let store = MemoryStore::new("test").unwrap();
    let server = server_of(node_on(store.handle("test").unwrap()).await, settings()).await;
    let mut client = server.program("").await;
    let mut moved = async |hours: u64| {
        let marks_at_least = SystemClock.unix_ms().saturating_add(hours * HOUR_MS).get();
        let message = FastForwardRequest { marks_at_least, ..FastForwardRequest::default() };
        (Mark::new(marks_at_least), soon(client.call(message)).await.unwrap().error)
    };
    let before = store.ground().await.unwrap();
    for hours in [25, 8_000 * 365 * 24] {
        let (_, refused) = moved(hours).await;
        let refused = refused.unwrap();
        assert_eq!(refused.code, "invalid", "{hours} h: {refused:?}");
        assert!(refused.message.contains("--far-ahead"), "{refused:?}");
        assert_eq!(store.ground().await.unwrap(), before, "{hours} h");
    }
    let (mark, refused) = moved(23).await;
    assert_eq!(refused, None);
    assert_eq!(store.ground().await.unwrap().mark, mark);
}

/// No process has found yet that the store lacks something.
#[tokio::test]
async fn move_by_a_program_excuses_no_loss() {
    let store = MemoryStore::new("test").unwrap();
    let server = server_of(node_on(store.handle("test").unwrap()).await, settings()).await;
    let mut client = server.program("").await;
    let mut moved =
        async |message: FastForwardRequest| soon(client.call(message)).await.unwrap().error;
    let kept = store.identity().await.unwrap();
    let lost = StoreIdentity { writes: kept.writes + 1_000_000, ..kept.clone() };
    let before = store.ground().await.unwrap();
    let none = FastForwardRequest::default;
    for (part, message) in [
        ("writes_at_least", FastForwardRequest { writes_at_least: 1, ..none() }),
        ("recoveries_at_least", FastForwardRequest { recoveries_at_least: 1, ..none() }),
        ("catalog_at_least", FastForwardRequest { catalog_at_least: 1, ..none() }),
        ("new_identity", FastForwardRequest { new_identity: true, ..none() }),
        ("forget_journals", FastForwardRequest { forget_journals: vec!["a".into()], ..none() }),
    ] {
        let refused = moved(message).await.expect(part);
        assert_eq!(refused.code, "invalid", "{part}: {refused:?}");
        assert!(refused.message.starts_with(part), "{refused:?}");
        assert!(refused.message.contains("/v1/recovery"), "{refused:?}");
    }
    assert_eq!(store.ground().await.unwrap(), before);
    let segments = vec![SourceMark { source: "numbers".into(), mark: 5_000 }];
    assert_eq!(moved(FastForwardRequest { segments, ..none() }).await, None);
    assert_eq!(store.ground().await.unwrap(), before, "no lease and no counter is void");
    let list = store.list().await.unwrap().definitions;
    let numbers = list.iter().find(|source| source.name == "numbers").unwrap();
    assert_eq!(numbers.segment.mark, Mark::new(5_000));
    let fresh = store.handle("test").unwrap();
    assert_eq!(fresh.recall("it", &kept).await.unwrap(), Recalled::Same);
    let refused = fresh.recall("it", &lost).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
}

/// Nothing else moves, and no journal is asked.
#[tokio::test]
async fn values_raised_without_a_doubt_are_shown_alone() {
    let (node, second_handle) = waiting_node(300, Platform::system()).await;
    let server = server_of(node, settings()).await;
    assert_eq!(server.get("/v1/ids/numbers").await.status, 200);
    second_handle.report(&journal("b"), None).await.unwrap();
    let healthy = server.get("/v1/recovery").await.json();
    let raised = server.post("/v1/recovery", r#"{"segments": {"numbers": "7000"}}"#);
    let raised = soon(raised).await.json();
    for (body, done, segments) in [
        (&healthy, false, serde_json::json!({})),
        (&raised, true, serde_json::json!({"numbers": "7000"})),
    ] {
        assert_eq!((&body["done"], &body["segments"]), (&done.into(), &segments), "{body}");
        for absent in ["doubt", "unsaid", "marks_at_least", "writes_at_least"] {
            assert!(body.get(absent).is_none(), "{absent}: {body}");
        }
        let journals = body["journals"].as_array().unwrap();
        assert!(journals.iter().all(|journal| journal["state"] == "not asked"), "{body}");
        assert!(journals.iter().any(|journal| journal["id"] == "b"), "{body}");
    }
    let next = async || {
        let body = server.get("/v1/ids/numbers").await.json();
        body["ids"][0].as_str().map_or(0, |id| id.parse().unwrap())
    };
    // Prefetched numbers are issued until the server notices.
    soon(async { while next().await < 7_000_u64 {} }).await;

    let mark = Rfc3339(SystemClock.unix_ms().saturating_add(3_600_000)).to_string();
    let mut client = server.grpc().await;
    for mark in [None, Some(mark)] {
        let segments = [("numbers".to_owned(), 8_000)].into();
        let request =
            RecoverRequest { dry_run: true, mark: mark.clone(), segments, ..Default::default() };
        let plan = soon(client.recover(request)).await.unwrap().into_inner();
        assert_eq!((plan.marks_at_least, plan.writes_at_least), (mark, None));
        assert_eq!(plan.segments["numbers"], 8_000);
    }
}

/// An ID is the unit that callers know.
#[tokio::test]
async fn source_continues_after_an_issued_id() {
    let (node, _second_handle) = waiting_node(300, Platform::system()).await;
    let server = server_of(node, settings()).await;
    let plan = async |text: &str| {
        let body = format!(r#"{{"dry_run":true,"segments":{{"numbers":"{text}"}}}}"#);
        server.post("/v1/recovery", &body).await
    };
    let http = soon(plan("id:7000")).await.json();
    assert_eq!(http["segments"]["numbers"], "7001", "{http}");
    for wrong in ["-5", "", "id:", "x", "18446744073709551615"] {
        let refused = soon(plan(wrong)).await;
        assert_eq!(refused.status, 400, "{wrong:?}: {}", refused.json());
    }
    let issued = [("numbers".to_owned(), "7000".to_owned())].into();
    let request = RecoverRequest { dry_run: true, issued, ..Default::default() };
    let grpc = soon(server.grpc().await.recover(request)).await.unwrap().into_inner();
    assert_eq!(grpc.segments["numbers"], 7_001);
}

/// A replica has taken over from the server of a store that is not in doubt.
async fn failed_over() -> (Server, MemoryStore) {
    let (node, second_handle) = waiting_node(300, Platform::system()).await;
    let server = server_of(node, settings()).await;
    assert_eq!(server.get("/v1/ids/numbers").await.status, 200);
    second_handle.report(&journal("b"), None).await.unwrap();
    second_handle.take_over(second_handle.backup());
    // Prefetched numbers are issued until the server notices.
    while server.get("/v1/ids/numbers").await.status == 200 {}
    rejects_with(&server, "store_mismatch").await;
    (server, second_handle)
}

/// Waits until a server that mints nothing gives this reason.
async fn rejects_with(server: &Server, code: &str) {
    soon(async { while server.get("/v1/ids/numbers").await.code() != code {} }).await;
}

#[tokio::test]
async fn a_server_that_took_over_is_accepted_over_http() {
    let (server, second_handle) = failed_over().await;
    let refused = server.post("/v1/recovery", "{}").await.json();
    assert!(refused["doubt"].is_null() && refused["done"] == false, "{refused}");
    let moves = server.post("/v1/recovery", r#"{"segments": {"numbers": "7000"}}"#).await;
    assert_eq!(moves.code(), "store_mismatch", "{moves:?}");
    assert!(moves.body.contains("--other-server"), "{moves:?}");
    for both in [
        r#"{"other_server": true, "dry_run": true}"#,
        r#"{"other_server": true, "without": ["absent"]}"#,
        r#"{"other_server": true, "segments": {"absent": "5"}}"#,
        r#"{"other_server": true, "mark": "2027-01-01T00:00:00Z"}"#,
        // The conflict comes first: the mark has to go, right or wrong.
        r#"{"other_server": true, "mark": "soon"}"#,
        r#"{"other_server": true, "segments": {"numbers": "-1"}}"#,
    ] {
        let refused = server.post("/v1/recovery", both).await;
        assert_eq!(refused.status, 400, "{both}");
        assert!(refused.body.contains("other_server puts"), "{both}: {refused:?}");
    }
    assert_eq!(second_handle.standing().await.unwrap().doubt, None);

    let accepted = soon(server.post("/v1/recovery", r#"{"other_server": true}"#)).await.json();
    assert!(accepted["doubt"].as_str().unwrap().contains("an operator"), "{accepted}");
    assert!(accepted["done"] == false && accepted["store"].is_null(), "{accepted}");
    let early = server.post("/v1/recovery", "{}").await;
    assert_eq!((early.status, early.code().as_str()), (503, "store_rolled_back"));
    rejects_with(&server, "store_rolled_back").await;
    let done = soon(server.post("/v1/recovery", WITHOUT)).await.json();
    assert_eq!(done["done"], true, "{done}");
    soon(async { while server.get("/v1/ids/numbers").await.status != 200 {} }).await;
}

#[tokio::test]
async fn a_server_that_took_over_is_accepted_over_grpc() {
    let (server, second_handle) = failed_over().await;
    let mut client = server.grpc().await;
    let request = RecoverRequest { other_server: true, ..RecoverRequest::default() };
    let accepted = soon(client.recover(request)).await.unwrap().into_inner();
    assert!(accepted.doubt.is_some() && !accepted.done, "{accepted:?}");
    assert!(second_handle.standing().await.unwrap().doubt.is_some());
    rejects_with(&server, "store_rolled_back").await;
    let request = without();
    assert!(soon(client.recover(request)).await.unwrap().into_inner().done);
}

/// Returns how often the node has read the reports.
fn looks(node: &Node) -> u64 {
    let calls = node.stats().store_calls;
    calls.iter().find(|calls| calls.verb == "standing").map_or(0, |calls| calls.took.count())
}

/// Others may report between the first read of the reports and the time when this server stops
/// minting.
#[tokio::test]
async fn recovery_passes_reports_that_arrive_while_it_waits() {
    let time = timer();
    let parts = Platform { timer: Arc::new(time.clone()), ..Platform::system() };
    let (node, second_handle) = waiting_node(30_000, parts).await;
    let server = server_of(node.clone(), settings()).await;
    in_time(&time, async { while server.get("/readyz").await.status != 200 {} }).await;
    assert_eq!(in_time(&time, server.get("/v1/ids/numbers")).await.status, 200);
    doubted(&second_handle).await;

    // It notices the doubt with a renewal, which happens only when time passes.
    let before = looks(&node);
    let mut recovering = std::pin::pin!(server.post("/v1/recovery", WITHOUT));
    let first_look = async {
        while looks(&node) == before {
            BootTimer.sleep_ms(1).await;
        }
    };
    tokio::select! {
        biased;
        early = &mut recovering => panic!("it has not waited: {early:?}"),
        () = in_time(&time, first_look) => {}
    }
    // More than the server itself reports, at any time.
    let ends = [("numbers".to_owned(), 9_000)].into();
    let known = Known { ends, writes: 10_000, catalog: 1_000, ..Known::default() };
    second_handle.report(&journal("a"), Some(&known)).await.unwrap();
    let done = in_time(&time, recovering).await.json();
    assert_eq!((&done["done"], &done["segments"]["numbers"]), (&true.into(), &"9000".into()));
    in_time(&time, continues_from(&server, 9_000)).await;
}

/// No member holds a worker number, and no action of the operator would help.
#[tokio::test]
async fn readyz_states_when_the_clock_reaches_the_marks() {
    let (server, _second_handle) = in_doubt().await;
    let done = soon(server.post("/v1/recovery", WITHOUT)).await.json();
    let until = done["marks_at_least"].as_str().unwrap();
    // A number is claimed on the first request that needs one.
    soon(async { while server.get("/v1/ids/default").await.code() != "pool_full" {} }).await;
    let ready = soon(async {
        loop {
            let ready = server.get("/readyz").await;
            if ready.json()["codes"].as_array().unwrap().contains(&"pool_full".into()) {
                return ready;
            }
        }
    })
    .await;
    let reasons = ready.json()["reasons"].to_string();
    assert_eq!(ready.status, 503, "{reasons}");
    let end = format!("minting continues at {until} by itself");
    for part in [end.as_str(), "no number whose mark the clock has reached", "no action is needed"]
    {
        assert!(reasons.contains(part), "{part}: {reasons}");
    }
    for wrong in ["is full", "accept-lead"] {
        assert!(!reasons.contains(wrong), "{wrong}: {reasons}");
    }
}

/// The server has looked for a doubt before, and found none.
#[tokio::test]
async fn move_by_a_program_keeps_a_newer_doubt() {
    let store = BlockedStore::new();
    let built_in = NodeSettings { builtin: true, ..NodeSettings::default() };
    let opened =
        Node::open(Arc::clone(&store) as Arc<dyn Store>, built_in, Platform::system()).await;
    let server = server_of(opened.unwrap(), settings()).await;
    assert_eq!(server.get("/v1/ids/numbers").await.status, 200);
    let forward = FastForwardRequest::default();
    let refused = soon(server.program("").await.call(forward)).await.unwrap().error.unwrap();
    assert_eq!(refused.code, "store_rolled_back", "{refused:?}");
    assert!(store.store.standing().await.unwrap().doubt.is_some());
}

async fn continues_from(server: &Server, first: u64) {
    let mut response = server.get("/v1/ids/numbers").await;
    while response.status == 503 {
        response = soon(server.get("/v1/ids/numbers")).await;
    }
    assert_eq!(response.ids(), [first]);
    // Numbers prefetched before are never issued.
    assert_eq!(server.get("/v1/ids/numbers").await.ids(), [first + 1]);
}
