//! Segments with a slow store, an unreachable store, and a store with lost responses.

use std::time::{Duration, Instant};

use snowmint_testkit::proxy::Proxy;

use super::clients::{Http, Reply};
use super::ground::{STORES, is_long, is_selected, sleep_ms};
use super::server::{Folder, Server, TIMEOUT, WAIT_MAX};
use super::shared::Drawn;

/// Number of numbers that each source reserves at once.
const STEPS: [(&str, u64); 3] = [("ten", 10), ("thousand", 1_000), ("many", 100_000)];
/// Largest number of numbers in one request.
const AT_ONCE: u64 = 1_000;

/// A server behind a proxy to its store.
struct Slow {
    name: &'static str,
    server: Server,
    store: snowmint_testkit::servers::Server,
    proxy: Proxy,
    http: Http,
    drawn: Vec<(u64, Drawn)>,
    _folder: Folder,
}

impl Slow {
    fn start(store: snowmint_testkit::servers::Server) -> Self {
        let name = store.name();
        let folder = Folder::new(&format!("slow-{name}"));
        let proxy = Proxy::start(store.port());
        let mut text = "[sources]\nbuiltin = false\n".to_owned();
        for (source, step) in STEPS {
            text.push_str(&format!(
                "[sources.{source}]\nkind = \"segment\"\n\
                 step = {{ rule = \"fixed\", size = {step} }}\n"
            ));
        }
        let (config, data) = (folder.join("config.toml"), folder.join("data"));
        std::fs::write(&config, text).unwrap();
        let url = store.url_by(proxy.port());
        let arguments = ["--config", config.to_str().unwrap(), "--store", &url];
        let arguments = [&arguments[..], &["--data-dir", data.to_str().unwrap()]].concat();
        // The default limit: an error comes soon.
        let server = Server::start(&arguments, &[(WAIT_MAX, "1s")]);
        server.ready();
        let drawn = STEPS.map(|(source, step)| (step, Drawn::new(source, &store.url())));
        let http = Http::within(TIMEOUT);
        Self { name, server, store, proxy, http, drawn: drawn.into(), _folder: folder }
    }

    /// Requests numbers; an error must be temporary, and give the delay of a retry.
    fn draw(&self, drawn: &Drawn, count: u64) -> bool {
        match drawn.draw(&self.http, &self.server, count) {
            Some(Reply::Numbers(..)) => true,
            Some(Reply::Refused { code, retry_ms }) => {
                let known = ["503 unavailable", "503 window_spent"].contains(&code.as_str());
                assert!(known && retry_ms.is_some(), "{}: {code}, {retry_ms:?}", self.name);
                false
            }
            other => panic!("{}: {other:?}", self.name),
        }
    }

    /// Requests numbers for this time. Returns the number of errors.
    fn load(&self, ms: u64) -> u64 {
        let until = Instant::now() + Duration::from_millis(ms);
        let mut rejected = 0;
        while Instant::now() < until {
            for (step, drawn) in &self.drawn {
                rejected += u64::from(!self.draw(drawn, (step / 2).min(AT_ONCE)));
            }
        }
        rejected
    }

    /// Waits until each source serves again, in the same process.
    fn wait_until_serving(&self) {
        for (step, drawn) in &self.drawn {
            let until = Instant::now() + TIMEOUT;
            while !self.draw(drawn, (step / 2).min(AT_ONCE)) {
                assert!(Instant::now() < until, "{}: it does not continue", self.name);
                sleep_ms(50);
            }
        }
    }

    /// Returns the prefetched numbers of a source when no fetch is in flight.
    fn rests(&self, drawn: &Drawn) -> u64 {
        let prefetched = || drawn.prefetch_stats(&self.http, &self.server).prefetched;
        let (until, mut before) = (Instant::now() + TIMEOUT, prefetched());
        loop {
            sleep_ms(300);
            let now = prefetched();
            if now == before && now > 0 {
                return now;
            }
            assert!(Instant::now() < until, "{}: {now} prefetched after {before}", self.name);
            before = now;
        }
    }

    /// Makes the store unreachable for this time. The server issues prefetched numbers to the last
    /// one, then returns errors with a hint, then continues.
    fn outage(&self, seconds: u64) {
        self.wait_until_serving();
        for (_, drawn) in &self.drawn {
            self.rests(drawn);
        }
        self.proxy.refuse();
        let begun = Instant::now();
        // Fetches in flight end first.
        let amounts: Vec<_> = self.drawn.iter().map(|(_, drawn)| self.rests(drawn)).collect();
        for ((step, drawn), amount) in self.drawn.iter().zip(amounts) {
            let mut left = amount;
            while left > 0 {
                let count = left.min(AT_ONCE);
                let succeeded = self.draw(drawn, count);
                assert!(
                    succeeded,
                    "{}, step {step}: refused with {left} of {amount} left",
                    self.name
                );
                left -= count;
            }
            assert!(!self.draw(drawn, 1), "{}, step {step}: more than there is", self.name);
        }
        let rest = Duration::from_secs(seconds).saturating_sub(begun.elapsed());
        sleep_ms(u64::try_from(rest.as_millis()).unwrap());
        self.proxy.heal();
        self.wait_until_serving();
    }

    /// Holds the store's responses from some moment on and drops them, at each moment of a reserve.
    /// Returns the number of reserves that were done without the server's knowledge.
    fn lost_responses(&self) -> u64 {
        let (step, drawn) = &self.drawn[0];
        let mut unheard = 0;
        for pieces in 0..12 {
            self.wait_until_serving();
            let mut left = self.rests(drawn);
            let mark = drawn.mark();
            self.proxy.hold_responses_after(pieces);
            // Now the server fetches more.
            let until = Instant::now() + TIMEOUT;
            while left > 0 {
                left -= u64::from(self.draw(drawn, 1));
                assert!(
                    Instant::now() < until,
                    "{}: {left} are prefetched, and rejected",
                    self.name
                );
            }
            let heard = self.draw(drawn, 1);
            unheard += u64::from(!heard && drawn.mark() > mark);
            self.proxy.cut();
            self.proxy.heal();
        }
        self.wait_until_serving();
        let prefetch_stats = drawn.prefetch_stats(&self.http, &self.server);
        let checked = drawn.wasted_at_most(prefetch_stats.prefetched + prefetch_stats.lost);
        checked.unwrap_or_else(|violation| panic!("{}: {violation}", self.name));
        assert!(drawn.missing() >= unheard * step, "{}: given out again?", self.name);
        unheard
    }

    fn used(&self) -> u64 {
        self.drawn.iter().map(|(_, drawn)| drawn.used()).sum()
    }
}

#[test]
fn a_slow_or_absent_store_costs_no_number_twice() {
    std::thread::scope(|scope| {
        for (name, start) in STORES {
            let Some(start) = start.filter(|_| is_selected(name)) else { continue };
            scope.spawn(move || slow(&Slow::start(start())));
        }
    });
}

fn slow(slow: &Slow) {
    let name = slow.name;
    assert!(slow.store.port() > 0);
    let delays: &[u64] = if is_long() { &[0, 1, 50, 500, 5_000] } else { &[1, 50] };
    for delay_ms in delays {
        slow.proxy.delay(*delay_ms);
        let before = slow.used();
        let rejected = slow.load(2_000 + 4 * delay_ms);
        slow.proxy.heal();
        slow.wait_until_serving();
        let drawn = slow.used() - before;
        println!(
            "| store slower by {delay_ms} ms each way, steps of 10, 1,000 and 100,000 | {name} | {rejected} rejected | {drawn} | 0 |"
        );
    }
    let outages: &[u64] = if is_long() { &[1, 10, 60] } else { &[1] };
    for seconds in outages {
        let before = slow.used();
        slow.outage(*seconds);
        let drawn = slow.used() - before;
        println!(
            "| store away for {seconds} s, steps of 10, 1,000 and 100,000 | {name} | 1 | {drawn} | 0 |"
        );
    }
    let before = slow.used();
    // The last piece of a reserve's response depends on other calls at the time.
    let unheard = (0..5).map(|_| slow.lost_responses()).find(|unheard| *unheard > 0).unwrap_or(0);
    assert!(unheard > 0, "{name}: no reserve was done unheard");
    let drawn = slow.used() - before;
    println!("| a reserve done, its reply lost | {name} | {unheard} | {drawn} | 0 |");
}
