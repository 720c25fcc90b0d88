//! `snowmint-fuzz-server BINARY SECONDS [SEED]` starts a server with tokens on. It sends requests
//! over HTTP/1.1, HTTP/2, gRPC and RESP, with a token of many rights: well-formed ones with any
//! values, and spoiled ones. Meanwhile an honest client sends requests each second. The run fails
//! on a panic, on an end of the server, and on memory that grows after the first tenth of the time
//! or is not flat after the first half. It also fails on an honest request or a closing connection
//! that takes longer than [`TIMEOUT`].

mod dice;
mod grpc;
mod honest;
mod http1;
mod http2;
mod resp;
mod served;

use std::{
    net::SocketAddr,
    ops::Range,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use fastrand::Rng;
use served::{HOSTILE, Memory, Served};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
};

/// Time limit for an honest request, and for the end of a connection after its client ended it.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Largest growth of flat memory in the second half of the time, in KiB: what the allocator keeps
/// varies by as much.
const FLAT_KIB: u64 = 4 * 1024;
/// Simultaneous connections of each protocol's attackers.
const AT_ONCE: usize = 8;
const PROTOCOLS: [&str; 4] = ["HTTP/1.1", "HTTP/2", "gRPC", "RESP"];

#[derive(Default)]
struct Counts {
    cases: [AtomicU64; 4],
    responded: [AtomicU64; 4],
    /// Attackers over gRPC that know the server's instance.
    described: AtomicU64,
    /// Connections that were open [`TIMEOUT`] after their client had ended them.
    hung: AtomicU64,
}

/// The server's memory during a run: at which part of the time it had how many KiB.
#[derive(Default)]
struct Drawn(Vec<(f64, u64)>);

impl Drawn {
    /// Returns the memory within a part of the time, in ascending order.
    fn within(&self, part: &Range<f64>) -> Vec<u64> {
        let found = self.0.iter().filter(|(at, _)| part.contains(at));
        let mut kib: Vec<u64> = found.map(|(_, kib)| *kib).collect();
        kib.sort_unstable();
        kib
    }

    /// Returns the most memory in the first tenth.
    fn early_kib(&self) -> u64 {
        self.within(&(0.0..0.1)).last().copied().unwrap_or_default()
    }

    /// Returns the usual memory in the second and in the last quarter. Single large requests do not
    /// move it. `None` for a run that is too short.
    fn halves_kib(&self) -> Option<(u64, u64)> {
        let median = |part: Range<f64>| {
            let kib = self.within(&part);
            kib.get(kib.len() / 2).copied()
        };
        Some((median(0.25..0.5)?, median(0.75..1.0)?))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(binary), Some(seconds)) = (arguments.next(), arguments.next()) else {
        return Err("snowmint-fuzz-server BINARY SECONDS [SEED]".into());
    };
    let seconds: u64 = seconds.parse()?;
    let seed = arguments.next().map_or(Ok(fastrand::u64(..)), |seed| seed.parse())?;
    println!("seed {seed}, {seconds} s");
    let mut served = Served::start(&PathBuf::from(binary).canonicalize()?).await?;
    let counts = Arc::new(Counts::default());
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut attackers = Vec::new();
    for protocol in 0..PROTOCOLS.len() {
        for number in 0..AT_ONCE {
            let rng = Rng::with_seed(seed ^ (protocol as u64) << 32 ^ number as u64);
            let address = if protocol == 3 { served.resp } else { served.http };
            attackers.push(tokio::spawn(attack(rng, protocol, address, Arc::clone(&counts), end)));
        }
    }
    let (drawn, slowest) = run_alongside(&mut served, &counts, seconds).await?;
    for attacker in attackers {
        attacker.await?;
    }
    tokio::time::sleep(TIMEOUT).await;
    report(&mut served, &counts, &drawn, slowest)
}

/// Sends honest requests until the end; returns the memory meanwhile, and the time of the slowest
/// round.
async fn run_alongside(
    served: &mut Served,
    counts: &Counts,
    seconds: u64,
) -> Result<(Drawn, Duration), Box<dyn std::error::Error>> {
    let (mut drawn, mut slowest, start) = (Drawn::default(), Duration::ZERO, Instant::now());
    let mut reported = 0;
    while start.elapsed() < Duration::from_secs(seconds) {
        slowest = slowest.max(honest::round(served.http, served.resp, TIMEOUT).await?);
        if let Some(how) = served.ended() {
            return Err(format!("the server ended: {how}; {:?}", served.log()?).into());
        }
        let Memory { own_kib, most_kib } =
            served.memory().ok_or("the server's memory cannot be read")?;
        drawn.0.push((start.elapsed().as_secs_f64() / seconds as f64, own_kib));
        if start.elapsed().as_secs() / 30 > reported {
            reported = start.elapsed().as_secs() / 30;
            let cases: Vec<u64> = counts.cases.iter().map(|count| count.load(Relaxed)).collect();
            println!(
                "{} s: cases {cases:?}, memory {own_kib} KiB (with code {most_kib} at most), slowest honest response {slowest:?}",
                start.elapsed().as_secs()
            );
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok((drawn, slowest))
}

fn report(
    served: &mut Served,
    counts: &Counts,
    drawn: &Drawn,
    slowest: Duration,
) -> Result<(), Box<dyn std::error::Error>> {
    let Memory { own_kib, most_kib } = served.memory().ok_or("the server ended")?;
    let (panics, log_bytes) = served.log()?;
    let (early_kib, halves_kib) = (drawn.early_kib(), drawn.halves_kib());
    for (index, protocol) in PROTOCOLS.iter().enumerate() {
        let (cases, responded) =
            (counts.cases[index].load(Relaxed), counts.responded[index].load(Relaxed));
        println!("{protocol}: {cases} cases, {responded} connections with a response");
        if responded == 0 {
            return Err(format!("{protocol}: the server did not respond").into());
        }
    }
    if counts.described.load(Relaxed) == 0 {
        return Err("no call of gRPC got behind the instance of store.v1".into());
    }
    let hung = counts.hung.load(Relaxed);
    println!(
        "memory {own_kib} KiB at the end, {early_kib} in the first tenth, usual in the second and the last quarter {halves_kib:?}, with code {most_kib} at most; log {log_bytes} bytes"
    );
    println!(
        "slowest honest response {slowest:?}; panics {}, connections that hung {hung}",
        panics.len()
    );
    if !panics.is_empty() || hung > 0 {
        return Err(format!("panics {panics:?}, connections that hung {hung}").into());
    }
    // The memory that the allocator keeps varies by some megabytes.
    if own_kib > early_kib + early_kib / 4 + 8 * 1024 {
        return Err(format!("memory grew from {early_kib} to {own_kib} KiB").into());
    }
    match halves_kib {
        Some((second, last)) if last > second + FLAT_KIB => Err(format!(
            "memory is not flat: usually {second} KiB in the second quarter, {last} in the last"
        )
        .into()),
        _ => Ok(()),
    }
}

async fn attack(
    mut rng: Rng,
    protocol: usize,
    address: SocketAddr,
    counts: Arc<Counts>,
    end: Instant,
) {
    let operations = http1::operations(include_str!("../../../docs/openapi.json"));
    let methods = grpc::methods();
    let mut instance = None;
    let closing = Arc::new(Semaphore::new(16));
    while Instant::now() < end {
        let cases = match protocol {
            0 => rng.u64(1..6),
            _ => 1,
        };
        if protocol == 2 && instance.is_none() {
            instance = grpc::instance(address, &methods, HOSTILE).await;
            counts.described.fetch_add(u64::from(instance.is_some()), Relaxed);
        }
        let named = instance.as_deref().unwrap_or_default();
        let mut bytes = match protocol {
            0 => (0..cases).flat_map(|_| http1::request(&mut rng, &operations, HOSTILE)).collect(),
            1 => http2::connection(&mut rng, &mut |rng| plain(rng, &operations)),
            2 => {
                http2::connection(&mut rng, &mut |rng| grpc::request(rng, &methods, HOSTILE, named))
            }
            _ => resp::pipeline(&mut rng, HOSTILE),
        };
        if rng.u8(..3) == 0 {
            dice::spoil(&mut rng, &mut bytes);
        }
        counts.cases[protocol].fetch_add(cases, Relaxed);
        let Ok(stream) = TcpStream::connect(address).await else { continue };
        let Some(stream) = exchange(stream, &bytes, &counts.responded[protocol]).await else {
            continue;
        };
        if rng.u8(..20) == 0
            && let Ok(permit) = Arc::clone(&closing).try_acquire_owned()
        {
            let counts = Arc::clone(&counts);
            tokio::spawn(async move {
                let _permit = permit;
                closes(stream, &counts.hung).await;
            });
        }
    }
}

/// Returns a request of HTTP/1.1 as one of HTTP/2, so that both have the same kinds.
fn plain(rng: &mut Rng, operations: &[(String, String)]) -> http2::Request {
    let text = http1::request(rng, operations, HOSTILE);
    let text = String::from_utf8_lossy(&text);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let mut headers = vec![
        (":method".to_owned(), first.next().unwrap_or_default().to_owned()),
        (":scheme".to_owned(), "http".to_owned()),
        (":path".to_owned(), first.next().unwrap_or_default().to_owned()),
        (":authority".to_owned(), "127.0.0.1".to_owned()),
    ];
    headers.extend(
        lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned())),
    );
    http2::Request { headers, body: body.as_bytes().to_vec() }
}

/// Sends bytes, and reads for a moment; returns the connection, if the server has not ended it.
async fn exchange(mut stream: TcpStream, bytes: &[u8], responded: &AtomicU64) -> Option<TcpStream> {
    let mut response = vec![0; 16 * 1024];
    let sent = tokio::time::timeout(Duration::from_secs(5), stream.write_all(bytes)).await;
    if !matches!(sent, Ok(Ok(()))) {
        return None;
    }
    let mut any = false;
    loop {
        match tokio::time::timeout(Duration::from_millis(30), stream.read(&mut response)).await {
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(_)) if !any => {
                any = true;
                responded.fetch_add(1, Relaxed);
            }
            Ok(Ok(_)) => {}
            Err(_) => return Some(stream),
        }
    }
    None
}

/// Ends the client's side, and waits for the server to end its side.
async fn closes(mut stream: TcpStream, hung: &AtomicU64) {
    let mut response = vec![0; 16 * 1024];
    let _ = stream.shutdown().await;
    let whole =
        async { while matches!(stream.read(&mut response).await, Ok(count) if count > 0) {} };
    if tokio::time::timeout(TIMEOUT, whole).await.is_err() {
        hung.fetch_add(1, Relaxed);
    }
}
