//! Spans that the real binary sends to a collector with the real protocol.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use snowmint_wire::grpc::MintRequest;
use snowmint_wire::grpc::mint_client::MintClient;
use tokio::runtime::Runtime;
use tonic::transport::Endpoint;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use super::server::{Folder, Server, TIMEOUT, client, curl, snowmint, until};

/// Collector of spans, each with the attributes of its sender.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Got>>>);

/// Attributes of the sender, and a span.
type Got = (Vec<KeyValue>, Span);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut got = self.0.lock().unwrap();
        for resource in request.into_inner().resource_spans {
            let about = resource.resource.unwrap_or_default().attributes;
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            got.extend(spans.map(|span| (about.clone(), span)));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    /// Starts at this address, and returns the actual one.
    fn start(&self, runtime: &Runtime, address: &str) -> String {
        let _inside = runtime.enter();
        let incoming = TcpIncoming::bind(address.parse().unwrap()).unwrap();
        let at = incoming.local_addr().unwrap().to_string();
        let service = TraceServiceServer::new(self.clone());
        let server = tonic::transport::Server::builder().add_service(service);
        runtime.spawn(server.serve_with_incoming(incoming));
        at
    }

    /// Waits for the first span of this name and kind, and returns it.
    #[track_caller]
    fn span(&self, what: &str, is: impl Fn(&Span) -> bool) -> Got {
        let until = Instant::now() + TIMEOUT;
        loop {
            let got = self.0.lock().unwrap();
            if let Some(found) = got.iter().find(|(_, span)| is(span)) {
                return found.clone();
            }
            let names: Vec<_> = got.iter().map(|(_, span)| span.name.clone()).collect();
            assert!(Instant::now() < until, "no span of {what} among {names:?}");
            drop(got);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    fn named(&self, name: &str) -> Span {
        self.span(name, |span| span.name == name).1
    }
}

/// Returns a text or number attribute of a span.
fn attribute(about: &[KeyValue], key: &str) -> Option<String> {
    let found = about.iter().find(|it| it.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{key}: {other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn serve(folder: &Folder, collector: &str, more: &[(&str, &str)]) -> Server {
    let endpoint = format!("http://{collector}");
    let data = folder.join("data");
    let environment = [&[("SNOWMINT_TRACES__ENDPOINT", endpoint.as_str())], more].concat();
    let server = Server::start(&["--data-dir", data.to_str().unwrap()], &environment);
    server.ready();
    server
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn requests_and_store_calls_are_spans() {
    let folder = Folder::new("traces");
    let runtime = Runtime::new().unwrap();
    let collector = Collector::default();
    let at = collector.start(&runtime, "127.0.0.1:0");
    let offered = ("SNOWMINT_STORE__OFFERED", "true");
    let server = serve(&folder, &at, &[("SNOWMINT_SERVER__OWNER", "ada"), offered]);
    let parent = format!("00-{TRACE}-{CALLER}-01");

    // HTTP request below the caller's own span.
    let header = format!("traceparent: {parent}");
    curl(&["-H", &header, &server.url("/v1/ids/default?count=3")]);
    let (resource, span) = collector.span("HTTP", |span| span.name == "GET /v1/ids/default");
    assert_eq!((hex(&span.trace_id).as_str(), hex(&span.parent_span_id).as_str()), (TRACE, CALLER));
    let of = |span: &Span, key: &str| attribute(&span.attributes, key);
    assert_eq!(of(&span, "snowmint.protocol").as_deref(), Some("http"));
    assert_eq!(of(&span, "snowmint.source").as_deref(), Some("default"));
    assert_eq!(of(&span, "snowmint.count").as_deref(), Some("3"));
    assert_eq!(of(&span, "snowmint.outcome").as_deref(), Some("ok"));
    assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
    assert_eq!(attribute(&resource, "service.name").as_deref(), Some("snowmint"));
    assert_eq!(attribute(&resource, "service.instance.id").as_deref(), Some("ada"));

    // Requests for one ID. The server can respond to the second at once, as it knows the source.
    for _ in 0..2 {
        curl(&[&server.url("/v1/ids/numbers")]);
    }
    until("both requests for one ID have a span", || {
        let got = collector.0.lock().unwrap();
        got.iter().filter(|(_, span)| span.name == "GET /v1/ids/numbers").count() == 2
    });
    let one = collector.named("GET /v1/ids/numbers");
    assert_eq!(of(&one, "snowmint.count").as_deref(), Some("1"));

    // Failed request without a caller's span.
    curl(&[&server.url("/v1/ids/absent")]);
    let refused = collector.named("GET /v1/ids/absent");
    assert_eq!(of(&refused, "snowmint.outcome").as_deref(), Some("unknown_source"));
    assert_eq!(refused.status.unwrap().code, 2, "an error");
    assert!(refused.parent_span_id.is_empty());

    // Requests over gRPC and RESP.
    let endpoint = Endpoint::from_shared(format!("http://{}", server.http)).unwrap();
    runtime.block_on(async {
        let mut mint = MintClient::new(endpoint.connect().await.unwrap());
        let wish = MintRequest { source: "default".into(), count: Some(2), key: None };
        let mut request = Request::new(wish);
        request.metadata_mut().insert("traceparent", parent.parse().unwrap());
        mint.mint(request).await.unwrap();
    });
    let span = collector.named("snowmint.v1.Mint/Mint");
    assert_eq!((hex(&span.trace_id).as_str(), hex(&span.parent_span_id).as_str()), (TRACE, CALLER));
    client("redis-cli", &["-p", server.resp_port(), "INCR", "default"]);
    let span = collector.named("INCR");
    assert_eq!(of(&span, "snowmint.protocol").as_deref(), Some("resp"));
    assert_eq!(of(&span, "snowmint.count").as_deref(), Some("1"));

    // Store calls in the background and below a request.
    collector.named("store claim");
    let store = format!("snowmint://{}", server.http);
    let minted = snowmint().args(["mint", "numbers", "--store", &store]).output().unwrap();
    assert!(minted.status.success(), "{minted:?}");
    let reserve_span = collector.named("snowmint.store.v1.Store/Reserve");
    let (_, done) = collector.span("what it led to", |span| {
        span.name == "store reserve" && span.parent_span_id == reserve_span.span_id
    });
    assert_eq!(done.trace_id, reserve_span.trace_id);
    assert_eq!(of(&done, "snowmint.source").as_deref(), Some("numbers"));

    // The last spans are sent before the process ends.
    curl(&[&server.url("/v1/layouts")]);
    assert_eq!(server.stop(), 0);
    assert!(collector.0.lock().unwrap().iter().any(|(_, span)| span.name == "GET /v1/layouts"));
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn unreachable_collector_is_reported_once_and_delays_no_call() {
    let folder = Folder::new("traces-away");
    let runtime = Runtime::new().unwrap();
    // The port stays reserved for the later collector: connections meanwhile are closed at once.
    let away = TcpListener::bind("127.0.0.1:0").unwrap();
    away.set_nonblocking(true).unwrap();
    let at = away.local_addr().unwrap().to_string();
    let server = serve(&folder, &at, &[]);
    let warnings = |server: &Server| server.printed().matches("spans are lost").count();
    let mut tries = 0;
    // This repeats several times, with more spans than the queue holds.
    until("spans are sent several times without success", || {
        let ids = client("redis-cli", &["-p", server.resp_port(), "-r", "2000", "INCR", "default"]);
        assert_eq!(ids.lines().count(), 2_000);
        tries += std::iter::from_fn(|| away.accept().ok()).count();
        tries >= 5 && warnings(&server) > 0
    });
    assert_eq!(warnings(&server), 1, "{}", server.printed());
    drop(away);
    let collector = Collector::default();
    collector.start(&runtime, &at);
    curl(&[&server.url("/v1/ids/default")]);
    server.says("accepts spans again");
    curl(&[&server.url("/v1/layouts")]);
    collector.named("GET /v1/layouts");
    assert_eq!(warnings(&server), 1);
    assert_eq!(server.stop(), 0);
}
