//! Load over RESP: `INCR source`, or `MINT source COUNT` for several IDs, in pipelines.

use std::cell::RefCell;
use std::io::Write as _;

use super::observations::{LoadRequest, Observations};
use super::server::BenchServer;
use super::stream::Stream;
use super::work::BenchWork;

/// The longest string in a reply: IDs and errors are short.
const BULK_BYTES_MAX: usize = 64 * 1024;

pub(super) struct Resp {
    stream: Stream,
    /// `source`, or `source:key`.
    name: String,
}

/// One piece of a reply.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    /// Number of pieces that follow.
    Array(usize),
    Integer(u64),
    Text(&'a str),
    Error(&'a str),
}

impl Resp {
    pub(super) async fn open(server: &BenchServer, work: &BenchWork) -> Result<Self, String> {
        let name = match &work.key {
            Some(key) => format!("{}:{key}", work.source),
            None => work.source.clone(),
        };
        let mut line = Self { stream: Stream::open(server).await?, name };
        if let Some(token) = server.token() {
            line.show(token).await?;
        }
        Ok(line)
    }

    /// Authenticates the connection.
    async fn show(&mut self, token: &str) -> Result<(), String> {
        let bytes = token.len();
        // Writing to memory cannot fail.
        let _ = write!(self.stream.output, "*2\r\n$4\r\nAUTH\r\n${bytes}\r\n{token}\r\n");
        self.stream.send().await?;
        loop {
            let Some((piece, bytes)) = next(self.stream.unused())? else {
                self.stream.read().await?;
                continue;
            };
            let known = match piece {
                Piece::Error(error) => Err(format!("server rejected the token: {error}")),
                _ => Ok(()),
            };
            self.stream.use_up(bytes);
            return known;
        }
    }

    /// Sends all requests, and reads a reply to each. `done` counts the replies.
    pub(super) async fn round(
        &mut self,
        round: &[LoadRequest],
        observations: &RefCell<Observations>,
        done: &mut usize,
    ) -> Result<(), String> {
        for LoadRequest { count, .. } in round {
            command(&mut self.stream.output, &self.name, *count);
        }
        self.stream.send().await?;
        for load_request in round {
            let mut left = 1_usize;
            let mut error_text = None;
            while left > 0 {
                let bytes = loop {
                    let Some((piece, bytes)) = next(self.stream.unused())? else {
                        self.stream.read().await?;
                        continue;
                    };
                    left -= 1;
                    match piece {
                        Piece::Array(pieces) => left = pieces,
                        Piece::Integer(id) => observations.borrow_mut().number(id),
                        Piece::Text(id) => observations.borrow_mut().text(id),
                        Piece::Error(error) => error_text = Some(error.to_owned()),
                    }
                    break bytes;
                };
                self.stream.use_up(bytes);
            }
            let mut observations = observations.borrow_mut();
            match error_text {
                None => observations.responded(*load_request),
                Some(error) => {
                    let (code, message) = error.split_once(' ').unwrap_or((&error, ""));
                    observations.refused(code, message);
                }
            }
            *done += 1;
        }
        Ok(())
    }
}

/// Writes the command for `count` IDs.
fn command(output: &mut Vec<u8>, name: &str, count: u32) {
    let bytes = name.len();
    // Writing to memory cannot fail.
    let _ = if count == 1 {
        write!(output, "*2\r\n$4\r\nINCR\r\n${bytes}\r\n{name}\r\n")
    } else {
        let count = count.to_string();
        let digits = count.len();
        write!(output, "*3\r\n$4\r\nMINT\r\n${bytes}\r\n{name}\r\n${digits}\r\n{count}\r\n")
    };
}

/// Returns the piece at the start of these bytes and its length, once it is complete.
fn next(bytes: &[u8]) -> Result<Option<(Piece<'_>, usize)>, String> {
    let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
        return if bytes.len() > BULK_BYTES_MAX { Err(odd(bytes)) } else { Ok(None) };
    };
    let line = bytes.get(..end).and_then(|line| line.strip_suffix(b"\r"));
    let line = line.and_then(|line| std::str::from_utf8(line).ok()).ok_or_else(|| odd(bytes))?;
    let after = end + 1;
    let (kind, rest) = line.split_at_checked(1).ok_or_else(|| odd(bytes))?;
    let number = || rest.parse::<usize>().map_err(|_| odd(bytes));
    let piece = match kind {
        ":" => Piece::Integer(rest.parse().map_err(|_| odd(bytes))?),
        "-" => Piece::Error(rest),
        "+" => Piece::Text(rest),
        "*" => Piece::Array(number()?),
        "$" => {
            let length = number()?;
            if length > BULK_BYTES_MAX {
                return Err(odd(bytes));
            }
            let (text_end, whole) = (after + length, after + length + 2);
            let Some(text) = bytes.get(after..text_end).filter(|_| bytes.len() >= whole) else {
                return Ok(None);
            };
            let text = std::str::from_utf8(text).map_err(|_| odd(bytes))?;
            return Ok(Some((Piece::Text(text), whole)));
        }
        _ => return Err(odd(bytes)),
    };
    Ok(Some((piece, after)))
}

fn odd(bytes: &[u8]) -> String {
    let begin = bytes.get(..bytes.len().min(40)).unwrap_or_default();
    format!("reply is not RESP: {}", begin.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_piece_by_piece() {
        for (text, piece) in [
            (":42\r\n", Piece::Integer(42)),
            ("+OK\r\n", Piece::Text("OK")),
            ("$4\r\n01AR\r\n", Piece::Text("01AR")),
            ("-TRYAGAIN later\r\n", Piece::Error("TRYAGAIN later")),
            ("*3\r\n", Piece::Array(3)),
        ] {
            let more = format!("{text}:7\r\n");
            assert_eq!(next(more.as_bytes()), Ok(Some((piece, text.len()))), "{text}");
            for end in 0..text.len() {
                assert_eq!(next(&text.as_bytes()[..end]), Ok(None), "{text} to {end}");
            }
        }
        for text in ["HTTP/1.1 400\r\n", ":x\r\n", "$99999999\r\n", "*-1\r\n", "\r\n", "\n"] {
            assert!(next(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn commands_equal_those_of_redis_clients() {
        let mut output = Vec::new();
        command(&mut output, "default", 1);
        command(&mut output, "c:k", 12);
        let expected =
            "*2\r\n$4\r\nINCR\r\n$7\r\ndefault\r\n*3\r\n$4\r\nMINT\r\n$3\r\nc:k\r\n$2\r\n12\r\n";
        assert_eq!(String::from_utf8(output).unwrap(), expected);
    }
}
