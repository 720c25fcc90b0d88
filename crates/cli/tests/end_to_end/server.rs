//! A `snowmint serve` process of a test.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use snowmint_testkit::{children, programs};

/// Generous time limit: these machines are noisy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Longest wait of a request. The default of a second is too short for a busy disk and busy
/// processors; tests of errors set it themselves.
pub(crate) const WAIT_MAX: &str = "SNOWMINT_LIMITS__WAIT_MAX";

/// The binary under test.
pub(crate) const SNOWMINT: &str = env!("CARGO_BIN_EXE_snowmint");

pub(crate) fn snowmint() -> Command {
    clean(SNOWMINT)
}

/// Returns a command that inherits none of Snowmint's variables, and ends with these tests.
pub(crate) fn clean(program: &str) -> Command {
    cleaned(children::command(program))
}

pub(crate) fn cleaned(mut command: Command) -> Command {
    // Variables of the user who runs the tests must not matter.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SNOWMINT_")) {
        command.env_remove(name);
    }
    command
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A folder of a test, removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("snowmint-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running server, killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    printed: Arc<Mutex<String>>,
    pub(crate) http: String,
    pub(crate) resp: String,
}

impl Server {
    /// Starts `serve` on free ports with these arguments, and waits until it listens.
    #[track_caller]
    pub(crate) fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut server = None;
        until("it listens", || {
            let started = Self::try_start(arguments, environment);
            server = started.map_or_else(|output| not_yet(&output), Some);
            server.is_some()
        });
        server.unwrap()
    }

    /// Starts a ready server that shares a SQLite store in the folder, with its own data directory.
    pub(crate) fn sharing(folder: &Folder, number: usize, config: &str) -> Self {
        Self::sharing_at(folder, number, config, "127.0.0.1:0")
    }

    /// Starts the same with HTTP at this address.
    pub(crate) fn sharing_at(folder: &Folder, number: usize, config: &str, http: &str) -> Self {
        let store = format!("sqlite:{}", folder.join("ids.db").display());
        Self::sharing_on(&store, folder, (number, config), http)
    }

    /// Starts the same on another store.
    pub(crate) fn sharing_on(
        store: &str,
        folder: &Folder,
        (number, config): (usize, &str),
        http: &str,
    ) -> Self {
        let path = folder.join("config.toml");
        fs::write(&path, config).unwrap();
        let data = folder.join(&format!("server-{number}"));
        let (path, data) = (path.to_str().unwrap(), data.to_str().unwrap());
        let arguments = ["--config", path, "--store", store, "--data-dir", data, "--http", http];
        let server = Self::start(&arguments, &[]);
        server.ready();
        server
    }

    /// Tries to start it; returns the output if the process ended instead.
    pub(crate) fn try_start(
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self, Output> {
        let mut command = snowmint();
        command.envs(environment.iter().copied());
        Self::run(command, arguments)
    }

    /// Runs `serve` with these arguments by a command that ends with the program's name.
    pub(crate) fn run(mut command: Command, arguments: &[&str]) -> Result<Self, Output> {
        command.arg("serve");
        for port in ["--http", "--resp"].into_iter().filter(|port| !arguments.contains(port)) {
            command.args([port, "127.0.0.1:0"]);
        }
        command.args(arguments);
        if !command.get_envs().any(|(name, _)| name == WAIT_MAX) {
            command.env(WAIT_MAX, "10s");
        }
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = children::spawn(command).unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let Some(ports) = line.trim().strip_prefix("listening ") else {
            return Err(child.wait_with_output().unwrap());
        };
        // The log must not fill the pipe.
        let printed = Arc::new(Mutex::new(String::new()));
        let (stderr, log) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&printed));
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut log = log.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let port = |name: &str| {
            let mut words = ports.split(' ');
            words.find_map(|word| word.strip_prefix(name)).unwrap().to_owned()
        };
        Ok(Self { child, printed, http: port("http="), resp: port("resp=") })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.http)
    }

    /// Returns the log so far.
    pub(crate) fn printed(&self) -> String {
        self.printed.lock().unwrap().clone()
    }

    /// Returns the resident memory.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.memory_kib("VmRSS:")
    }

    /// Returns the memory that the server has allocated and uses, without the pages of its code:
    /// which of those are in memory depends on the build, and on what else ran.
    pub(crate) fn anonymous_kib(&self) -> u64 {
        self.memory_kib("RssAnon:")
    }

    fn memory_kib(&self, line: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let kib = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
        kib.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    }

    /// Returns the processor time so far, in hundredths of a second.
    pub(crate) fn processor_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // Fields come after the name, which may contain anything. The state is the third field of
        // proc_pid_stat(5), the times in user and in kernel mode are the 14th and the 15th.
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let fields: Vec<&str> = fields.split(' ').collect();
        fields[11..=12].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }

    pub(crate) fn resp_port(&self) -> &str {
        self.resp.rsplit(':').next().unwrap()
    }

    /// Waits until it reports readiness.
    #[track_caller]
    pub(crate) fn ready(&self) {
        let ready = ["-o", "/dev/null", "-w", "%{http_code}", &self.url("/readyz")];
        until("it is ready", || curl(&ready) == "200");
    }

    /// Returns a response's status and JSON body.
    pub(crate) fn get(&self, path: &str) -> (String, Value) {
        let response = curl(&["-w", "\n%{http_code}", &self.url(path)]);
        let (body, status) = response.rsplit_once('\n').unwrap();
        let body = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
        (status.to_owned(), body)
    }

    /// Returns the value of a metric's sample, named as on the page; 0 if absent.
    pub(crate) fn sample(&self, name: &str) -> f64 {
        let page = curl(&[&self.url("/metrics")]);
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Waits until it reports a reason for not being ready with all these parts.
    pub(crate) fn not_ready(&self, parts: &[&str]) {
        let until = Instant::now() + TIMEOUT;
        loop {
            let (status, body) = self.get("/readyz");
            let reasons = body["reasons"].to_string();
            if status == "503" && parts.iter().all(|part| reasons.contains(part)) {
                return;
            }
            assert!(Instant::now() < until, "{status} {body}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the log contains this text.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        let until = Instant::now() + TIMEOUT;
        while !self.printed().contains(text) {
            assert!(Instant::now() < until, "{text:?} is not in {}", self.printed());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills it like `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal: `-STOP` freezes the process, `-CONT` wakes it.
    pub(crate) fn signal(&self, name: &str) {
        children::signal(self.child.id(), name);
    }

    /// Sends SIGTERM, and returns the exit code.
    pub(crate) fn stop(mut self) -> i32 {
        self.signal("-TERM");
        let until = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let code = status.code().unwrap_or(-1);
                if code != 0 {
                    eprintln!("{}", self.printed());
                }
                return code;
            }
            assert!(Instant::now() < until, "it does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks that an ended server may be started again. Accepted reasons are a store call that the
/// machine delayed, and a port that another connection used for a moment; any other reason fails
/// the test.
fn not_yet(output: &Output) -> Option<Server> {
    let printed = String::from_utf8_lossy(&output.stderr);
    let late = "store did not respond within 5000 ms";
    let may_pass = printed.contains(late) || printed.contains("end the program that has this port");
    assert!(may_pass, "serve ended with {}: {printed}", output.status);
    None
}

/// Runs curl quietly, and returns its output.
pub(crate) fn curl(arguments: &[&str]) -> String {
    client("curl", &[&["-sS", "--max-time", "60"], arguments].concat())
}

/// Runs a client, which must be installed.
pub(crate) fn client(name: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(programs::installed(name));
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// A RESP connection.
pub(crate) struct Resp(BufReader<TcpStream>);

impl Resp {
    pub(crate) fn connect(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a command whose reply is one line, and returns the reply.
    pub(crate) fn call(&mut self, arguments: &[&str]) -> std::io::Result<String> {
        let argument = |argument: &&str| format!("${}\r\n{argument}\r\n", argument.len());
        let all: String = arguments.iter().map(argument).collect();
        let request = format!("*{}\r\n{all}", arguments.len());
        self.0.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// Sends `count` INCR commands in one go, and reads the replies. Skips replies that are not
    /// numbers; stops at an error, and keeps the numbers read so far.
    pub(crate) fn incr(
        &mut self,
        source: &str,
        count: usize,
        ids: &mut Vec<u64>,
    ) -> std::io::Result<()> {
        let request = format!("*2\r\n$4\r\nINCR\r\n${}\r\n{source}\r\n", source.len());
        self.0.get_mut().write_all(request.repeat(count).as_bytes())?;
        let mut line = String::new();
        for _ in 0..count {
            line.clear();
            if self.0.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(number) = line.strip_prefix(':') {
                ids.push(number.trim().parse().unwrap());
            }
        }
        Ok(())
    }
}
