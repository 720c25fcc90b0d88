//! Tests that HTTP and gRPC show the same content. Each message is taken apart completely, so that
//! a new field has to be compared.

use serde::de::DeserializeOwned;
use snowmint_coord::external::is_external;
use snowmint_core::{Clock as _, Rfc3339, SystemClock};
use snowmint_wire::grpc::recover_response::Journal;
use snowmint_wire::grpc::{
    GetSourceRequest, ListWorkersRequest, RecoverRequest, RecoverResponse, Source, Worker,
};
use snowmint_wire::http::{
    JournalBody, RecoveredBody, RecoveryBody, SourceBody, WorkerBody, WorkersBody,
};

use super::common::{HttpResponse, server, soon};
use super::recovery::in_doubt;

fn body<T: DeserializeOwned>(response: &HttpResponse) -> T {
    assert_eq!(response.status, 200, "{response:?}");
    serde_json::from_str(&response.body).unwrap()
}

/// Returns what HTTP and gRPC show, once it has not changed between.
async fn shown<T: PartialEq, M>(http: impl AsyncFn() -> T, grpc: impl AsyncFn() -> M) -> (T, M) {
    soon(async {
        loop {
            let (before, message) = (http().await, grpc().await);
            if http().await == before {
                return (before, message);
            }
        }
    })
    .await
}

fn worker_body(worker: Worker) -> WorkerBody {
    let Worker {
        pool,
        number,
        owner,
        host,
        process,
        launched,
        term,
        mark,
        held_since,
        last_renewed,
        live,
        own,
        excluded,
    } = worker;
    WorkerBody {
        external: is_external(&pool),
        pool,
        number,
        owner,
        host,
        process,
        launched,
        term,
        mark,
        held_since,
        last_renewed,
        live,
        own,
        excluded,
    }
}

fn source_body(source: Source) -> SourceBody {
    let Source { name, version, next, keys } = source;
    let (next, keys) = (next.map(|next| next.to_string()), serde_json::from_str(&keys).unwrap());
    SourceBody { name, version, next, store_status: Vec::new(), keys }
}

fn recovery_body(response: RecoverResponse) -> RecoveryBody {
    let RecoverResponse {
        doubt,
        journals,
        unsaid,
        marks_at_least,
        segments,
        undefined,
        writes_at_least,
        done,
        store,
        writes,
    } = response;
    let journal = |Journal { id, owner, host, last_seen, state }| JournalBody {
        id,
        owner,
        host,
        last_seen,
        state,
    };
    let store = store.zip(writes);
    RecoveryBody {
        doubt,
        journals: journals.into_iter().map(journal).collect(),
        unsaid,
        marks_at_least,
        segments: segments.into_iter().map(|(name, next)| (name, next.to_string())).collect(),
        undefined,
        writes_at_least: writes_at_least.map(|writes| writes.to_string()),
        done,
        store: store.map(|(id, writes)| RecoveredBody { id, writes: writes.to_string() }),
    }
}

#[tokio::test]
async fn workers_and_sources_are_the_same_over_http_and_grpc() {
    let server = server().await;
    for name in ["default", "numbers"] {
        assert_eq!(server.get(&format!("/v1/ids/{name}")).await.status, 200);
    }
    let grpc = server.grpc().await;
    let http = async || body::<WorkersBody>(&server.get("/v1/workers").await).workers;
    let list = async || grpc.clone().list_workers(ListWorkersRequest {}).await.unwrap();
    let (bodies, message) = shown(http, list).await;
    let workers: Vec<_> = message.into_inner().workers.into_iter().map(worker_body).collect();
    assert_eq!(workers, bodies);
    let [worker] = workers.as_slice() else { panic!("{workers:?}") };
    assert!(worker.own && worker.live && worker.held_since.is_some(), "{worker:?}");
    assert_eq!(worker.owner, None, "the node has no label");

    let http = async || body::<SourceBody>(&server.get("/v1/sources/numbers").await);
    let get = async || {
        let request = GetSourceRequest { name: "numbers".into() };
        grpc.clone().get_source(request).await.unwrap()
    };
    let (source, message) = shown(http, get).await;
    assert_eq!(source_body(message.into_inner()), source);
    assert!(source.next.is_some() && source.keys.len() > 3, "{source:?}");
}

#[tokio::test]
async fn recovery_is_the_same_over_http_and_grpc() {
    let (server, _second_handle) = in_doubt().await;
    let grpc = server.grpc().await;
    // Later than any mark of the store.
    let mark = Rfc3339(SystemClock.unix_ms().saturating_add(3_600_000)).to_string();
    let request = format!(r#"{{"dry_run":true,"mark":"{mark}"}}"#);
    // The first journal reports all the time; the second shows its time.
    let timeless = |mut plan: RecoveryBody| {
        plan.journals[0].last_seen.clear();
        plan
    };
    let http = async || timeless(body(&server.post("/v1/recovery", &request).await));
    let recover = async || {
        let mark = Some(mark.clone());
        let request = RecoverRequest { dry_run: true, mark, ..RecoverRequest::default() };
        grpc.clone().recover(request).await.unwrap()
    };
    let (plan, message) = shown(http, recover).await;
    assert_eq!(timeless(recovery_body(message.into_inner())), plan);
    assert!(plan.doubt.is_some() && plan.unsaid.is_some() && plan.journals.len() == 2, "{plan:?}");
}
