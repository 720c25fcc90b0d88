//! gRPC with a real client and with curl, on one server and on several.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use snowmint_wire::grpc::mint_client::MintClient;
use snowmint_wire::grpc::{BoundRequest, MintRequest, MintStreamRequest, SERVICE};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::server::{Folder, Server, client};

/// Lease of section owners.
const LEASE_MS: u64 = 4_000;
/// Generous time limit: these machines are noisy.
const TIMEOUT: Duration = Duration::from_secs(60);

async fn channel(server: &Server) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{}", server.http)).unwrap();
    endpoint.timeout(TIMEOUT).connect().await.unwrap()
}

pub(super) async fn mint(
    server: &Server,
    source: &str,
    key: Option<&str>,
    count: u64,
) -> Result<Vec<u64>, Status> {
    let key = key.map(str::to_owned);
    let request = MintRequest { source: source.into(), count: Some(count), key };
    let response = MintClient::new(channel(server).await).mint(request).await?;
    Ok(response.into_inner().ids)
}

/// Mints, and repeats failed requests: servers that share a source may have to agree on its owner
/// first.
async fn mint_in_the_end(server: &Server, source: &str, key: Option<&str>, count: u64) -> Vec<u64> {
    let until = Instant::now() + TIMEOUT;
    loop {
        match mint(server, source, key, count).await {
            Ok(ids) => return ids,
            Err(status) => {
                assert_eq!(status.code(), Code::Unavailable, "{status:?}");
                assert!(Instant::now() < until, "{source} {key:?}: {status:?}");
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Mints `total` numbers of a key in one stream. Repeats a stream that breaks off because another
/// server owns the key now.
async fn stream_in_the_end(server: &Server, source: &str, key: &str, total: u64) -> Vec<u64> {
    let until = Instant::now() + TIMEOUT;
    loop {
        let key = Some(key.to_owned());
        let request = MintStreamRequest { source: source.into(), total, key };
        match stream(server, request).await {
            Ok(ids) => return ids,
            Err(status) => {
                assert_eq!(status.code(), Code::Unavailable, "{status:?}");
                assert!(Instant::now() < until, "{source}: {status:?}");
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn stream(server: &Server, request: MintStreamRequest) -> Result<Vec<u64>, Status> {
    let mut client = MintClient::new(channel(server).await);
    let mut messages = client.mint_stream(request).await?.into_inner();
    let mut ids = Vec::new();
    while let Some(message) = messages.message().await? {
        ids.extend(message.ids);
    }
    Ok(ids)
}

#[tokio::test]
async fn grpc_is_spoken_on_the_port_of_http() {
    let folder = Folder::new("grpc");
    let server = Server::start(&["--data-dir", folder.path().to_str().unwrap()], &[]);
    server.ready();
    assert_eq!(mint(&server, "numbers", None, 3).await.unwrap(), [1, 2, 3]);
    let (_, next) = server.get("/v1/ids/numbers");
    // On a busy machine a fetch may count as failed, which leaves a gap.
    assert!(next["ids"][0].as_str().unwrap().parse::<u64>().unwrap() > 3, "{next}");
    let mut health = HealthClient::new(channel(&server).await);
    // A fetch that counts as failed takes readiness away until the next one.
    let until = Instant::now() + TIMEOUT;
    loop {
        let check_request = HealthCheckRequest { service: SERVICE.into() };
        let status = health.check(check_request).await.unwrap().into_inner().status();
        if status == ServingStatus::Serving {
            break;
        }
        assert!(Instant::now() < until, "{status:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let unknown = mint(&server, "absent", None, 1).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    assert_eq!(server.stop(), 0);
}

/// Bytes from the documents of gRPC, sent by a client without our code.
#[test]
fn curl_speaks_grpc_too() {
    let folder = Folder::new("grpc-curl");
    let server = Server::start(&["--data-dir", folder.path().to_str().unwrap()], &[]);
    server.ready();
    let call = |name: &str, message: &[u8]| {
        let [sent, head, body] = ["sent", "head", "body"].map(|part| folder.join(part));
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        std::fs::write(&sent, [&[0][..], &length, message].concat()).unwrap();
        let data = format!("@{}", sent.display());
        let url = server.url(&format!("/snowmint.v1.Mint/{name}"));
        let headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"];
        let files = ["-D", head.to_str().unwrap(), "-o", body.to_str().unwrap()];
        let how = ["-sS", "--http2-prior-knowledge", "--max-time", "60", "--data-binary", &data];
        client("curl", &[&how[..], &headers, &files, &[&url]].concat());
        (std::fs::read_to_string(head).unwrap(), std::fs::read(body).unwrap_or_default())
    };
    // Field 1 is the text "numbers", field 2 the number 2.
    let (head, body) = call("Mint", b"\x0a\x07numbers\x10\x02");
    assert!(head.starts_with("HTTP/2 200"), "{head}");
    assert!(head.contains("grpc-status: 0"), "{head}");
    // The message has 18 bytes; field 1 is packed, with 16 bytes for two numbers of eight.
    let mut expected = vec![0, 0, 0, 0, 18, 0x0a, 16];
    expected.extend([1_u64, 2].map(u64::to_le_bytes).concat());
    assert_eq!(body, expected);
    let (head, _) = call("Mint", b"\x0a\x06absent");
    assert!(head.contains("grpc-status: 5"), "{head}");
    let (head, _) = call("Mint", b"\xff\xff\xff");
    assert!(head.contains("grpc-status: 3"), "{head}");
    assert_eq!(server.stop(), 0);
}

#[tokio::test]
async fn a_stream_ends_with_a_reason_when_the_server_stops() {
    let folder = Folder::new("grpc-stop");
    let server = Server::start(&["--data-dir", folder.path().to_str().unwrap()], &[]);
    server.ready();
    let mut client = MintClient::new(channel(&server).await);
    let request = MintStreamRequest { source: "numbers".into(), total: 900_000_000, key: None };
    let mut messages = client.mint_stream(request).await.unwrap().into_inner();
    assert_eq!(messages.message().await.unwrap().unwrap().ids[0], 1);
    let stopped = std::thread::spawn(move || server.stop());
    let end = loop {
        match messages.message().await {
            Ok(message) => assert!(message.is_some(), "it ended as if it had sent all"),
            Err(status) => break status,
        }
    };
    assert_eq!(end.code(), Code::Unavailable, "{end:?}");
    assert!(end.message().contains("server is stopping"), "{end:?}");
    assert_eq!(stopped.join().unwrap(), 0);
}

fn start(folder: &Folder, number: usize) -> Server {
    let text = format!(
        "[sources.messages]\nkind = \"counter\"\n[sources.orders]\norder = \"global\"\n\
         [counters]\nlease = \"{LEASE_MS}ms\"\n"
    );
    Server::sharing(folder, number, &text)
}

/// Each number of a key is greater than the one before, with any server and any section owner.
#[tokio::test]
async fn three_servers_forward_counters_and_global_order() {
    let folder = Folder::new("grpc-shared");
    let mut servers: Vec<_> = (0..3).map(|number| start(&folder, number)).collect();
    let keys: Vec<String> = (0..20).map(|number| format!("user/{number} ü")).collect();
    let mut history = BTreeMap::new();
    // A server acquires sections when it gets requests for keys.
    let until = Instant::now() + TIMEOUT;
    while !servers.iter().all(|server| server.sample("snowmint_sections") > 0.0) {
        assert!(Instant::now() < until, "some have no keys");
        for key in &keys {
            let response = mint_in_the_end(&servers[0], "messages", Some(key), 1).await;
            history.insert(key.clone(), response[0]);
        }
    }
    let mut ordered = 0;
    for round in 0..3 {
        for (key, server) in keys.iter().flat_map(|key| servers.iter().map(move |s| (key, s))) {
            let before = history.get(key).copied().unwrap_or(0);
            let response = mint_in_the_end(server, "messages", Some(key), 2).await;
            assert!(
                response.len() == 2 && before < response[0] && response[0] < response[1],
                "{key}"
            );
            history.insert(key.clone(), response[1]);
            let next = mint_in_the_end(server, "orders", None, 1).await[0];
            assert!(next > ordered, "{next} after {ordered}");
            ordered = next;
        }
        // Every server reports the same bound.
        for (key, server) in keys.iter().zip(servers.iter().cycle()) {
            let bound = BoundRequest { source: "messages".into(), key: key.clone() };
            let until = Instant::now() + TIMEOUT;
            let bound = loop {
                let mut client = MintClient::new(channel(server).await);
                match client.bound(bound.clone()).await {
                    Ok(bound) => break bound.into_inner().bound,
                    Err(status) => assert!(Instant::now() < until, "{key}: {status:?}"),
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            };
            assert!(bound >= history[key], "{key}: {bound} below {}", history[key]);
        }
        if round == 1 {
            servers.remove(0).kill();
        }
    }
    // A stream of one key is forwarded to the section owner, message by message.
    let ids = stream_in_the_end(&servers[0], "messages", &keys[0], 5_500).await;
    assert_eq!(ids.len(), 5_500);
    assert!(ids[0] > history[&keys[0]] && ids.is_sorted_by(|one, next| one < next));
    for server in servers {
        assert_eq!(server.stop(), 0);
    }
}
