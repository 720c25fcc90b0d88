//! The floors: bare responders on the libraries of a server.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use snowmint_wire::grpc::{MintRequest, MintResponse, MintStreamRequest, MintStreamResponse};
use tokio::net::TcpListener;
use tonic::codegen::BoxFuture;
use tonic::server::{Grpc, NamedService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_prost::ProstCodec;

/// ID that is as long as ours.
const ID: u64 = 100_000_000_000_000_000;
const IDS: &[u8] = b"{\"ids\":[\"100000000000000000\"]}";

/// Runs the floor with this name (`http` or `grpc`), for ever.
pub fn serve(name: &str) {
    // The same kind of runtime as a server's.
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        println!("{}", listener.local_addr().expect("a bound port").port());
        match name {
            "http" => http(listener).await,
            "grpc" => grpc(listener).await,
            other => panic!("there is no floor {other:?}"),
        }
    });
}

/// Serves over bare hyper the bytes that a server returns for one ID.
async fn http(listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        stream.set_nodelay(true).expect("a socket");
        let handler = service_fn(|_: Request<Incoming>| async {
            let mut response = Response::new(Full::new(Bytes::from_static(IDS)));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            Ok::<_, Infallible>(response)
        });
        tokio::spawn(async move {
            let builder = http1::Builder::new();
            // An error means that the client hung up.
            let _ = builder.serve_connection(TokioIo::new(stream), handler).await;
        });
    }
}

/// Serves over bare tonic ready-made messages with the requested number of IDs.
async fn grpc(listener: TcpListener) {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Server::builder().add_service(Bare).serve_with_incoming(incoming).await.expect("it serves");
}

#[derive(Clone)]
struct Bare;

impl NamedService for Bare {
    const NAME: &'static str = snowmint_wire::grpc::SERVICE;
}

impl tower::Service<Request<tonic::body::Body>> for Bare {
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        Box::pin(async move {
            if request.uri().path().ends_with("MintStream") {
                let codec = ProstCodec::<MintStreamResponse, MintStreamRequest>::default();
                let handler =
                    tower::service_fn(|message: tonic::Request<MintStreamRequest>| async move {
                        let messages = message.into_inner().total / CHUNK;
                        let ready =
                            MintStreamResponse { ids: vec![ID; CHUNK as usize], texts: Vec::new() };
                        let messages = stream::iter(0..messages).map(move |_| Ok(ready.clone()));
                        Ok(tonic::Response::new(messages))
                    });
                return Ok(Grpc::new(codec).server_streaming(handler, request).await);
            }
            let codec = ProstCodec::<MintResponse, MintRequest>::default();
            let handler = tower::service_fn(|message: tonic::Request<MintRequest>| async move {
                let count = message.into_inner().count.unwrap_or(1);
                let ids = vec![ID; usize::try_from(count).unwrap_or(0)];
                Ok(tonic::Response::new(MintResponse { ids, texts: Vec::new() }))
            });
            Ok(Grpc::new(codec).unary(handler, request).await)
        })
    }
}

/// IDs per message of a stream.
const CHUNK: u64 = 1_000;
