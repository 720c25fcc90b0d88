//! The floor: a bare responder on one thread, as redis-server is, that returns ready-made bytes and
//! never interprets a request.
//!
//! No server can do more than the floor on two processors, one of which is the client's. It waits
//! as redis-server does, or polls the system without a rest: the client then never has to wake it,
//! and waking costs the client more than sending does.

use std::collections::HashMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

/// Names of the floors, by their way to learn of readable data: blocking, or polling without a
/// rest.
pub const WAITING: &str = "waiting";
pub const WITHOUT_REST: &str = "without-rest";

/// Reply that is as long as one of our IDs.
const REPLY: &[u8] = b":100000000000000000\r\n";
/// First byte of each request; redis-benchmark sends it nowhere else.
const REQUEST: u8 = b'*';
const LISTENER: Token = Token(0);

/// Runs the floor with this name, for ever.
pub fn serve(name: &str) {
    let waits = name == WAITING;
    let mut poll = Poll::new().expect("a selector");
    let mut listener = TcpListener::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE).expect("a listener");
    println!("{}", listener.local_addr().expect("a bound port").port());
    let (mut streams, mut next) = (HashMap::new(), LISTENER.0);
    let (mut events, mut pending) = (Events::with_capacity(512), Vec::new());
    loop {
        // Without connections it blocks, which leaves the processor to other processes.
        let timeout = (!waits && !streams.is_empty()).then_some(Duration::ZERO);
        poll.poll(&mut events, timeout).expect("events");
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true).expect("a socket");
                    next += 1;
                    let token = Token(next);
                    poll.registry().register(&mut stream, token, Interest::READABLE).expect("room");
                    streams.insert(token, stream);
                }
            } else if let Some(stream) = streams.get_mut(&event.token()) {
                pending.push((event.token(), requests(stream)));
            }
        }
        // All requests are read before any reply is sent, as redis-server does.
        for (token, requests) in pending.drain(..) {
            let is_open = requests.is_some_and(|count| {
                streams.get_mut(&token).is_some_and(|it| it.write_all(&REPLY.repeat(count)).is_ok())
            });
            if !is_open {
                streams.remove(&token);
            }
        }
    }
}

/// Returns the number of readable requests; `None` at the end of the stream.
fn requests(stream: &mut TcpStream) -> Option<usize> {
    let (mut buffer, mut count) = ([0; 16 * 1024], 0);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return None,
            Ok(bytes) => {
                count += buffer[..bytes].iter().filter(|&&byte| byte == REQUEST).count();
                if bytes < buffer.len() {
                    return Some(count);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(count),
            Err(_) => return None,
        }
    }
}
