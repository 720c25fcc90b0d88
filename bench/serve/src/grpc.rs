//! Calls over gRPC, compared with tonic that returns ready-made messages. The client is the same.

use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use http::uri::PathAndQuery;
use snowmint_bench_servers::{Plan, Snowmint, WIDE, assert_distinct, median, rounds, start_floor};
use snowmint_wire::grpc::mint_client::MintClient;
use snowmint_wire::grpc::{MintRequest, MintStreamRequest};
use tokio::runtime::Runtime;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstEncoder;

use crate::table::{Sample, Table, Wanted, cpu};

/// IDs per stream.
const TOTAL: u64 = 1_000_000;
/// Path of the streaming method.
const STREAM: &str = "/snowmint.v1.Mint/MintStream";

/// Concurrent callers, the connections that they share, and the IDs per call.
#[derive(Clone, Copy)]
struct Load {
    connections: usize,
    callers: usize,
    ids: u64,
    call: Call,
}

#[derive(Clone, Copy)]
enum Call {
    Mint,
    Stream,
}

const ONE: Load = Load { connections: 1, callers: 1, ids: 1, call: Call::Mint };
const BATCHES: Load = Load { connections: 4, callers: 64, ids: 100, call: Call::Mint };
const STREAMS: Load = Load { connections: 2, callers: 4, ids: TOTAL, call: Call::Stream };

pub fn run(plan: &Plan, table: &mut Table) {
    let ours = Snowmint::start(&plan.binary, WIDE);
    let (floor, floor_port) = start_floor("grpc");
    let servers = [(&*ours, ours.http), (&floor, floor_port)];
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(plan.threads).enable_all().build().expect("a runtime");
    for load in [ONE, BATCHES, STREAMS] {
        check(&runtime, load, ours.http);
    }
    let length = Duration::from_secs(plan.much(3, 1));
    let measure = |load: Load| {
        rounds(plan.much(15, 1), &servers, |&(server, port)| {
            Sample::of(server, || call_rate(&runtime, load, port, length))
        })
    };

    let found = measure(ONE);
    let us = |of: &[Sample]| of.iter().map(|it| 1e6 / it.rate).collect::<Vec<_>>();
    let (one, other) = (us(&found[0]), us(&found[1]));
    let ratio = snowmint_bench_servers::ratio(&one, &other);
    let both = cpu([&found[0], &found[1]]);
    let shown = format!("{ratio:.2}: {:.0} us against {:.0}; {both}", median(one), median(other));
    let name = "gRPC Mint of 1, one in flight, time over bare tonic";
    table.row(name, ratio, shown, Wanted::Most(1.15), "");

    for (load, name, wanted) in [
        (BATCHES, "gRPC Mint of 100, 64 in flight, 4 connections", 5.5),
        (STREAMS, "gRPC MintStream of 1,000,000, 4 at once, 2 connections", 200.0),
    ] {
        let found = measure(load);
        let [one, other] = [0, 1].map(|at: usize| {
            median(found[at].iter().map(|it| it.rate * load.ids as f64 / 1e6).collect())
        });
        let both = cpu([&found[0], &found[1]]);
        let shown = format!("{one:.1} M IDs/s; bare tonic {other:.1} M; {both} a call");
        table.row(name, one, shown, Wanted::Least(wanted), " M IDs/s");
    }
}

async fn connect(port: u16) -> Channel {
    let endpoint = Endpoint::try_from(format!("http://127.0.0.1:{port}")).expect("an address");
    endpoint.tcp_nodelay(true).connect().await.expect("the server listens")
}

/// Returns the number of calls that were started within `length` and completed.
fn call_rate(runtime: &Runtime, load: Load, port: u16, length: Duration) -> f64 {
    let callers = callers(runtime, load, port, move |channel| async move {
        let (begun, mut count) = (Instant::now(), 0_u32);
        while begun.elapsed() < length {
            let ids = call(&channel, load, |_| ()).await;
            assert_eq!(ids, load.ids, "exactly as many IDs as were asked for");
            count += 1;
        }
        count
    });
    callers.into_iter().map(f64::from).sum()
}

/// Checks every ID of some calls.
fn check(runtime: &Runtime, load: Load, port: u16) {
    let all = callers(runtime, load, port, move |channel| async move {
        let mut ids = Vec::new();
        for _ in 0..TOTAL.div_ceil(load.ids).min(1_000) {
            call(&channel, load, |id| ids.push(id)).await;
        }
        ids
    });
    assert_distinct("gRPC", all.concat());
}

/// Returns the results of all callers, which run concurrently.
fn callers<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    runtime: &Runtime,
    load: Load,
    port: u16,
    caller: impl Fn(Channel) -> F,
) -> Vec<T> {
    runtime.block_on(async {
        let mut channels = Vec::new();
        for _ in 0..load.connections {
            channels.push(connect(port).await);
        }
        let callers = channels.iter().cycle().take(load.callers);
        let callers: Vec<_> =
            callers.map(|channel| tokio::spawn(caller(channel.clone()))).collect();
        let mut all = Vec::new();
        for caller in callers {
            all.push(caller.await.expect("a caller ends"));
        }
        all
    })
}

/// Makes one call and passes each ID to `each`. Returns the number of IDs.
async fn call(channel: &Channel, load: Load, mut each: impl FnMut(u64)) -> u64 {
    let source = "wide".to_owned();
    match load.call {
        Call::Mint => {
            let request = MintRequest { source, count: Some(load.ids), key: None };
            let response = MintClient::new(channel.clone()).mint(request).await.expect("IDs");
            let ids = response.into_inner().ids;
            ids.iter().copied().for_each(each);
            ids.len() as u64
        }
        Call::Stream => {
            let request = MintStreamRequest { source, total: load.ids, key: None };
            let mut client = tonic::client::Grpc::new(channel.clone());
            client.ready().await.expect("a connection");
            let path = PathAndQuery::from_static(STREAM);
            let response = client.server_streaming(tonic::Request::new(request), path, Raw).await;
            let (mut messages, mut count) = (response.expect("a stream").into_inner(), 0);
            while let Some(mut ids) = messages.message().await.expect("IDs") {
                count += ids.len() as u64 / 8;
                while ids.has_remaining() {
                    each(ids.get_u64_le());
                }
            }
            count
        }
    }
}

/// Messages of a stream as bytes: the numbers of the first field, which is their only field.
struct Raw;

impl Codec for Raw {
    type Encode = MintStreamRequest;
    type Decode = Bytes;
    type Encoder = ProstEncoder<MintStreamRequest>;
    type Decoder = Self;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = tonic::Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, tonic::Status> {
        let length = message.remaining();
        let mut bytes = message.copy_to_bytes(length);
        assert_eq!(bytes.get_u8(), 1 << 3 | 2, "packed numbers of field 1");
        let mut length = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes.get_u8();
            length |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        assert_eq!(length, bytes.len(), "nothing else");
        Ok(Some(bytes))
    }
}
