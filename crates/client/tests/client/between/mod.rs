//! A server of another version: it has its own wire messages, and forwards to a real server.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use prost::Message;
use prost::bytes::{Buf as _, BufMut as _, Bytes};
use snowmint_wire::grpc::{MintResponse, store as proto};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::Service;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::http::{self, Extensions};
use tonic::server::{NamedService, UnaryService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// Source that the newer server rejects with a code that is unknown here.
pub(crate) const REFUSED: &str = "refused";
/// Source of the newer server, in a state that is unknown here.
pub(crate) const IN_ANOTHER_STATE: &str = "paused";

/// Version of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Speaks version 1, whose codes of errors had other names.
    First,
    /// Speaks the oldest version that is understood; lacks verbs and fields.
    Older,
    /// Has more fields, states, codes and a higher version.
    Newer,
    /// Has this version, and no store for the requests of applications.
    CutOff,
    /// Has this version, and leaves the last item out of its lists.
    Fewer,
    /// Has this version, and repeats the last item of its lists.
    More,
}

/// The description with few fields.
#[derive(Clone, PartialEq, Message)]
struct OldDescription {
    #[prost(message, optional, tag = "1")]
    error: Option<proto::Error>,
    #[prost(string, tag = "2")]
    instance: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(message, optional, tag = "4")]
    identity: Option<proto::Identity>,
    #[prost(bool, tag = "5")]
    has_clock: bool,
    #[prost(uint32, tag = "9")]
    group_max: u32,
    #[prost(uint32, tag = "11")]
    version: u32,
}

/// Fields that the newer server adds to every message.
#[derive(Clone, PartialEq, Message)]
struct More {
    #[prost(uint64, tag = "1000")]
    number: u64,
    #[prost(string, tag = "1001")]
    text: String,
    #[prost(message, optional, tag = "1002")]
    inside: Option<proto::Identity>,
}

fn more() -> Vec<u8> {
    let inside = Some(proto::Identity { id: "more".into(), writes: 1 });
    More { number: u64::MAX, text: "more".into(), inside }.encode_to_vec()
}

impl Form {
    /// Returns whether the version lacks this verb.
    fn lacks(self, path: &str) -> bool {
        matches!(self, Self::Older) && (path.ends_with("/Exclude") || path.ends_with("/Restripe"))
    }

    fn sent(self, path: &str, message: Bytes) -> Bytes {
        match self {
            // An older server knew no other field of this message.
            Self::Older if path.ends_with("/Describe") => {
                let version = proto::VERSION_MIN;
                let sent = proto::DescribeRequest { version, ..proto::DescribeRequest::default() };
                sent.encode_to_vec().into()
            }
            _ => message,
        }
    }

    fn altered(self, path: &str, sent: &Bytes, message: Bytes) -> Bytes {
        let verb = path.rsplit('/').next().unwrap();
        match (self, verb) {
            (Self::Older, "Describe") => {
                let version = proto::VERSION_MIN;
                let described = OldDescription::decode(message).unwrap();
                OldDescription { version, ..described }.encode_to_vec().into()
            }
            (Self::First, "Describe") => {
                let described = proto::DescribeResponse::decode(message).unwrap();
                proto::DescribeResponse { version: 1, ..described }.encode_to_vec().into()
            }
            (Self::Fewer | Self::More, "Extend") => {
                let mut response = proto::ExtendResponse::decode(message).unwrap();
                self.miscount(&mut response.items);
                response.encode_to_vec().into()
            }
            (Self::Fewer | Self::More, "Mint") => {
                let mut response = MintResponse::decode(message).unwrap();
                self.miscount(&mut response.ids);
                response.encode_to_vec().into()
            }
            (Self::First | Self::Older | Self::CutOff | Self::Fewer | Self::More, _) => message,
            (Self::Newer, verb) => {
                // A later field replaces an earlier one, and lists grow: so messages are
                // concatenated.
                let and = |more: Vec<u8>| [&message[..], &more[..]].concat();
                let with = match verb {
                    "Describe" => and(proto::DescribeResponse {
                        version: proto::VERSION + 1,
                        ..proto::DescribeResponse::default()
                    }
                    .encode_to_vec()),
                    "List" => and(proto::ListResponse {
                        definitions: vec![in_another_state()],
                        ..proto::ListResponse::default()
                    }
                    .encode_to_vec()),
                    "Get" => got(sent).unwrap_or_else(|| message.to_vec()),
                    _ => message.to_vec(),
                };
                [with, more()].concat().into()
            }
        }
    }
}

impl Form {
    fn miscount<T: Clone>(self, items: &mut Vec<T>) {
        let last = items.pop().unwrap();
        if matches!(self, Self::More) {
            items.extend([last.clone(), last]);
        }
    }
}

fn in_another_state() -> proto::Definition {
    let (name, spec) = (IN_ANOTHER_STATE.to_owned(), r#"{"kind":"segment"}"#.to_owned());
    proto::Definition {
        name,
        identity: spec.clone(),
        spec,
        state: 9,
        ..proto::Definition::default()
    }
}

fn got(sent: &Bytes) -> Option<Vec<u8>> {
    let proto::GetRequest { name } = proto::GetRequest::decode(sent.clone()).unwrap();
    let response = match name.as_str() {
        REFUSED => proto::DefinitionResponse {
            error: Some(proto::Error {
                code: "too_blue".into(),
                message: "that is too blue".into(),
                ..proto::Error::default()
            }),
            definition: None,
        },
        IN_ANOTHER_STATE => {
            proto::DefinitionResponse { error: None, definition: Some(in_another_state()) }
        }
        _ => return None,
    };
    Some(response.encode_to_vec())
}

/// Returns the status of a server that cannot reach its store.
fn no_store() -> Status {
    let details = ErrorDetails::with_error_info("UNAVAILABLE", "snowmint", HashMap::new());
    Status::with_error_details(tonic::Code::Unavailable, "the store is not available", details)
}

/// A running server of another version.
pub(crate) struct Between {
    address: String,
    passed: Arc<AtomicUsize>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Between {
    pub(crate) async fn start(form: Form, real: &str, at: &str) -> Self {
        let real = Endpoint::from_shared(format!("http://{real}")).unwrap();
        let real = real.connect().await.unwrap();
        let passed = Arc::<AtomicUsize>::default();
        let proxy_state = ProxyState { form, real, passed: Arc::clone(&passed) };
        let incoming = TcpIncoming::bind(at.parse().unwrap()).unwrap();
        let address = incoming.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel();
        let server = tonic::transport::Server::builder()
            .add_service(Named::<true>(proxy_state.clone()))
            .add_service(Named::<false>(proxy_state));
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            server.serve_with_incoming_shutdown(incoming, stopped).await.unwrap();
        });
        Self { address, passed, stop, task }
    }

    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// Returns the number of forwarded calls.
    pub(crate) fn passed(&self) -> usize {
        self.passed.load(Ordering::Relaxed)
    }

    /// Finishes the calls in flight, and ends.
    pub(crate) async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap();
    }
}

#[derive(Clone)]
struct ProxyState {
    form: Form,
    real: Channel,
    passed: Arc<AtomicUsize>,
}

/// One of the two services: the store's, or that for applications.
#[derive(Clone)]
struct Named<const STORE: bool>(ProxyState);

impl NamedService for Named<true> {
    const NAME: &'static str = "snowmint.store.v1.Store";
}

impl NamedService for Named<false> {
    const NAME: &'static str = "snowmint.v1.Mint";
}

type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<const STORE: bool> Service<http::Request<tonic::body::Body>> for Named<STORE> {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Later<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let (proxy_state, path) = (self.0.clone(), request.uri().path().to_owned());
        Box::pin(async move {
            if proxy_state.form.lacks(&path) {
                return Ok(Status::unimplemented("").into_http());
            }
            if !STORE && matches!(proxy_state.form, Form::CutOff) {
                return Ok(no_store().into_http());
            }
            let mut grpc = tonic::server::Grpc::new(Raw);
            Ok(grpc.unary(Pass { proxy_state, path }, request).await)
        })
    }
}

/// Forwards one call.
struct Pass {
    proxy_state: ProxyState,
    path: String,
}

impl UnaryService<Bytes> for Pass {
    type Response = Bytes;
    type Future = Later<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (ProxyState { form, real, passed }, path) =
            (self.proxy_state.clone(), self.path.clone());
        Box::pin(async move {
            let (metadata, _, message) = request.into_parts();
            let message = form.sent(&path, message);
            let sent = Request::from_parts(metadata, Extensions::default(), message.clone());
            let mut grpc = tonic::client::Grpc::new(real);
            grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
            let response = grpc.unary(sent, PathAndQuery::try_from(&path).unwrap(), Raw).await?;
            passed.fetch_add(1, Ordering::Relaxed);
            let (metadata, response, more) = response.into_parts();
            let response = form.altered(&path, &message, response);
            Ok(Response::from_parts(metadata, response, more))
        })
    }
}

/// Codec that keeps messages as bytes.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
