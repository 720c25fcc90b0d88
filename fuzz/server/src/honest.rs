//! A client that keeps to the protocols, and has the right to mint from one source.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::served::HONEST;

/// Mints once over HTTP and once over RESP; returns the time of the slower. An invalid or late
/// response is an error.
pub async fn round(
    http: SocketAddr,
    resp: SocketAddr,
    wait_max: Duration,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let request = format!(
        "POST /v1/ids/default HTTP/1.1\r\nHost: {http}\r\nAuthorization: Bearer {HONEST}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let by_http =
        ask(http, request.as_bytes(), wait_max, |response| response.contains("\"ids\":[")).await?;
    let command = format!("AUTH {HONEST}\r\nINCR default\r\n");
    let by_resp = ask(resp, command.as_bytes(), wait_max, |response| {
        response.contains("\r\n:") && response.ends_with("\r\n")
    })
    .await?;
    Ok(by_http.max(by_resp))
}

async fn ask(
    address: SocketAddr,
    bytes: &[u8],
    wait_max: Duration,
    good: fn(&str) -> bool,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let start = Instant::now();
    let mut response = Vec::new();
    let whole = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(bytes).await?;
        while !good(&String::from_utf8_lossy(&response)) {
            if stream.read_buf(&mut response).await? == 0 {
                break;
            }
        }
        Ok::<_, std::io::Error>(())
    };
    let done = tokio::time::timeout(wait_max, whole).await;
    let text = String::from_utf8_lossy(&response);
    match done {
        Ok(Ok(())) if good(&text) => Ok(start.elapsed()),
        Ok(result) => {
            Err(format!("an honest request to {address} got {text:?}: {result:?}").into())
        }
        Err(_) => Err(format!(
            "an honest request to {address} has no response after {wait_max:?}: {text:?}"
        )
        .into()),
    }
}
