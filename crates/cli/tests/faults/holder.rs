//! A process that holds worker numbers and mints: this test binary, started again.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use snowmint_coord::{BootTimer, Error, IdBatch, Node, NodeSettings, Platform, Store, Timer as _};
use snowmint_testkit::audited_store::{AuditedStore, PromiseSink};
use snowmint_testkit::children;
use snowmint_testkit::history::Resource;

use super::checker::{Checker, Voice};

/// The snowflake source of every run.
pub(crate) const ORDERS: &str = "orders";
/// The segment source of every run.
pub(crate) const NUMBERS: &str = "numbers";

/// Variable with the holder's settings as JSON; absent in an ordinary run of the tests.
const SETTINGS_VARIABLE: &str = "SNOWMINT_TEST_HOLDER";
/// Longest wait for an event that must come: these machines are noisy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(90);

/// Settings of a holder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HolderSettings {
    pub(crate) url: String,
    pub(crate) owner: String,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) window_ms: u64,
    pub(crate) presence_ttl_ms: u64,
    /// Number of snowflake IDs per batch.
    pub(crate) batch: u32,
    /// Pause between two batches.
    pub(crate) rest_ms: u64,
}

/// Writes a line at once, so that a kill leaves whole lines and at most one broken line.
fn say(line: &str) {
    let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
}

fn say_refused(what: &str, error: &Error) {
    say(&format!("! {what} {}", error.kind().code()));
    if error.kind().code() == "internal" {
        say(&format!("? {what}: {error:?}"));
    }
    eprintln!("{what}: {error}");
}

fn shown(right: &Resource) -> String {
    match right {
        Resource::Slot(pool, slot) => format!("{pool} {slot}"),
        Resource::Numbers(source) => format!("{source} -"),
    }
}

/// Reports the store's results before the process itself uses them.
#[derive(Debug)]
struct Loud;

impl PromiseSink for Loud {
    fn asks(&self, right: &Resource, from: u64, to: u64) {
        say(&format!("~ {} {from} {to}", shown(right)));
    }

    fn granted(&self, right: &Resource, from: u64, to: u64) {
        say(&format!("+ {} {from} {to}", shown(right)));
    }

    fn gives_up(&self, right: &Resource, mark: u64) {
        say(&format!("- {} {mark}", shown(right)));
    }
}

/// Mints until the process is killed, or its standard input ends; runs in the holder.
#[test]
fn holder() {
    let Ok(holder_settings) = std::env::var(SETTINGS_VARIABLE) else { return };
    let holder_settings: HolderSettings = serde_json::from_str(&holder_settings).unwrap();
    // The test harness's output has no line end.
    say("");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(hold(holder_settings));
    // The process does not wait for the harness.
    std::process::exit(0);
}

async fn hold(holder_settings: HolderSettings) {
    let store = loop {
        match snowmint_stores::open(&holder_settings.url, "default").await {
            Ok(store) => break store,
            Err(error) if error.kind().code() == "unavailable" => {
                say_refused("open", &error);
                BootTimer.sleep_ms(100).await;
            }
            Err(error) => return say_refused("start", &error),
        }
    };
    let store: Arc<dyn Store> = Arc::new(AuditedStore::new(store, Loud));
    let settings = NodeSettings {
        owner: holder_settings.owner.clone(),
        data_dir: holder_settings.data_dir.clone(),
        window_ms: holder_settings.window_ms,
        presence_ttl_ms: holder_settings.presence_ttl_ms,
        store_call_ms: 1_000,
        open_wait_ms: 2_000,
        ..NodeSettings::default()
    };
    let node = match Node::open(store, settings, Platform::system()).await {
        Ok(node) => node,
        Err(error) => return say_refused("start", &error),
    };
    let orders =
        tokio::spawn(mint(node.clone(), ORDERS, holder_settings.batch, holder_settings.rest_ms));
    let numbers = tokio::spawn(mint(node.clone(), NUMBERS, 10, holder_settings.rest_ms.max(5)));
    let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let _ = end.await;
    match node.close().await {
        Ok(()) => say("closed"),
        Err(error) => say_refused("close", &error),
    }
    orders.abort();
    numbers.abort();
}

async fn mint(node: Node, name: &'static str, batch: u32, rest_ms: u64) {
    let mut opened = None;
    loop {
        let source = match &opened {
            Some(source) => source,
            None => match node.source(name).await {
                Ok(source) => opened.insert(source),
                Err(error) => {
                    say_refused(name, &error);
                    BootTimer.sleep_ms(50).await;
                    continue;
                }
            },
        };
        match source.mint(batch, None, 100).await {
            Ok(IdBatch::Numbers(ids)) => {
                let ids: Vec<_> = ids.iter().map(u64::to_string).collect();
                say(&format!("= {name} {}", ids.join(" ")));
            }
            Ok(other) => panic!("not numbers: {other:?}"),
            Err(error) if error.kind().code() == "closed" => return,
            Err(error) => {
                say_refused(name, &error);
                BootTimer.sleep_ms(20).await;
            }
        }
        if rest_ms > 0 {
            BootTimer.sleep_ms(rest_ms).await;
        }
    }
}

/// State of a holder, observed from outside.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Number of snowflake IDs.
    pub(crate) orders: usize,
    /// Number of segment numbers.
    pub(crate) numbers: usize,
    /// Worker of the last snowflake ID.
    pub(crate) worker: Option<u64>,
    /// Failed calls with their codes: `orders window_spent`.
    pub(crate) refused: BTreeSet<String>,
    /// Whether everything was released.
    pub(crate) closed: bool,
}

/// A running holder; killed when dropped.
#[derive(Debug)]
pub(crate) struct Holder {
    child: Child,
    stdin: Option<ChildStdin>,
    seen: Arc<Mutex<Seen>>,
    /// Log of the process, for failures.
    log: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Holder {
    pub(crate) fn start(
        holder_settings: &HolderSettings,
        voice: Voice,
        checker: &Arc<Mutex<Checker>>,
    ) -> Self {
        let mut command = children::command(std::env::current_exe().unwrap());
        command
            .args(["holder::holder", "--exact", "--nocapture", "--test-threads=1"])
            .env(SETTINGS_VARIABLE, serde_json::to_string(holder_settings).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = children::spawn(command).unwrap();
        let (seen, log): (Arc<Mutex<Seen>>, Arc<Mutex<String>>) = Default::default();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (its_seen, checker) = (Arc::clone(&seen), Arc::clone(checker));
        let listens = std::thread::spawn(move || {
            let (mut lines, mut line) = (BufReader::new(stdout), String::new());
            // A line that a kill has cut short does not count.
            while lines.read_line(&mut line).is_ok() && line.ends_with('\n') {
                hear(line.trim(), voice, &its_seen, &checker);
                line.clear();
            }
        });
        let its_log = Arc::clone(&log);
        let logs = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = its_log.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, seen, log, readers: vec![listens, logs] }
    }

    pub(crate) fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap())
    }

    /// Clears the recorded errors.
    pub(crate) fn forgive(&self) {
        self.seen(|seen| seen.refused.clear());
    }

    /// Waits until a condition on the observed state holds.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let end = Instant::now() + TIMEOUT;
        while !self.seen(|seen| is_so(seen)) {
            if Instant::now() > end {
                let log = self.log.lock().unwrap();
                let tail = &log[log.len().saturating_sub(3_000)..];
                panic!("{what}: never; {:?}; it logs:\n{tail}", self.seen.lock().unwrap());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until it has minted from both sources from now on.
    #[track_caller]
    pub(crate) fn mints(&self) {
        let (orders, numbers) = self.seen(|seen| (seen.orders, seen.numbers));
        self.until("it mints", |seen| seen.orders > orders && seen.numbers > numbers);
    }

    /// Sends `SIGSTOP` or `SIGCONT`.
    pub(crate) fn freeze(&self, frozen: bool) {
        children::signal(self.child.id(), if frozen { "-STOP" } else { "-CONT" });
    }

    /// Kills it like `kill -9`; all its complete lines are read.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// Tells it to release everything, and waits for its end. Returns whether it did.
    pub(crate) fn close(mut self) -> bool {
        self.stdin = None;
        let end = Instant::now() + TIMEOUT;
        while self.child.try_wait().unwrap().is_none() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.end();
        self.seen(|seen| seen.closed)
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.end();
    }
}

fn hear(line: &str, voice: Voice, seen: &Mutex<Seen>, checker: &Mutex<Checker>) {
    if let Some(bug) = line.strip_prefix("? ") {
        return checker.lock().unwrap().fail(format!("an internal error: {bug}"));
    }
    let words: Vec<_> = line.split(' ').collect();
    let number = |word: &str| word.parse::<u64>().unwrap();
    let right = |name: &str, slot: &str| match slot {
        "-" => Resource::Numbers(name.into()),
        slot => Resource::Slot(name.into(), number(slot)),
    };
    match words.as_slice() {
        ["~", name, slot, from, to] => {
            checker.lock().unwrap().requested(voice, &right(name, slot), number(from), number(to));
        }
        ["+", name, slot, from, to] => {
            checker.lock().unwrap().granted(voice, &right(name, slot), number(from), number(to));
        }
        ["-", name, slot, mark] => {
            checker.lock().unwrap().given_up(voice, &right(name, slot), number(mark));
        }
        ["=", source, ids @ ..] => {
            let ids: Vec<_> = ids.iter().map(|id| number(id)).collect();
            let worker = checker.lock().unwrap().minted(voice, source, &ids);
            let mut seen = seen.lock().unwrap();
            if *source == ORDERS {
                seen.orders += ids.len();
                seen.worker = worker;
            } else {
                seen.numbers += ids.len();
            }
        }
        ["!", what, code] => {
            seen.lock().unwrap().refused.insert(format!("{what} {code}"));
        }
        ["closed"] => seen.lock().unwrap().closed = true,
        // Other lines come from the test harness.
        _ => {}
    }
}
