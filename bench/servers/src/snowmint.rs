//! `snowmint serve` on free ports, with its own data.

use std::ops::Deref;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Process;

/// Configuration of counters by key, as in Redis.
pub const COUNTERS: &str = "[sources.pages]\nkind = \"counter\"\ncounter = { keys = \"alone\" }\n\
                      [resp]\ndefault_counter_source = \"pages\"\n\
                      [counters]\nmemory_max_bytes = 4000000000\n";

/// Configuration of a snowflake source with ticks that are never full, which never leads the clock.
pub const WIDE: &str =
    "[sources.wide]\nlayout = \"time=41,worker=4,sequence=18\"\nlead_max = \"0ms\"\n";

/// A running server; dropping it removes the server and its data.
pub struct Snowmint {
    process: Process,
    binary: String,
    store: Option<String>,
    folder: PathBuf,
    /// The port of HTTP and gRPC.
    pub http: u16,
    /// The port of RESP.
    pub resp: u16,
}

impl Snowmint {
    /// Starts a server on a store of its own.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(binary: &str, config: &str) -> Self {
        Self::new(binary, config, None)
    }

    /// Starts a server on this store.
    ///
    /// # Panics
    /// When it does not start.
    pub fn on_store(binary: &str, config: &str, url: &str) -> Self {
        Self::new(binary, config, Some(url.to_owned()))
    }

    fn new(binary: &str, config: &str, store: Option<String>) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("snowmint-bench-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("config.toml"), config).expect("a file");
        let binary = binary.to_owned();
        let (process, [http, resp]) = serve(&binary, &folder, store.as_deref(), [0, 0]);
        Self { process, binary, store, folder, http, resp }
    }

    /// Starts the server again after its end, on the same ports and the same data.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_again(&mut self) {
        let ports = [self.http, self.resp];
        self.process = serve(&self.binary, &self.folder, self.store.as_deref(), ports).0;
    }

    /// Ends it as a crash does.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Ends it with `TERM`.
    pub fn stop(&mut self) {
        self.process.stop();
    }
}

impl Deref for Snowmint {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

fn serve(
    binary: &str,
    folder: &std::path::Path,
    store: Option<&str>,
    [http, resp]: [u16; 2],
) -> (Process, [u16; 2]) {
    let mut command = Command::new(binary);
    command
        .args(["serve", "--http", &format!("127.0.0.1:{http}")])
        .args(["--resp", &format!("127.0.0.1:{resp}")])
        .arg("--config")
        .arg(folder.join("config.toml"))
        .arg("--data-dir")
        .arg(folder.join("data"));
    if let Some(store) = store {
        command.args(["--store", store]);
    }
    let (process, line) = Process::start(&mut command);
    let port = |name: &str| {
        let address = line.split_whitespace().find_map(|word| word.strip_prefix(name));
        let port = address.and_then(|address| address.rsplit(':').next()?.parse().ok());
        port.unwrap_or_else(|| panic!("{command:?} printed: {line:?}"))
    };
    (process, ["http=", "resp="].map(port))
}

impl Drop for Snowmint {
    fn drop(&mut self) {
        self.process.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
