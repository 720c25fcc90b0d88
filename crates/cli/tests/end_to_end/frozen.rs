//! Requests to other servers while the owner of a key's section is frozen.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use snowmint_testkit::servers;

use super::counters::{all_have_keys, ask, redis};
use super::server::{Folder, Server, TIMEOUT, WAIT_MAX};

/// Time limit of a call: it ends after twice `limits.wait_max`, here a second, and took thirty
/// seconds without the bound. The rest allows for a busy machine.
const CALL_MAX: Duration = Duration::from_secs(10);
/// Time limit of the takeover: a successor serves within five seconds, and took twelve with the
/// ten-second lease of early builds.
const SUCCEEDED_MAX: Duration = Duration::from_secs(10);

const CONFIG: &str = "[sources.messages]\nkind = \"counter\"\n";

/// Starts a server on Redis, where a frozen process's statement does not block other processes.
fn start(store: &str, folder: &Folder, number: usize) -> Server {
    let (config, data) = (folder.join("config.toml"), folder.join(&format!("server-{number}")));
    std::fs::write(&config, CONFIG).unwrap();
    let (config, data) = (config.to_str().unwrap(), data.to_str().unwrap());
    let arguments = ["--config", config, "--store", store, "--data-dir", data];
    let server = Server::start(&arguments, &[(WAIT_MAX, "1s")]);
    server.ready();
    server
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-server: --features real-servers")]
fn frozen_counter_owner_is_replaced_and_delays_no_caller() {
    let store = servers::Redis::start(&[]);
    let folder = Folder::new("frozen");
    let servers: Vec<_> = (0..3).map(|number| start(&store.url(), &folder, number)).collect();
    let keys: Vec<String> = (0..60).map(|number| format!("user-{number}")).collect();
    let moved = format!(":{}", servers[1].resp_port());
    let is_there =
        |key: &&String| redis(&servers[0], &["INCR", &format!("messages:{key}")]).ends_with(&moved);
    all_have_keys(&servers, || {
        for key in &keys {
            let _ = ask(&servers[0], key);
        }
    });
    let mut there = None;
    super::server::until("the second server owns some key", || {
        there = keys.iter().find(is_there);
        there.is_some()
    });
    let key = there.unwrap();
    let before = ask(&servers[0], key).unwrap_or(0);

    servers[1].signal("-STOP");
    let frozen = Instant::now();
    let after = loop {
        let started = Instant::now();
        let response = ask(&servers[0], key);
        assert!(started.elapsed() < CALL_MAX, "a call took {:?}", started.elapsed());
        assert!(frozen.elapsed() < SUCCEEDED_MAX, "no response after {:?}", frozen.elapsed());
        if let Some(number) = response {
            break number;
        }
        // A request that fails at once is repeated after a pause.
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(after > before, "{after} after {before}");
    // A request that it finds once it continues gets no number of the section that it has lost.
    let mut found = TcpStream::connect(&servers[1].resp).unwrap();
    found.set_read_timeout(Some(TIMEOUT)).unwrap();
    found.write_all(format!("INCR messages:{key}\r\n").as_bytes()).unwrap();
    servers[1].signal("-CONT");
    let mut reply = String::new();
    BufReader::new(found).read_line(&mut reply).unwrap();
    let is_later = |number: u64| assert!(number > after, "{number} after {after}");
    if let Some(number) = reply.trim().strip_prefix(':') {
        is_later(number.parse().unwrap());
    }
    super::server::until("the frozen server forwards it", || {
        ask(&servers[1], key).map(is_later).is_some()
    });
}
