//! Commands of RESP: those that the server has and some of Redis, with any arguments.

use fastrand::Rng;

use crate::dice;

const COMMANDS: &[&str] = &[
    "AUTH",
    "CLIENT",
    "CLUSTER",
    "COMMAND",
    "CONFIG",
    "DECODE",
    "DISCARD",
    "ECHO",
    "EXEC",
    "GET",
    "HELLO",
    "INCR",
    "INCRBY",
    "INFO",
    "MINT",
    "MULTI",
    "PING",
    "QUIT",
    "RESET",
    "SELECT",
    "SET",
    "EVAL",
    "SUBSCRIBE",
    "POST",
    "Host:",
];
const WORDS: &[&str] = &[
    "2",
    "3",
    "AUTH",
    "SETNAME",
    "COUNT",
    "FORMAT",
    "base62",
    "LIST",
    "INFO",
    "SLOTS",
    "NODES",
    "DOCS",
    "GET",
    "maxclients",
    "SETINFO",
    "ID",
    "KEY",
];

/// Returns a pipeline of commands, after a login.
pub fn pipeline(rng: &mut Rng, token: &str) -> Vec<u8> {
    let mut out = Vec::new();
    if rng.u8(..10) > 0 {
        command(&mut out, &["AUTH".as_bytes(), token.as_bytes()]);
    }
    for _ in 0..rng.usize(1..30) {
        let mut parts = vec![dice::one_of(rng, COMMANDS).as_bytes().to_vec()];
        for _ in 0..rng.usize(..4) {
            parts.push(match rng.u8(..4) {
                0 => dice::number(rng).into_bytes(),
                1 => dice::one_of(rng, WORDS).as_bytes().to_vec(),
                2 => dice::bytes(rng, 100),
                _ => dice::name(rng).into_bytes(),
            });
        }
        if rng.u8(..10) == 0 {
            out.extend(parts.join(&b' '));
            out.extend(b"\r\n");
        } else {
            command(&mut out, &parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
    }
    out
}

fn command(out: &mut Vec<u8>, parts: &[&[u8]]) {
    out.extend(format!("*{}\r\n", parts.len()).bytes());
    for part in parts {
        out.extend(format!("${}\r\n", part.len()).bytes());
        out.extend(*part);
        out.extend(b"\r\n");
    }
}
