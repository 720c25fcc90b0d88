//! Load over HTTP/1.1: `GET /v1/ids/{source}`, any number of requests in flight on one connection.

use std::cell::RefCell;
use std::io::Write as _;

use snowmint_wire::http::{ErrorBody, TEXT};

use super::observations::{LoadRequest, Observations};
use super::server::BenchServer;
use super::stream::Stream;
use super::work::BenchWork;
use crate::client::segment;

/// Largest number of header lines in a response.
const HEADERS_MAX: usize = 64;

/// An HTTP connection. It has no `Debug`, which would show the token.
pub(super) struct Http {
    stream: Stream,
    /// Request text before the number of IDs, and after it.
    begin: String,
    end: String,
}

/// Head of a response.
struct Head {
    status: u16,
    bytes: usize,
    body_bytes: usize,
    closes: bool,
}

impl Http {
    pub(super) async fn open(server: &BenchServer, work: &BenchWork) -> Result<Self, String> {
        let key = work.key.as_deref().map(|key| format!("key={}&", segment(key)));
        let path = format!("/v1/ids/{}?{}count=", segment(&work.source), key.unwrap_or_default());
        let shown = server.bearer().map(|shown| format!("authorization: {shown}\r\n"));
        Ok(Self {
            stream: Stream::open(server).await?,
            begin: format!("GET {path}"),
            end: format!(
                " HTTP/1.1\r\nhost: {}\r\naccept: {TEXT}\r\nuser-agent: snowmint-bench\r\n{}\r\n",
                server.target.address,
                shown.unwrap_or_default()
            ),
        })
    }

    /// Sends all requests, and reads a response to each. `done` counts the responses.
    pub(super) async fn round(
        &mut self,
        round: &[LoadRequest],
        observations: &RefCell<Observations>,
        done: &mut usize,
    ) -> Result<(), String> {
        for load_request in round {
            // Writing to memory cannot fail.
            let _ = write!(self.stream.output, "{}{}{}", self.begin, load_request.count, self.end);
        }
        self.stream.send().await?;
        for load_request in round {
            let head = loop {
                match head_of(self.stream.unused())? {
                    Some(head) => break head,
                    None => self.stream.read().await?,
                }
            };
            let bytes = head.bytes.saturating_add(head.body_bytes);
            while self.stream.unused().len() < bytes {
                self.stream.read().await?;
            }
            let body = self.stream.unused().get(head.bytes..bytes).unwrap_or_default();
            record_response(head.status, body, *load_request, &mut observations.borrow_mut());
            self.stream.use_up(bytes);
            *done += 1;
            if head.closes {
                return Err("server closed the connection".to_owned());
            }
        }
        Ok(())
    }
}

/// Parses the head at the start of these bytes, once it is complete.
fn head_of(bytes: &[u8]) -> Result<Option<Head>, String> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(bytes).map_err(|error| format!("response is not HTTP: {error}"))?;
    let httparse::Status::Complete(bytes) = parsed else { return Ok(None) };
    let header = |name: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.and_then(|header| std::str::from_utf8(header.value).ok())
    };
    let Some(body_bytes) = header("content-length").and_then(|length| length.parse().ok()) else {
        return Err("response has no Content-Length; check the server".to_owned());
    };
    let closes = header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    Ok(Some(Head { status: response.code.unwrap_or(0), bytes, body_bytes, closes }))
}

/// Records a response: IDs, one a line, or an error as JSON.
fn record_response(
    status: u16,
    body: &[u8],
    load_request: LoadRequest,
    observations: &mut Observations,
) {
    let text = String::from_utf8_lossy(body);
    if status == 200 {
        text.lines().for_each(|id| observations.text(id));
        return observations.responded(load_request);
    }
    match serde_json::from_slice(body) {
        Ok(ErrorBody { error }) => observations.refused(&error.code, &error.message),
        Err(_) => observations.refused(&format!("http_{status}"), &text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_when_they_are_complete() {
        let text = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 12\r\n\r\nmore";
        for end in 0..text.len() - 4 {
            assert!(head_of(&text[..end]).unwrap().is_none(), "{end}");
        }
        let head = head_of(text).unwrap().unwrap();
        assert_eq!((head.status, head.bytes, head.body_bytes), (503, text.len() - 4, 12));
        assert!(head.closes);
        assert!(head_of(b"+PONG\r\n").is_err());
        assert!(head_of(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
