//! Frames of HTTP/2 by hand, so that they can be wrong in each way that RFC 9113 names.

use fastrand::Rng;

use crate::dice;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Returns the bytes of one connection: several streams, some of them whole, some broken off or
/// reset.
pub fn connection(rng: &mut Rng, headers: &mut dyn FnMut(&mut Rng) -> Request) -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    frame(&mut out, SETTINGS, 0, 0, &settings(rng));
    for number in 0..rng.u32(1..12) {
        let request = headers(rng);
        stream(rng, &mut out, 1 + 2 * number, request);
        match rng.u8(..12) {
            0 => frame(&mut out, PING, 0, 0, &rng.u64(..).to_be_bytes()),
            1 => frame(&mut out, WINDOW, 0, number, &rng.u32(..).to_be_bytes()),
            2 => {
                let (kind, flags, id, body) =
                    (rng.u8(..), rng.u8(..), rng.u32(..) >> 1, dice::bytes(rng, 60));
                frame(&mut out, kind, flags, id, &body);
            }
            _ => {}
        }
    }
    out
}

/// Returns the bytes of a connection with one well-formed request.
pub fn single(request: &Request) -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    frame(&mut out, SETTINGS, 0, 0, &[]);
    let mut block = Vec::new();
    for (name, value) in &request.headers {
        literal(&mut block, name, value);
    }
    frame(&mut out, HEADERS, END_HEADERS, 1, &block);
    frame(&mut out, DATA, END_STREAM, 1, &request.body);
    out
}

/// Returns the data of the response to [such a request](single), once all of it is there.
pub fn response(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    loop {
        let (&[one, two, three, kind, flags, ..], rest) = bytes.split_first_chunk::<9>()?;
        let length = u32::from_be_bytes([0, one, two, three]) as usize;
        let (payload, rest) = rest.split_at_checked(length)?;
        if kind == DATA {
            data.extend(payload);
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            return Some(data);
        }
        bytes = rest;
    }
}

/// Headers and body of one request.
pub struct Request {
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

fn stream(rng: &mut Rng, out: &mut Vec<u8>, id: u32, request: Request) {
    let mut block = Vec::new();
    for (name, value) in &request.headers {
        literal(&mut block, name, value);
    }
    if rng.u8(..15) == 0 {
        dice::spoil(rng, &mut block);
    }
    let whole = rng.u8(..12) > 0;
    let end = if request.body.is_empty() && whole { END_STREAM } else { 0 };
    if rng.u8(..8) == 0 {
        let (first, rest) = block.split_at(block.len() / 2);
        frame(out, HEADERS, end, id, first);
        if rng.u8(..4) > 0 {
            frame(out, CONTINUATION, END_HEADERS, id, rest);
        }
    } else {
        frame(out, HEADERS, end | END_HEADERS, id, &block);
    }
    let pieces = rng.usize(1..4);
    let size = (request.body.len() / pieces).clamp(1, 16_000);
    for piece in request.body.chunks(size) {
        frame(out, DATA, 0, id, piece);
    }
    if !request.body.is_empty() && whole {
        frame(out, DATA, END_STREAM, id, &[]);
    }
    if rng.u8(..6) == 0 {
        frame(out, RESET, 0, id, &8_u32.to_be_bytes());
    }
}

fn settings(rng: &mut Rng) -> Vec<u8> {
    let mut all = Vec::new();
    for _ in 0..rng.u8(..4) {
        let key = if rng.u8(..8) == 0 { rng.u16(..) } else { rng.u16(1..7) };
        let value = match key {
            2 => rng.u32(..2),
            5 => rng.u32(16_384..1 << 24),
            4 => rng.u32(..) >> 1,
            _ => rng.u32(..),
        };
        all.extend(key.to_be_bytes());
        all.extend(value.to_be_bytes());
    }
    all
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, id: u32, body: &[u8]) {
    let body = &body[..body.len().min((1 << 24) - 1)];
    let length = u32::try_from(body.len()).expect("24 bits").to_be_bytes();
    out.extend(&length[1..]);
    out.extend([kind, flags]);
    out.extend(id.to_be_bytes());
    out.extend(body);
}

/// Appends a header field that no table keeps (RFC 7541, section 6.2.2), without Huffman coding.
fn literal(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(0);
    for text in [name, value] {
        integer(out, text.len());
        out.extend(text.as_bytes());
    }
}

/// Appends an integer with a prefix of seven bits (RFC 7541, section 5.1).
fn integer(out: &mut Vec<u8>, value: usize) {
    if value < 127 {
        out.push(value as u8);
        return;
    }
    out.push(127);
    let mut rest = value - 127;
    while rest >= 128 {
        out.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    out.push(rest as u8);
}
