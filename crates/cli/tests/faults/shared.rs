//! A segment source of real servers, and the account of all its numbers.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use snowmint_coord::{Error, Store};
use snowmint_testkit::history::{Checked, Numbers};
use tokio::runtime::Runtime;

use super::clients::{Http, Reply};
use super::ground::sleep_ms;
use super::server::{Server, TIMEOUT};

/// One source on a store, and the numbers issued from it. Clones share it.
#[derive(Clone)]
pub(crate) struct Drawn {
    name: &'static str,
    store: String,
    runtime: Arc<Runtime>,
    numbers: Arc<Mutex<Numbers>>,
}

/// A server's metrics of its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrefetchStats {
    pub(crate) prefetched: u64,
    pub(crate) lost: u64,
    /// Number of reserves with unknown outcome.
    unheard: u64,
}

impl Drawn {
    pub(crate) fn new(name: &'static str, store: &str) -> Self {
        let runtime = Arc::new(Runtime::new().unwrap());
        Self { name, store: store.to_owned(), runtime, numbers: Arc::default() }
    }

    pub(crate) fn used(&self) -> u64 {
        self.numbers.lock().unwrap().used()
    }

    /// Requests this many prefetched numbers in a row from a server, and records the response.
    ///
    /// # Panics
    /// When a number comes twice.
    pub(crate) fn draw(&self, http: &Http, server: &Server, count: u64) -> Option<Reply> {
        let url = server.url(&format!("/v1/ids/{}?count={count}", self.name));
        let (status, body) = http.get(&url)?;
        if status != 200 {
            let error = &body["error"];
            return Some(Reply::Refused {
                code: format!("{status} {}", error["code"].as_str().unwrap_or_default()),
                retry_ms: error["retry_after_ms"].as_u64(),
            });
        }
        let ids = body["ids"].as_array().unwrap();
        let ids: Vec<u64> = ids.iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect();
        assert_eq!(ids.len() as u64, count, "{}", self.name);
        let mut numbers = self.numbers.lock().unwrap();
        for run in ids.chunk_by(|one, next| one + 1 == *next) {
            let recorded = numbers.record(run[0], run[run.len() - 1] + 1);
            recorded.unwrap_or_else(|violation| panic!("{}: {violation}", self.name));
        }
        Some(Reply::Numbers(ids[0], ids[ids.len() - 1]))
    }

    /// Returns a server's metrics of its numbers from this source.
    pub(crate) fn prefetch_stats(&self, http: &Http, server: &Server) -> PrefetchStats {
        let page = http.page(&server.url("/metrics")).unwrap_or_default();
        let value = |name: &str, labels: &str| {
            let sample = format!("{name}{{{labels}}} ");
            // The values are whole numbers, with or without a decimal point.
            let whole = |line: &str| line.strip_prefix(&sample)?.split('.').next()?.parse().ok();
            page.lines().find_map(whole).unwrap_or(0)
        };
        let source = format!("source=\"{}\"", self.name);
        let unheard = "verb=\"reserve\",code=\"unavailable\"";
        PrefetchStats {
            prefetched: value("snowmint_segment_prefetched", &source),
            lost: value("snowmint_segment_lost_total", &source),
            unheard: value("snowmint_store_errors_total", unheard),
        }
    }

    /// Returns the store's own mark, without any proxy.
    pub(crate) fn mark(&self) -> u64 {
        let until = Instant::now() + TIMEOUT;
        loop {
            let result: Result<u64, Error> = self.runtime.block_on(async {
                let store: Arc<dyn Store> = snowmint_stores::open(&self.store, "default").await?;
                let found = store.get(self.name).await;
                let _ = store.close().await;
                Ok(found?.segment.mark.get())
            });
            match result {
                Ok(mark) => return mark,
                Err(error) => assert!(Instant::now() < until, "{error:?}"),
            }
            sleep_ms(50);
        }
    }

    /// Waits until all numbers are accounted for: issued, prefetched, or lost by the servers'
    /// metrics. Fetches in flight end first. The step is fixed.
    pub(crate) fn comes_to_account(&self, http: &Http, servers: &[Server], step: u64) {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let all_stats: Vec<_> =
                servers.iter().map(|server| self.prefetch_stats(http, server)).collect();
            let lost: u64 = all_stats.iter().map(|stats| stats.prefetched + stats.lost).sum();
            let unheard: u64 = all_stats.iter().map(|stats| stats.unheard * step).sum();
            match self.numbers.lock().unwrap().accounted(self.mark(), lost, unheard) {
                Ok(()) => return,
                Err(violation) => assert!(Instant::now() < until, "{}: {violation}", self.name),
            }
            sleep_ms(100);
        }
    }

    /// Checks that no more numbers are missing than allowed.
    pub(crate) fn wasted_at_most(&self, lost_max: u64) -> Checked {
        self.numbers.lock().unwrap().wasted_at_most(self.mark(), lost_max)
    }

    /// Returns how many numbers below the mark were never issued.
    pub(crate) fn missing(&self) -> u64 {
        self.numbers.lock().unwrap().missing(self.mark()).unwrap()
    }
}
