//! A network that fails: a proxy on a loopback port, before a real server.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use snowmint_coord::{BootTimer, Timer as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// Direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Requests.
    ToServer,
    /// Responses.
    ToClient,
}

/// Present failures of the network.
#[derive(Clone, Copy, Debug, Default)]
struct ProxyState {
    /// Port to which connections lead.
    server_port: u16,
    to_server_held: bool,
    to_client_held: bool,
    /// Pieces of responses that still get through; later ones are held.
    response_pieces_left: Option<u64>,
    delay_ms: u64,
    refuses: bool,
    /// Number of times that all connections were cut.
    cuts: u64,
    /// Number of pieces of responses that were lost with their connection.
    responses_lost: u64,
}

impl ProxyState {
    const fn held(self, way: Way) -> bool {
        match way {
            Way::ToServer => self.to_server_held,
            Way::ToClient => self.to_client_held,
        }
    }

    /// Counts a piece of a response. Returns whether it and all later pieces are held.
    const fn count_response_piece(&mut self) -> bool {
        match self.response_pieces_left {
            Some(0) => {
                (self.to_client_held, self.response_pieces_left) = (true, None);
                true
            }
            Some(left) => {
                self.response_pieces_left = Some(left - 1);
                false
            }
            None => false,
        }
    }
}

/// TCP proxy for one server; dropping it closes its connections.
///
/// Held bytes are not lost: they arrive, late, when the network [heals](Self::heal).
pub struct Proxy {
    address: SocketAddr,
    state: Arc<watch::Sender<ProxyState>>,
    // Dropped last: the proxy's tasks end with it.
    _runtime: Runtime,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("address", &self.address)
            .field("state", &*self.state.borrow())
            .finish_non_exhaustive()
    }
}

impl Proxy {
    /// Starts a proxy before the server on this loopback port.
    ///
    /// # Panics
    /// When there is no free port.
    #[must_use]
    pub fn start(server_port: u16) -> Self {
        Self::at("127.0.0.1:0", server_port)
    }

    /// Starts a proxy at this address.
    ///
    /// # Panics
    /// When the address cannot be bound.
    #[must_use]
    pub fn at(address: &str, server_port: u16) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind(address)).unwrap();
        let address = listener.local_addr().unwrap();
        let state =
            Arc::new(watch::Sender::new(ProxyState { server_port, ..ProxyState::default() }));
        let seen = Arc::downgrade(&state);
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Some(state) = seen.upgrade() else { return };
                tokio::spawn(connection(client, state));
            }
        });
        Self { address, state, _runtime: runtime }
    }

    /// Returns the loopback port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Closes every connection. New ones lead to the server on this loopback port, as when an
    /// address moves to another server.
    pub fn lead_to(&self, server_port: u16) {
        self.state.send_modify(|state| {
            state.server_port = server_port;
            state.cuts += 1;
        });
    }

    /// Closes every connection. New ones are accepted.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Closes every connection, and each new one at once, until it heals.
    pub fn refuse(&self) {
        self.state.send_modify(|state| (state.cuts, state.refuses) = (state.cuts + 1, true));
    }

    /// Holds all bytes in this direction, on every connection, until it heals.
    pub fn hold(&self, way: Way) {
        self.state.send_modify(|state| match way {
            Way::ToServer => state.to_server_held = true,
            Way::ToClient => state.to_client_held = true,
        });
    }

    /// Lets `pieces` more pieces of responses through, on all connections together; then holds
    /// responses until it heals. The server does its work, and its clients do not learn of it.
    pub fn hold_responses_after(&self, pieces: u64) {
        self.state.send_modify(|state| state.response_pieces_left = Some(pieces));
    }

    /// Delays everything by `ms` milliseconds, until it heals.
    pub fn delay(&self, ms: u64) {
        self.state.send_modify(|state| state.delay_ms = ms);
    }

    /// Ends all failures, and delivers what was held.
    pub fn heal(&self) {
        self.state.send_modify(|state| {
            let ProxyState { server_port, cuts, responses_lost, .. } = *state;
            *state = ProxyState { server_port, cuts, responses_lost, ..ProxyState::default() };
        });
    }

    /// Returns how many pieces of responses were in flight when their connection was cut, since the
    /// start.
    #[must_use]
    pub fn responses_lost(&self) -> u64 {
        self.state.borrow().responses_lost
    }
}

async fn connection(client: TcpStream, sets: Arc<watch::Sender<ProxyState>>) {
    let mut state = sets.subscribe();
    let begun = *state.borrow_and_update();
    if begun.refuses {
        return;
    }
    let there = ("127.0.0.1", begun.server_port);
    let Ok(server) = TcpStream::connect(there).await else { return };
    for stream in [&client, &server] {
        // Without this, each step would wait for the other side's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = pump(from_client, to_server, Way::ToServer, &sets);
    let responses = pump(from_server, to_client, Way::ToClient, &sets);
    // The result is dropped: it is a lock on the state, which a lost piece changes.
    let cut = async { drop(state.wait_for(|now| now.cuts != begun.cuts).await) };
    tokio::select! {
        biased;
        // The cut comes first: what it holds is lost, also when it heals in the same moment.
        () = cut => {}
        _ = async { tokio::join!(requests, responses) } => {}
    }
}

/// A piece of a response in flight: lost, unless it is forgotten after it has arrived.
struct OnItsWay<'a>(&'a watch::Sender<ProxyState>);

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        self.0.send_if_modified(|state| {
            state.responses_lost += 1;
            // No task waits for this change.
            false
        });
    }
}

/// Carries bytes one way until the sender ends or the receiver is gone.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    way: Way,
    sets: &watch::Sender<ProxyState>,
) {
    let mut state = sets.subscribe();
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let delay_ms = state.borrow().delay_ms;
        if delay_ms > 0 {
            BootTimer.sleep_ms(delay_ms).await;
        }
        if way == Way::ToClient {
            sets.send_if_modified(ProxyState::count_response_piece);
        }
        let on_its_way = (way == Way::ToClient).then(|| OnItsWay(sets));
        if state.wait_for(|now| !now.held(way)).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
        // It has arrived.
        std::mem::forget(on_its_way);
    }
    // The end of the stream is held, too.
    if state.wait_for(|now| !now.held(way)).await.is_ok() {
        let _ = to.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net;
    use std::time::Duration;

    use super::*;

    /// Wait that is long enough for bytes that can arrive, and short enough for those that cannot.
    const SOON: Duration = Duration::from_millis(300);
    const TIMEOUT: Duration = Duration::from_secs(30);

    /// Starts a server that responds to each byte with the next higher one.
    fn server() -> u16 {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).is_ok() {
                        byte[0] += 1;
                        if stream.write_all(&byte).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        port
    }

    struct Client(net::TcpStream);

    impl Client {
        fn new(proxy: &Proxy) -> Self {
            Self(net::TcpStream::connect(proxy.address).unwrap())
        }

        fn send(&mut self, byte: u8) {
            self.0.write_all(&[byte]).unwrap();
        }

        /// Returns the next byte, or `None` when it does not come.
        fn receive(&mut self, within: Duration) -> Option<u8> {
            self.0.set_read_timeout(Some(within)).unwrap();
            let mut byte = [0];
            match self.0.read(&mut byte) {
                Ok(1) => Some(byte[0]),
                Ok(_) => panic!("closed"),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
                    None
                }
            }
        }

        fn is_closed(&mut self) -> bool {
            self.0.set_read_timeout(Some(TIMEOUT)).unwrap();
            matches!(self.0.read(&mut [0]), Ok(0) | Err(_))
        }
    }

    #[test]
    fn held_bytes_arrive_when_the_network_recovers() {
        for ways in [&[Way::ToServer][..], &[Way::ToClient], &[Way::ToServer, Way::ToClient]] {
            let proxy = Proxy::start(server());
            let mut client = Client::new(&proxy);
            client.send(1);
            assert_eq!(client.receive(TIMEOUT), Some(2));
            ways.iter().for_each(|way| proxy.hold(*way));
            client.send(3);
            assert_eq!(client.receive(SOON), None, "{ways:?}");
            let mut later = Client::new(&proxy);
            later.send(5);
            assert_eq!(later.receive(SOON), None, "{ways:?}: a new connection");
            proxy.heal();
            assert_eq!(client.receive(TIMEOUT), Some(4), "{ways:?}");
            assert_eq!(later.receive(TIMEOUT), Some(6), "{ways:?}");
        }
    }

    #[test]
    fn cut_connection_may_reconnect_unless_rejected() {
        let proxy = Proxy::start(server());
        let mut client = Client::new(&proxy);
        client.send(1);
        assert_eq!(client.receive(TIMEOUT), Some(2));
        proxy.hold(Way::ToClient);
        client.send(1);
        proxy.cut();
        assert!(client.is_closed(), "also what is held");
        proxy.refuse();
        assert!(Client::new(&proxy).is_closed());
        proxy.heal();
        let mut client = Client::new(&proxy);
        client.send(7);
        assert_eq!(client.receive(TIMEOUT), Some(8));
    }

    #[test]
    fn lost_responses_are_counted() {
        let proxy = Proxy::start(server());
        let begun = BootTimer.elapsed();
        while proxy.responses_lost() == 0 {
            assert!(BootTimer.elapsed().since(begun) < 60_000, "none is counted");
            let mut client = Client::new(&proxy);
            client.send(1);
            assert_eq!(client.receive(TIMEOUT), Some(2));
            assert_eq!(proxy.responses_lost(), 0, "it arrived");
            proxy.hold(Way::ToClient);
            client.send(1);
            // On a busy machine, the server may not have responded yet: then once more.
            assert_eq!(client.receive(SOON), None);
            proxy.cut();
            assert!(client.is_closed());
            proxy.heal();
        }
        assert_eq!(proxy.responses_lost(), 1);
    }

    #[test]
    fn limited_responses_get_through() {
        let proxy = Proxy::start(server());
        let mut client = Client::new(&proxy);
        proxy.hold_responses_after(2);
        for byte in [1, 3] {
            client.send(byte);
            assert_eq!(client.receive(TIMEOUT), Some(byte + 1));
        }
        client.send(5);
        assert_eq!(client.receive(SOON), None);
        proxy.heal();
        assert_eq!(client.receive(TIMEOUT), Some(6));
    }

    #[test]
    fn delayed_bytes_take_longer() {
        let proxy = Proxy::start(server());
        let mut client = Client::new(&proxy);
        proxy.delay(400);
        let begun = BootTimer.elapsed();
        client.send(1);
        assert_eq!(client.receive(TIMEOUT), Some(2));
        assert!(BootTimer.elapsed().since(begun) >= 800, "there and back");
    }
}
