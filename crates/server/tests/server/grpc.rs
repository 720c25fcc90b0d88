//! Tests of gRPC calls, by a real client over real sockets.

use std::collections::HashSet;
use std::time::Duration;

use prost::Message as _;
use snowmint_coord::{Incarnation, Timer as _};
use snowmint_wire::error::Code as ErrorCode;
use snowmint_wire::grpc::decode_request::{By, Id};
use snowmint_wire::grpc::mint_client::MintClient;
use snowmint_wire::grpc::store;
use snowmint_wire::grpc::{
    AlterSourceRequest, BoundRequest, BoundResponse, DecodeRequest, DecodeResponse,
    DefineSourceRequest, DeleteSourceRequest, GetLayoutRequest, GetSourceRequest,
    ListLayoutsRequest, ListSourcesRequest, ListWorkersRequest, MintRequest, MintResponse,
    MintStreamRequest, ReserveRequest, RestripeSourceRequest, SERVICE,
};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::AsciiMetadataKey;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ExtensionRequest, ServerReflectionRequest};
use tonic_types::StatusExt as _;

use super::common::{Server, in_time, node, server, server_of, server_with, settings, soon};

impl Server {
    /// Opens a connection with a small window: the server cannot send what the client does not
    /// read.
    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.http)).unwrap();
        let endpoint = endpoint.initial_stream_window_size(Some(65_535));
        soon(endpoint.connect()).await.unwrap()
    }

    pub(crate) async fn grpc(&self) -> MintClient<Channel> {
        MintClient::new(self.channel().await)
    }
}

pub(crate) fn wish(source: &str, count: Option<u64>) -> MintRequest {
    MintRequest { source: source.into(), count, key: None }
}

pub(crate) fn many(source: &str, total: u64) -> MintStreamRequest {
    MintStreamRequest { source: source.into(), total, key: None }
}

/// Mints numbers of a source, which must succeed.
pub(crate) async fn mint(client: &mut MintClient<Channel>, source: &str, count: u64) -> Vec<u64> {
    let response = soon(client.mint(wish(source, Some(count)))).await.unwrap().into_inner();
    assert_eq!(response.texts, Vec::<String>::new());
    response.ids
}

/// Returns the error's reason, in the names of the other protocols.
#[track_caller]
pub(crate) fn reason(status: &Status) -> ErrorCode {
    let info = status.get_details_error_info().unwrap_or_else(|| panic!("no reason: {status:?}"));
    assert_eq!(info.domain, "snowmint");
    ErrorCode::from_name(&info.reason.to_ascii_lowercase()).unwrap_or_else(|| panic!("{info:?}"))
}

#[tokio::test]
async fn grpc_mints_one_and_many_ids_on_the_port_of_http() {
    let server = server().await;
    let mut client = server.grpc().await;
    let one = client.mint(wish("numbers", None)).await.unwrap().into_inner();
    assert_eq!(one, MintResponse { ids: vec![1], texts: vec![] });
    assert_eq!(mint(&mut client, "numbers", 3).await, [2, 3, 4]);
    assert_eq!(server.get("/v1/ids/numbers").await.ids(), [5]);
    let batch = mint(&mut client, "default", 100_000).await;
    assert_eq!(batch.len(), 100_000);
    assert!(batch.is_sorted_by(|one, next| one < next));
    // A counter's numbers, and its bound.
    let wish = MintRequest { source: "counters".into(), count: Some(3), key: Some("a/b c".into()) };
    assert_eq!(client.mint(wish).await.unwrap().into_inner().ids, [1, 2, 3]);
    let bound = BoundRequest { source: "counters".into(), key: "a/b c".into() };
    assert_eq!(client.bound(bound).await.unwrap().into_inner(), BoundResponse { bound: 3 });
}

#[tokio::test]
async fn text_sources_return_texts() {
    let server = server().await;
    let mut client = server.grpc().await;
    let define = DefineSourceRequest { name: "u".into(), keys: "{\"kind\":\"ulid\"}".into() };
    client.define_source(define).await.unwrap();
    let response = client.mint(wish("u", Some(10))).await.unwrap().into_inner();
    assert_eq!(response.ids, Vec::<u64>::new());
    assert_eq!(response.texts.iter().collect::<HashSet<_>>().len(), 10);
    assert!(response.texts.iter().all(|ulid| ulid.len() == 26), "{:?}", response.texts);
}

#[tokio::test]
async fn error_has_the_code_of_the_table_and_a_reason() {
    let server = server().await;
    let mut client = server.grpc().await;
    let long = "a".repeat(64);
    for (source, count, key, code, reported) in [
        ("absent", None, None, Code::NotFound, ErrorCode::UnknownSource),
        ("a/b", None, None, Code::InvalidArgument, ErrorCode::BadRequest),
        ("", None, None, Code::InvalidArgument, ErrorCode::BadRequest),
        (long.as_str(), None, None, Code::InvalidArgument, ErrorCode::BadRequest),
        ("default", Some(0), None, Code::InvalidArgument, ErrorCode::BadRequest),
        ("default", None, Some("x"), Code::InvalidArgument, ErrorCode::BadRequest),
        ("counters", None, None, Code::InvalidArgument, ErrorCode::BadRequest),
        ("default", Some(100_001), None, Code::ResourceExhausted, ErrorCode::LimitExceeded),
        ("default", Some(u64::MAX), None, Code::ResourceExhausted, ErrorCode::LimitExceeded),
    ] {
        let key = key.map(str::to_owned);
        let request = MintRequest { source: source.into(), count, key };
        let status = client.mint(request).await.unwrap_err();
        assert_eq!(
            (status.code(), reason(&status)),
            (code, reported),
            "{source} {count:?} {status:?}"
        );
        assert!(!status.message().is_empty());
        assert!(status.get_details_retry_info().is_none(), "a retry does not help");
    }
    for (total, code) in [(0, Code::InvalidArgument), (u64::MAX, Code::ResourceExhausted)] {
        let status = client.mint_stream(many("default", total)).await.unwrap_err();
        assert_eq!(status.code(), code, "{status:?}");
    }
    for (source, length, code) in [
        ("numbers", 0, Code::InvalidArgument),
        ("numbers", 1_000_001, Code::ResourceExhausted),
        ("default", 1, Code::InvalidArgument),
    ] {
        let request = ReserveRequest { source: source.into(), length };
        assert_eq!(client.reserve(request).await.unwrap_err().code(), code, "{source} {length}");
    }
}

#[tokio::test]
async fn retryable_status_states_the_delay() {
    let node = node().await;
    let server = server_of(node.clone(), settings()).await;
    let mut client = server.grpc().await;
    node.close().await.unwrap();
    let status = client.mint(wish("default", None)).await.unwrap_err();
    assert_eq!((status.code(), reason(&status)), (Code::Unavailable, ErrorCode::Closed));
    let delay = status.get_details_retry_info().and_then(|info| info.retry_delay).unwrap();
    assert!(delay > Duration::ZERO);
    let pushback = status.metadata().get("grpc-retry-pushback-ms").unwrap().to_str().unwrap();
    assert_eq!(pushback, delay.as_millis().to_string());
}

#[tokio::test]
async fn ids_are_decoded_and_ranges_reserved() {
    let server = server().await;
    let mut client = server.grpc().await;
    let mut decode = async |id: Option<Id>, by: Option<By>| {
        client.decode(DecodeRequest { id, by }).await.map(tonic::Response::into_inner)
    };
    let source = || Some(By::Source("default".into()));
    let minted = mint(&mut server.grpc().await, "default", 1).await[0];
    let by_number = decode(Some(Id::Number(minted)), source()).await.unwrap();
    let by_text = decode(Some(Id::Text(minted.to_string())), source()).await.unwrap();
    assert_eq!(by_number, by_text);
    assert_eq!(by_number.number, Some(minted));
    assert!(by_number.tick.is_some() && by_number.worker.is_some() && by_number.sequence.is_some());
    let json = server.get(&format!("/v1/decode/{minted}?source=default")).await.json();
    assert_eq!(json["time"].as_str(), by_number.time.as_deref());

    // Discord's own example.
    let discord = Some(By::Layout("discord".into()));
    let example: DecodeResponse =
        decode(Some(Id::Number(175_928_847_299_117_063)), discord).await.unwrap();
    assert_eq!(example.time.as_deref(), Some("2016-04-30T11:18:25.796Z"));
    assert_eq!((example.worker, example.sequence), (Some(32), Some(7)));
    // Texts that are the only form of their layout's IDs.
    for (id, layout, time) in [
        ("BsOGulcndj-", "instagram", "2019-01-04T17:05:45.106Z"),
        ("0AWG1PRQQFZ8D", "tsid", "2022-12-18T18:10:05.117Z"),
    ] {
        let by = By::Layout(layout.into());
        let decoded = decode(Some(Id::Text(id.into())), Some(by)).await.unwrap();
        assert_eq!((&*decoded.id, decoded.time.as_deref()), (id, Some(time)));
    }
    for (id, by) in [
        (None, source()),
        (Some(Id::Number(minted)), None),
        (Some(Id::Text("x".into())), source()),
        (Some(Id::Number(1)), Some(By::Layout("nothing".into()))),
    ] {
        assert_eq!(decode(id, by).await.unwrap_err().code(), Code::InvalidArgument);
    }

    let mut client = server.grpc().await;
    let range = ReserveRequest { source: "numbers".into(), length: 1_000 };
    let range = client.reserve(range).await.unwrap().into_inner();
    assert_eq!((range.last - range.first, range.increment), (999, 1));
    let next = mint(&mut client, "numbers", 100).await;
    assert!(next.iter().all(|id| !(range.first..=range.last).contains(id)));
}

#[tokio::test]
async fn sources_workers_and_layouts_are_as_in_http() {
    let server = server().await;
    let mut client = server.grpc().await;
    let define = |keys: &str| DefineSourceRequest { name: "invoices".into(), keys: keys.into() };
    let kind = "{\"kind\":\"segment\",\"first\":1000}";
    let defined = client.define_source(define(kind)).await.unwrap().into_inner();
    assert_eq!((defined.name.as_str(), defined.next), ("invoices", Some(1_000)));
    assert_eq!(mint(&mut client, "invoices", 2).await, [1_000, 1_001]);
    let other = client.define_source(define("{\"kind\":\"snowflake\"}")).await.unwrap_err();
    assert_eq!((other.code(), reason(&other)), (Code::FailedPrecondition, ErrorCode::Conflict));
    for wrong in ["[]", "{", "{\"nonsense\":1}"] {
        let status = client.define_source(define(wrong)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{wrong}: {status:?}");
    }

    let changes = "{\"enabled\":false}".to_owned();
    let version = Some(defined.version);
    let alter = AlterSourceRequest { name: "invoices".into(), changes, version };
    let altered = client.alter_source(alter.clone()).await.unwrap().into_inner();
    let late = client.alter_source(alter).await.unwrap_err();
    assert_eq!((late.code(), reason(&late)), (Code::FailedPrecondition, ErrorCode::Conflict));
    assert!(altered.version > defined.version);
    let keys: serde_json::Value = serde_json::from_str(&altered.keys).unwrap();
    assert_eq!(keys["enabled"], false);
    let off = client.mint(wish("invoices", None)).await.unwrap_err();
    assert_eq!((off.code(), reason(&off)), (Code::FailedPrecondition, ErrorCode::Disabled));
    let name = || "invoices".to_owned();
    assert_eq!(
        client.get_source(GetSourceRequest { name: name() }).await.unwrap().into_inner(),
        altered
    );
    let stripe = RestripeSourceRequest {
        name: name(),
        offset: 2,
        increment: 3,
        version: Some(altered.version),
        ..RestripeSourceRequest::default()
    };
    let striped = client.restripe_source(stripe).await.unwrap().into_inner();
    assert_eq!(striped.next.unwrap() % 3, 2, "{striped:?}");
    client.delete_source(DeleteSourceRequest { name: name() }).await.unwrap();
    let gone = client.get_source(GetSourceRequest { name: name() }).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    let sources = client.list_sources(ListSourcesRequest {}).await.unwrap().into_inner().sources;
    let names: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["counters", "default", "numbers"]);

    mint(&mut client, "default", 1).await;
    let workers = client.list_workers(ListWorkersRequest {}).await.unwrap().into_inner().workers;
    assert!(workers.iter().any(|worker| worker.own && worker.live), "{workers:?}");
    let layouts = client.list_layouts(ListLayoutsRequest {}).await.unwrap().into_inner().layouts;
    let twitter = GetLayoutRequest { layout: "twitter".into() };
    let twitter = client.get_layout(twitter).await.unwrap().into_inner();
    assert!(layouts.contains(&twitter));
    assert_eq!((twitter.workers, twitter.bits.unwrap().sequence), (1_024, 12));
    let nothing = GetLayoutRequest { layout: "nothing".into() };
    assert_eq!(client.get_layout(nothing).await.unwrap_err().code(), Code::NotFound);
}

/// Sends a message of one kind to a method of any other.
async fn send<Q>(server: &Server, path: &'static str, message: Q) -> Result<MintResponse, Status>
where
    Q: prost::Message + Send + Sync + 'static,
{
    let mut grpc = Grpc::new(server.channel().await);
    grpc.ready().await.unwrap();
    let codec: ProstCodec<Q, MintResponse> = ProstCodec::default();
    let response = grpc.unary(Request::new(message), PathAndQuery::from_static(path), codec);
    soon(response).await.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn unreadable_message_is_rejected_and_the_connection_lives() {
    let server = server_with(|settings| settings.http.body_bytes_max = 1_000).await;
    const MINT: &str = "/snowmint.v1.Mint/Mint";
    let fits = send(&server, MINT, wish(&"a".repeat(900), None)).await.unwrap_err();
    assert_eq!(fits.code(), Code::InvalidArgument);
    let large = send(&server, MINT, wish(&"a".repeat(2_000), None)).await.unwrap_err();
    assert_eq!((large.code(), reason(&large)), (Code::ResourceExhausted, ErrorCode::LimitExceeded));
    assert!(large.message().contains("http.body_bytes_max"), "{large:?}");
    // A number in the place of the name.
    let wrong = send(&server, MINT, BoundResponse { bound: 7 }).await.unwrap_err();
    assert_eq!((wrong.code(), reason(&wrong)), (Code::InvalidArgument, ErrorCode::BadRequest));
    for path in ["/snowmint.v1.Mint/Steal", "/snowmint.v2.Mint/Mint", "/x"] {
        let none = send(&server, path, wish("default", None)).await.unwrap_err();
        assert_eq!((none.code(), reason(&none)), (Code::Unimplemented, ErrorCode::Unsupported));
        assert!(none.message().contains(path), "{none:?}");
    }
    assert_eq!(send(&server, MINT, wish("numbers", None)).await.unwrap().ids, [1]);
    // HTTP/1.1 has no gRPC, and the error explains it.
    let old = server.send("POST", MINT, "content-type: application/grpc\r\n", "").await;
    assert_eq!((old.status, old.code().as_str()), (400, "bad_request"));
    assert!(old.body.contains("HTTP/2"), "{}", old.body);
}

/// A verb on many items takes as many as there are sections, and a message has their length at
/// most.
#[tokio::test]
async fn messages_of_the_store_are_bounded() {
    let server = server().await;
    let mut client = server.program("").await;
    let unread = "x".repeat(600_000);
    for (slots, pool, wanted) in [
        (32_768, "sections", None),
        (32_769, "sections", Some("32769 items")),
        (1, &unread, Some("http.body_bytes_max")),
    ] {
        // The caller holds none of them, so the response is short.
        let slots = vec![store::HeldBy::default(); slots];
        let (pool, member) = (pool.to_owned(), Incarnation::new(7).to_string());
        let relinquish = store::RelinquishRequest { pool, member, slots, now: 0 };
        let refused = soon(client.call(relinquish)).await.err();
        assert_eq!(refused.as_ref().map(reason), wanted.map(|_| ErrorCode::LimitExceeded));
        let error_text = refused.as_ref().map_or("", Status::message);
        assert!(error_text.contains(wanted.unwrap_or_default()), "{error_text}");
    }
}

/// Errors and lists of doubts repeat the name.
#[tokio::test]
async fn name_in_a_recall_is_bounded() {
    let server = server().await;
    let mut client = server.program("").await;
    for (bytes, expected) in
        [(64, None), (65, Some(ErrorCode::BadRequest)), (2_000, Some(ErrorCode::BadRequest))]
    {
        let seen = Some(store::Identity::default());
        let recall = store::RecallRequest { who: "x".repeat(bytes), seen };
        let refused = soon(client.call(recall)).await.err();
        assert_eq!(refused.as_ref().map(reason), expected, "{bytes}: {refused:?}");
    }
}

#[tokio::test]
async fn health_follows_readiness() {
    let node = node().await;
    let server = server_of(node.clone(), settings()).await;
    let mut health = HealthClient::new(server.channel().await);
    let request_for = |service: &str| HealthCheckRequest { service: service.into() };
    let mut watch = health.watch(request_for(SERVICE)).await.unwrap().into_inner();
    let mut unknown = health.watch(request_for("absent")).await.unwrap().into_inner();
    // Ready as soon as the first window is acknowledged.
    soon(async { while server.get("/readyz").await.status != 200 {} }).await;
    for service in ["", SERVICE] {
        let status = health.check(request_for(service)).await.unwrap().into_inner().status();
        assert_eq!(status, ServingStatus::Serving, "{service:?}");
    }
    let store = health.check(request_for("snowmint.store.v1.Store")).await.unwrap().into_inner();
    assert_eq!(
        store.status(),
        ServingStatus::Serving,
        "it is offered, whether or not this server mints"
    );
    assert_eq!(health.check(request_for("absent")).await.unwrap_err().code(), Code::NotFound);
    let timer = server.timer.clone();
    let mut next =
        async || in_time(&timer, watch.message()).await.unwrap().map(|reported| reported.status());
    while next().await.expect("the watch continues") != ServingStatus::Serving {}
    let reported = soon(unknown.message()).await.unwrap().unwrap();
    assert_eq!(reported.status(), ServingStatus::ServiceUnknown);

    node.close().await.unwrap();
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    let status = health.check(request_for("")).await.unwrap().into_inner().status();
    assert_eq!(status, ServingStatus::NotServing);
    // Watches do not delay a stop.
    server.handle.stop();
    assert_eq!(next().await, None);
    assert_eq!(soon(unknown.message()).await.unwrap(), None);
    soon(server.handle.stopped()).await;
}

/// Watches get repeated messages, so that their connection does not count as idle.
#[tokio::test]
async fn a_watched_connection_stays() {
    let short = snowmint_coord::spec::Span::from_ms(9_000);
    let server = server_with(|settings| settings.http.idle_max = short).await;
    let mut health = HealthClient::new(server.channel().await);
    let begun = server.timer.elapsed();
    let mut watch = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    for _ in 0..8 {
        assert!(in_time(&server.timer, watch.message()).await.unwrap().is_some());
    }
    // Lasts longer than the limit, with three messages in each period.
    assert!(server.timer.elapsed().since(begun) > 2 * short.ms());
}

/// As other servers do: the stream continues, and tools show NOT_FOUND.
#[tokio::test]
async fn unknown_names_are_error_responses_of_reflection() {
    let server = server().await;
    let mut client = ServerReflectionClient::new(server.channel().await);
    let extension =
        ExtensionRequest { containing_type: "snowmint.v1.MintRequest".into(), extension_number: 7 };
    let questions = [
        MessageRequest::FileContainingSymbol("snowmint.v1.Mint.Absent".into()),
        MessageRequest::FileByFilename("absent.proto".into()),
        MessageRequest::FileContainingExtension(extension),
        MessageRequest::AllExtensionNumbersOfType("absent.Type".into()),
        MessageRequest::AllExtensionNumbersOfType("snowmint.v1.MintRequest".into()),
        MessageRequest::FileContainingSymbol("snowmint.v1.MintRequest".into()),
    ]
    .map(|question| ServerReflectionRequest {
        host: "here".into(),
        message_request: Some(question),
    });
    let asked = futures_util::stream::iter(questions.clone());
    let mut responses = client.server_reflection_info(asked).await.unwrap().into_inner();
    for (number, question) in questions.into_iter().enumerate() {
        let response = soon(responses.message()).await.unwrap().unwrap();
        assert_eq!(response.valid_host, "here");
        assert_eq!(response.original_request, Some(question));
        match (number, response.message_response.unwrap()) {
            (0..=3, MessageResponse::ErrorResponse(error)) => {
                assert_eq!(Code::from_i32(error.error_code), Code::NotFound);
                assert!(error.error_message.contains("does not exist"), "{error:?}");
            }
            (4, MessageResponse::AllExtensionNumbersResponse(none)) => {
                assert_eq!(none.base_type_name, "snowmint.v1.MintRequest");
                assert!(none.extension_number.is_empty());
            }
            (5, MessageResponse::FileDescriptorResponse(files)) => {
                assert_eq!(files.file_descriptor_proto.len(), 1);
            }
            (_, other) => panic!("{number}: {other:?}"),
        }
    }
    assert_eq!(soon(responses.message()).await.unwrap(), None);

    // A message without a question is an error of the call.
    let empty = ServerReflectionRequest { host: String::new(), message_request: None };
    let asked = futures_util::stream::iter([empty]);
    let mut responses = client.server_reflection_info(asked).await.unwrap().into_inner();
    let error = soon(responses.message()).await.unwrap_err();
    assert_eq!((error.code(), reason(&error)), (Code::InvalidArgument, ErrorCode::BadRequest));
}

/// Older tools know the draft only.
#[tokio::test]
async fn draft_of_reflection_gives_the_same_responses() {
    use tonic_reflection::pb::v1alpha::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1alpha::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1alpha::server_reflection_response::MessageResponse;
    use tonic_reflection::pb::v1alpha::{ListServiceResponse, ServerReflectionRequest};
    let server = server().await;
    let mut client = ServerReflectionClient::new(server.channel().await);
    let questions = [
        MessageRequest::ListServices(String::new()),
        MessageRequest::FileContainingSymbol("absent".into()),
        MessageRequest::FileContainingSymbol(SERVICE.into()),
    ]
    .map(|question| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(question),
    });
    let asked = futures_util::stream::iter(questions);
    let mut responses = client.server_reflection_info(asked).await.unwrap().into_inner();
    let mut next = async || soon(responses.message()).await.unwrap().unwrap().message_response;
    let Some(MessageResponse::ListServicesResponse(ListServiceResponse { service })) = next().await
    else {
        panic!("no list of services");
    };
    let names: HashSet<_> = service.iter().map(|service| service.name.as_str()).collect();
    for version in ["v1", "v1alpha"] {
        let name = format!("grpc.reflection.{version}.ServerReflection");
        assert!(names.contains(name.as_str()), "{name}: {names:?}");
    }
    let Some(MessageResponse::ErrorResponse(error)) = next().await else { panic!("no error") };
    assert_eq!(Code::from_i32(error.error_code), Code::NotFound);
    let Some(MessageResponse::FileDescriptorResponse(_)) = next().await else {
        panic!("no description")
    };
}

#[tokio::test]
async fn long_metadata_is_resource_exhausted() {
    let server = server().await;
    let mut client = server.grpc().await;
    let call = |bytes: usize| {
        let mut request = Request::new(wish("numbers", None));
        // In several values: one alone may have a limit of its own.
        for number in 0..bytes / 1_024 {
            let key = format!("x-part-{number}");
            let key: AsciiMetadataKey = key.parse().unwrap();
            request.metadata_mut().insert(key, "v".repeat(1_024).parse().unwrap());
        }
        request
    };
    for bytes in [17 * 1_024, 20 * 1_024, 28 * 1_024] {
        let error = soon(client.mint(call(bytes))).await.unwrap_err();
        let codes = (error.code(), reason(&error));
        assert_eq!(codes, (Code::ResourceExhausted, ErrorCode::LimitExceeded), "{bytes} {error:?}");
        assert!(error.message().contains("http.head_bytes_max"), "{error:?}");
    }
    let ids = soon(client.mint(call(12 * 1_024))).await.unwrap().into_inner().ids;
    assert_eq!(ids, [1], "none was spent");
}

#[tokio::test]
async fn reflection_covers_the_interface_and_ends_with_the_server() {
    let server = server().await;
    let mut client = ServerReflectionClient::new(server.channel().await);
    let request_for =
        |request| ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let questions = [
        MessageRequest::ListServices(String::new()),
        MessageRequest::FileContainingSymbol(SERVICE.into()),
    ];
    // The caller never ends its questions.
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    for question in questions {
        sender.send(request_for(question)).await.unwrap();
    }
    let questions = futures_util::stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|question| (question, receiver))
    });
    let mut responses = client.server_reflection_info(questions).await.unwrap().into_inner();
    let mut next =
        async || soon(responses.message()).await.map(|response| response?.message_response);
    let Some(MessageResponse::ListServicesResponse(services)) = next().await.unwrap() else {
        panic!("no list of services");
    };
    let names: HashSet<_> = services.service.iter().map(|service| service.name.as_str()).collect();
    for name in [SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
    let Some(MessageResponse::FileDescriptorResponse(files)) = next().await.unwrap() else {
        panic!("no description");
    };
    let file = prost_types::FileDescriptorProto::decode(&files.file_descriptor_proto[0][..]);
    let file = file.unwrap();
    let methods = file.service[0].method.iter().map(|method| method.name());
    let methods: Vec<_> = methods.collect();
    assert!(methods.starts_with(&["Mint", "MintStream", "Reserve", "Bound", "Decode"]));
    assert_eq!(file.service[0].method[1].server_streaming, Some(true));

    server.handle.stop();
    let end = next().await.unwrap_err();
    assert_eq!((end.code(), reason(&end)), (Code::Unavailable, ErrorCode::Closed));
    in_time(&server.timer, server.handle.stopped()).await;
    drop(sender);
}
