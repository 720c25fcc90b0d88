//! Clients of real servers: what they are answered, refused, or not told at all.

use std::io::{BufRead as _, BufReader, Error, ErrorKind, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::http;

/// How long a client waits for an answer. Shorter than some pauses: then it goes and asks anew.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// An answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Numbers, in order: the first and the last.
    Numbers(u64, u64),
    /// Somebody else answers, at this address.
    Moved(String),
    /// Not now, or never: a code, and whether and when to ask again.
    Refused { code: String, retry_ms: Option<u64> },
}

/// A connection that speaks RESP.
#[derive(Debug)]
pub(crate) struct Resp(BufReader<TcpStream>);

impl Resp {
    pub(crate) fn connect(address: &str) -> std::io::Result<Self> {
        let place = address.parse().map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        let stream = TcpStream::connect_timeout(&place, ANSWER_WITHIN)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.set_write_timeout(Some(ANSWER_WITHIN))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends commands in one go, and answers with as many answers.
    pub(crate) fn ask(&mut self, commands: &[Vec<&str>]) -> std::io::Result<Vec<Answer>> {
        let mut sent = String::new();
        for words in commands {
            sent.push_str(&format!("*{}\r\n", words.len()));
            words.iter().for_each(|word| sent.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        }
        self.0.get_mut().write_all(sent.as_bytes())?;
        commands.iter().map(|_| self.answer()).collect()
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 || !line.ends_with("\r\n") {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn answer(&mut self) -> std::io::Result<Answer> {
        let line = self.line()?;
        let (kind, rest) = line.split_at(1);
        Ok(match kind {
            ":" => Answer::Numbers(number(rest), number(rest)),
            // Of `MINT source count`, in order.
            "*" => {
                let mut numbers = Vec::new();
                for _ in 0..number(rest) {
                    numbers.push(number(self.line()?.trim_start_matches(':')));
                }
                in_order(&numbers)
            }
            "-" => match rest.split(' ').collect::<Vec<_>>().as_slice() {
                ["MOVED", _, address] => Answer::Moved((*address).to_owned()),
                words => {
                    let code = words.first().copied().unwrap_or_default().to_owned();
                    Answer::Refused { code, retry_ms: None }
                }
            },
            _ => panic!("{line:?} is no answer"),
        })
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// The first and the last of numbers that must rise.
fn in_order(numbers: &[u64]) -> Answer {
    assert!(numbers.is_sorted_by(|one, next| one < next), "not in order: {numbers:?}");
    Answer::Numbers(numbers[0], numbers[numbers.len() - 1])
}

/// Asks by HTTP. Its connections are kept.
#[derive(Debug)]
pub(crate) struct Http(http::Http);

impl Http {
    pub(crate) fn new() -> Self {
        Self::within(ANSWER_WITHIN)
    }

    /// One that waits for so long.
    pub(crate) fn within(patience: Duration) -> Self {
        Self(http::Http::within(patience))
    }

    /// An answer, if there is one, with the status of HTTP.
    pub(crate) fn get(&self, url: &str) -> Option<(u16, Value)> {
        let (status, text) = self.0.get(url)?;
        Some((status, serde_json::from_str(&text).ok()?))
    }

    /// A page of text.
    pub(crate) fn page(&self, url: &str) -> Option<String> {
        self.0.get(url).map(|(_, text)| text)
    }

    /// Numbers that must rise.
    pub(crate) fn numbers(&self, url: &str) -> Option<Answer> {
        let (status, body) = self.get(url)?;
        if status != 200 {
            let error = &body["error"];
            let code = error["code"].as_str().unwrap_or_default().to_owned();
            return Some(Answer::Refused { code, retry_ms: error["retry_after_ms"].as_u64() });
        }
        let ids = body["ids"].as_array().unwrap();
        let ids: Vec<_> = ids.iter().map(|id| number(id.as_str().unwrap())).collect();
        Some(in_order(&ids))
    }
}
