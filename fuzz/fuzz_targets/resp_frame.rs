//! Untrusted bytes as RESP requests: never a panic, never beyond the limits, and the same result in
//! pieces as in one piece.
#![no_main]

use libfuzzer_sys::fuzz_target;
use snowmint_wire::resp::{
    ARGS_MAX, BULK_BYTES_MAX, FRAME_BYTES_MAX, INLINE_BYTES_MAX, Next, Parser, ProtocolError,
};

/// Result of a stream: its requests, and the error that ended it.
type Outcome = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Reads all requests, with `step` more bytes at a time.
fn read(bytes: &[u8], step: usize) -> Outcome {
    let mut parser = Parser::new();
    let (mut start, mut seen) = (0, 0);
    let mut requests = Vec::new();
    loop {
        match parser.next(&bytes[start..seen]) {
            Err(error) => return (requests, Some(error)),
            Ok(Next::Command { command, bytes: used }) => {
                assert!(used > 0 && used <= FRAME_BYTES_MAX.max(INLINE_BYTES_MAX + 1));
                assert!(command.len() <= ARGS_MAX);
                let args: Vec<_> = command.args().map(<[u8]>::to_vec).collect();
                assert!(args.iter().all(|arg| arg.len() <= BULK_BYTES_MAX));
                requests.push(args);
                start += used;
            }
            Ok(Next::Incomplete) => {
                if seen == bytes.len() {
                    return (requests, None);
                }
                seen = bytes.len().min(seen + step);
            }
        }
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (step, bytes) = input;
    let whole = read(bytes, bytes.len().max(1));
    let pieces = read(bytes, usize::from(step) + 1);
    // A line that is too long may be rejected before its end is seen, or at it.
    assert_eq!(whole, pieces);
});
