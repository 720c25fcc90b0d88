//! RESP requests: bytes in, arguments out; redis-protocol is the reference.

use proptest::prelude::*;
use redis_protocol::resp2;
use redis_protocol::resp2::types::OwnedFrame;
use redis_protocol::resp3;
use snowmint_wire::resp::{
    ARGS_MAX, BULK_BYTES_MAX, Encoder, FRAME_BYTES_MAX, INLINE_BYTES_MAX, Next, Parser, Protocol,
    ProtocolError,
};

type Args = Vec<Vec<u8>>;

/// Reads one request from the front of `bytes`. Returns it with its length; `None` when it is not
/// complete.
fn one(parser: &mut Parser, bytes: &[u8]) -> Result<Option<(Args, usize)>, ProtocolError> {
    Ok(match parser.next(bytes)? {
        Next::Incomplete => None,
        Next::Command { command, bytes: used } => {
            assert!(used <= bytes.len());
            Some((command.args().map(<[u8]>::to_vec).collect(), used))
        }
    })
}

fn fresh(bytes: &[u8]) -> Result<Option<(Args, usize)>, ProtocolError> {
    one(&mut Parser::new(), bytes)
}

fn words(words: &[&str]) -> Args {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn whole_requests_are_parsed() {
    let cases: &[(&[u8], Args)] = &[
        (b"*1\r\n$4\r\nPING\r\n", words(&["PING"])),
        (b"*2\r\n$4\r\nINCR\r\n$7\r\ndefault\r\n", words(&["INCR", "default"])),
        (b"*2\r\n$4\r\nECHO\r\n$4\r\na\r\nb\r\n", words(&["ECHO", "a\r\nb"])),
        (b"*1\r\n$0\r\n\r\n", words(&[""])),
        (b"*0\r\n", words(&[])),
        (b"*-1\r\n", words(&[])),
        (b"\r\n", words(&[])),
        (b"\n", words(&[])),
        (b"PING\r\n", words(&["PING"])),
        (b"  MINT\tdefault   3 \n", words(&["MINT", "default", "3"])),
        (b"ECHO \"a b\"\r\n", words(&["ECHO", "a b"])),
        (b"ECHO \"\\x41\\n\\q\\\"\" 'it\\'s \\n'\r\n", words(&["ECHO", "A\nq\"", "it's \\n"])),
        (b"ECHO \"\"\r\n", words(&["ECHO", ""])),
        (b"ECHO ab\"c d\"\r\n", words(&["ECHO", "abc d"])),
    ];
    for (bytes, expected) in cases {
        let shown = bytes.escape_ascii();
        assert_eq!(fresh(bytes).unwrap(), Some((expected.clone(), bytes.len())), "{shown}");
        // All further bytes belong to the next request.
        let longer = [bytes, &b"*1\r\n"[..]].concat();
        assert_eq!(fresh(&longer).unwrap(), Some((expected.clone(), bytes.len())), "{shown}");
        // Every shorter piece is incomplete, not an error.
        for end in 0..bytes.len() {
            assert_eq!(fresh(&bytes[..end]).unwrap(), None, "{shown} cut at {end}");
        }
    }
}

#[test]
fn invalid_request_is_an_error() {
    use ProtocolError::*;
    let cases: &[(&[u8], ProtocolError)] = &[
        (b"*x\r\n", ArrayLength),
        (b"*\r\n", ArrayLength),
        (b"*+1\r\n", ArrayLength),
        (b"*01\r\n", ArrayLength),
        (b"*--1\r\n", ArrayLength),
        (b"*-0\r\n", ArrayLength),
        (b"*1\rx", ArrayLength),
        (b"*1\n", ArrayLength),
        (b"*1025\r\n", ArrayLength),
        (b"*2000000000\r\n", ArrayLength),
        (b"*99999999999", ArrayLength),
        (b"*1\r\n:5\r\n", NotABulk { got: b':' }),
        (b"*1\r\n*1\r\n$1\r\na\r\n", NotABulk { got: b'*' }),
        (b"*1\r\n$-1\r\n", BulkLength),
        (b"*1\r\n$\r\n", BulkLength),
        (b"*1\r\n$16385\r\n", BulkLength),
        (b"*1\r\n$1073741824\r\n", BulkLength),
        (b"*1\r\n$18446744073709551616", BulkLength),
        (b"*1\r\n$1\r\nab\r\n", BulkEnd),
        (b"*1\r\n$1\r\na\n\r", BulkEnd),
        (b"ECHO \"a\r\n", Quotes),
        (b"ECHO \"a\"b\r\n", Quotes),
        (b"ECHO 'a\r\n", Quotes),
        (b"ECHO \"a\\\r\n", Quotes),
    ];
    for (bytes, expected) in cases {
        assert_eq!(fresh(bytes).unwrap_err(), *expected, "{}", bytes.escape_ascii());
        assert!(expected.to_string().starts_with("Protocol error: "));
    }
}

#[test]
fn limits_hold_just_below_at_and_above_them() {
    let array = |args: usize| [format!("*{args}\r\n"), "$0\r\n\r\n".repeat(args)].concat();
    assert_eq!(fresh(array(ARGS_MAX - 1).as_bytes()).unwrap().unwrap().0.len(), ARGS_MAX - 1);
    assert_eq!(fresh(array(ARGS_MAX).as_bytes()).unwrap().unwrap().0.len(), ARGS_MAX);
    assert_eq!(fresh(array(ARGS_MAX + 1).as_bytes()), Err(ProtocolError::ArrayLength));

    let bulk = |len: usize| format!("*1\r\n${len}\r\n{}\r\n", "x".repeat(len));
    assert_eq!(fresh(bulk(BULK_BYTES_MAX).as_bytes()).unwrap().unwrap().0[0].len(), BULK_BYTES_MAX);
    assert_eq!(fresh(bulk(BULK_BYTES_MAX + 1).as_bytes()), Err(ProtocolError::BulkLength));

    let line = |len: usize| format!("{}\n", "x".repeat(len));
    assert_eq!(
        fresh(line(INLINE_BYTES_MAX).as_bytes()).unwrap().unwrap().0[0].len(),
        INLINE_BYTES_MAX
    );
    assert_eq!(fresh(line(INLINE_BYTES_MAX + 1).as_bytes()), Err(ProtocolError::InlineTooLong));
    let unended = "x".repeat(INLINE_BYTES_MAX + 1);
    assert_eq!(fresh(unended.as_bytes()), Err(ProtocolError::InlineTooLong));
    let many = |count: usize| format!("{}\n", "x ".repeat(count));
    assert_eq!(fresh(many(ARGS_MAX).as_bytes()).unwrap().unwrap().0.len(), ARGS_MAX);
    assert_eq!(fresh(many(ARGS_MAX + 1).as_bytes()), Err(ProtocolError::InlineTooLong));

    // Four arguments that fill a frame to the last byte, and one byte more.
    let frame = |last: usize| {
        let big = format!("${BULK_BYTES_MAX}\r\n{}\r\n", "x".repeat(BULK_BYTES_MAX));
        format!("*4\r\n{}${last}\r\n{}\r\n", big.repeat(3), "x".repeat(last))
    };
    let head = frame(10_000).len() - 10_000;
    let last = FRAME_BYTES_MAX - head;
    assert!(last <= BULK_BYTES_MAX);
    assert_eq!(fresh(frame(last).as_bytes()).unwrap().unwrap().1, FRAME_BYTES_MAX);
    assert_eq!(fresh(frame(last + 1).as_bytes()), Err(ProtocolError::FrameTooLong));
}

/// A declared length is rejected when it is read, long before its bytes arrive.
#[test]
fn a_gigabyte_is_refused_at_its_declaration() {
    let mut parser = Parser::new();
    assert_eq!(one(&mut parser, b"*1\r\n$1073741824\r"), Ok(None));
    assert_eq!(one(&mut parser, b"*1\r\n$1073741824\r\n"), Err(ProtocolError::BulkLength));
}

/// The parser reads each byte a bounded number of times, however the bytes arrive.
#[test]
fn a_request_in_single_bytes_is_understood_once() {
    let mut parser = Parser::new();
    let args = words(&["MINT", "default", "100"]);
    let bytes = encoded(&args);
    for end in 0..bytes.len() {
        assert_eq!(one(&mut parser, &bytes[..end]), Ok(None));
    }
    assert_eq!(one(&mut parser, &bytes), Ok(Some((args, bytes.len()))));
}

fn encoded(args: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, Protocol::Resp2);
    encoder.array(args.len());
    for arg in args {
        encoder.bulk(arg);
    }
    out
}

/// Returns the request that redis-protocol reads from the front of `bytes`, if it is a flat array
/// of strings.
fn oracle(bytes: &[u8]) -> Option<(Args, usize)> {
    let (frame, used) = resp2::decode::decode(bytes).ok()??;
    let OwnedFrame::Array(items) = frame else { return None };
    let args = items.into_iter().map(|item| match item {
        OwnedFrame::BulkString(bytes) => Some(bytes),
        _ => None,
    });
    Some((args.collect::<Option<_>>()?, used))
}

fn args() -> impl Strategy<Value = Args> {
    let arg = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..24),
        1 => prop::collection::vec(any::<u8>(), 200..2000),
        2 => Just(b"INCR".to_vec()),
    ];
    prop::collection::vec(arg, 1..12)
}

proptest! {
    /// A pipeline cut anywhere gives the same arguments as redis-protocol.
    #[test]
    fn parser_agrees_with_redis_protocol(commands in prop::collection::vec(args(), 1..6), cuts in prop::collection::vec(1usize..40, 1..60)) {
        let bytes: Vec<u8> = commands.iter().flat_map(|command| encoded(command)).collect();
        let mut parser = Parser::new();
        let mut cuts = cuts.iter().cycle();
        let (mut start, mut seen, mut found) = (0, 0, Vec::new());
        while start < bytes.len() {
            if let Some((args, used)) = one(&mut parser, &bytes[start..seen]).unwrap() {
                prop_assert_eq!(oracle(&bytes[start..]), Some((args.clone(), used)));
                start += used;
                found.push(args);
            } else {
                seen = bytes.len().min(seen + cuts.next().unwrap());
            }
        }
        prop_assert_eq!(found, commands);
    }

    /// A damaged request never panics, and is never read as a different request than redis-protocol
    /// reads.
    #[test]
    fn damaged_request_is_an_error_or_agrees_with_the_oracle(command in args(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut bytes = encoded(&command);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(Some((args, used))) = fresh(&bytes)
            && bytes[0] == b'*' && !args.is_empty()
        {
            prop_assert_eq!(oracle(&bytes), Some((args, used)));
        }
    }

    /// Any bytes give no panic and nothing beyond the limits, and in pieces the same as at once.
    #[test]
    fn any_bytes_parse_within_the_limits(bytes in prop::collection::vec(prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b'"'), any::<u8>()], 0..300)) {
        let whole = fresh(&bytes);
        let mut parser = Parser::new();
        let mut pieces = Ok(None);
        for end in 0..=bytes.len() {
            pieces = one(&mut parser, &bytes[..end]);
            if !matches!(pieces, Ok(None)) {
                break;
            }
        }
        // In pieces, an error or a request appears at the first byte that completes it.
        prop_assert_eq!(pieces, whole);
    }

    /// Redis-protocol reads back the encoder's output, in both versions.
    #[test]
    fn replies_are_readable(text in "[ -~]{0,40}", number in any::<i64>(), blob in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out, Protocol::Resp3);
        encoder.map(2);
        encoder.bulk(&blob);
        encoder.integer(number);
        encoder.simple(&text);
        encoder.null();
        let (frame, used) = resp3::decode::complete::decode(&out).unwrap().unwrap();
        prop_assert_eq!(used, out.len());
        let resp3::types::OwnedFrame::Map { data, .. } = frame else { panic!("no map") };
        prop_assert_eq!(data.len(), 2);

        out.clear();
        let mut encoder = Encoder::new(&mut out, Protocol::Resp2);
        encoder.array(4);
        encoder.bulk(&blob);
        encoder.integer(number);
        encoder.simple(&text);
        encoder.null();
        let (frame, used) = resp2::decode::decode(&out).unwrap().unwrap();
        prop_assert_eq!(used, out.len());
        prop_assert_eq!(frame, OwnedFrame::Array(vec![
            OwnedFrame::BulkString(blob),
            OwnedFrame::Integer(number),
            OwnedFrame::SimpleString(text.into_bytes()),
            OwnedFrame::Null,
        ]));
    }
}
