//! Clients of real servers, which get numbers, errors, or no response.

use std::io::{BufRead as _, BufReader, Error, ErrorKind, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::http;

/// Longest wait for a response. It is shorter than some pauses: then the client sends a new
/// request.
const RESPONSE_WAIT_MAX: Duration = Duration::from_secs(3);

/// Response to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Ordered numbers: the first and the last.
    Numbers(u64, u64),
    /// Redirect to the owner at this address.
    Moved(String),
    /// Error: its code, and the delay of a retry, if it may help.
    Refused { code: String, retry_ms: Option<u64> },
}

/// A RESP connection.
#[derive(Debug)]
pub(crate) struct Resp(BufReader<TcpStream>);

impl Resp {
    pub(crate) fn connect(address: &str) -> std::io::Result<Self> {
        let place = address.parse().map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        let stream = TcpStream::connect_timeout(&place, RESPONSE_WAIT_MAX)?;
        stream.set_read_timeout(Some(RESPONSE_WAIT_MAX))?;
        stream.set_write_timeout(Some(RESPONSE_WAIT_MAX))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends commands in one go, and returns a reply for each.
    pub(crate) fn ask(&mut self, commands: &[Vec<&str>]) -> std::io::Result<Vec<Reply>> {
        let mut sent = String::new();
        for words in commands {
            sent.push_str(&format!("*{}\r\n", words.len()));
            words.iter().for_each(|word| sent.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        }
        self.0.get_mut().write_all(sent.as_bytes())?;
        commands.iter().map(|_| self.reply()).collect()
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 || !line.ends_with("\r\n") {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn reply(&mut self) -> std::io::Result<Reply> {
        let line = self.line()?;
        let (kind, rest) = line.split_at(1);
        Ok(match kind {
            ":" => Reply::Numbers(number(rest), number(rest)),
            // Replies to `MINT source count` have ordered numbers.
            "*" => {
                let mut numbers = Vec::new();
                for _ in 0..number(rest) {
                    numbers.push(number(self.line()?.trim_start_matches(':')));
                }
                in_order(&numbers)
            }
            "-" => match rest.split(' ').collect::<Vec<_>>().as_slice() {
                ["MOVED", _, address] => Reply::Moved((*address).to_owned()),
                words => {
                    let code = words.first().copied().unwrap_or_default().to_owned();
                    Reply::Refused { code, retry_ms: None }
                }
            },
            _ => panic!("{line:?} is not a reply"),
        })
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// Returns the first and the last of numbers that must rise.
fn in_order(numbers: &[u64]) -> Reply {
    assert!(numbers.is_sorted_by(|one, next| one < next), "not in order: {numbers:?}");
    Reply::Numbers(numbers[0], numbers[numbers.len() - 1])
}

/// HTTP client that keeps its connections.
#[derive(Debug)]
pub(crate) struct Http(http::Http);

impl Http {
    pub(crate) fn new() -> Self {
        Self::within(RESPONSE_WAIT_MAX)
    }

    /// Returns a client that waits for this time.
    pub(crate) fn within(wait_max: Duration) -> Self {
        Self(http::Http::within(wait_max))
    }

    /// Returns a response and its status, if there is a response.
    pub(crate) fn get(&self, url: &str) -> Option<(u16, Value)> {
        let (status, text) = self.0.get(url)?;
        Some((status, serde_json::from_str(&text).ok()?))
    }

    /// Returns a page of text.
    pub(crate) fn page(&self, url: &str) -> Option<String> {
        self.0.get(url).map(|(_, text)| text)
    }

    /// Requests numbers that must rise.
    pub(crate) fn numbers(&self, url: &str) -> Option<Reply> {
        let (status, body) = self.get(url)?;
        if status != 200 {
            let error = &body["error"];
            let code = error["code"].as_str().unwrap_or_default().to_owned();
            return Some(Reply::Refused { code, retry_ms: error["retry_after_ms"].as_u64() });
        }
        let ids = body["ids"].as_array().unwrap();
        let ids: Vec<_> = ids.iter().map(|id| number(id.as_str().unwrap())).collect();
        Some(in_order(&ids))
    }
}
