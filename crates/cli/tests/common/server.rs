//! A real server in a directory of its own.
#![allow(clippy::disallowed_methods, reason = "real servers are waited for in real time")]
#![allow(dead_code, reason = "each test uses its own share")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use snowmint_testkit::children;

use super::common::{Ran, TIMEOUT, ended, snowmint, until};

/// Error of a server that cannot start because the store responded too late.
const STORE_IS_LATE: &str = "store did not respond within 5000 ms";

/// A running `snowmint serve`; killed when dropped.
pub(crate) struct Server {
    child: Child,
    /// Kept open: a server with a closed standard output would be another test.
    _stdout: BufReader<ChildStdout>,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
    pub(crate) http: String,
    pub(crate) resp: String,
}

/// Returns the command of `serve` on free ports.
pub(crate) fn serve(data_dir: &Path, more: &[&str]) -> Command {
    let dir = data_dir.to_str().unwrap();
    let fixed = ["serve", "--data-dir", dir, "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"];
    let mut command = snowmint(&[&fixed[..], more].concat());
    // The default of a second is too short for a busy disk and busy processors.
    command.env("SNOWMINT_LIMITS__WAIT_MAX", "10s");
    command
}

impl Server {
    #[track_caller]
    pub(crate) fn start(command: Command) -> Self {
        let (mut command, begun) = (command, Instant::now());
        loop {
            let (started, again) = Self::try_start(command);
            match started {
                Ok(server) => return server,
                // The machine stood still for too long.
                Err(message) if message.contains(STORE_IS_LATE) && begun.elapsed() < TIMEOUT => {}
                Err(message) => panic!("{message}"),
            }
            command = again;
        }
    }

    /// Tries the same; returns the process's message if it does not listen. Also returns the
    /// command.
    pub(crate) fn try_start(mut command: Command) -> (Result<Self, String>, Command) {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let (child, command) = children::spawn_and_keep(command);
        (Self::listening(child.unwrap()), command)
    }

    fn listening(mut child: Child) -> Result<Self, String> {
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let addresses =
            line.strip_prefix("listening http=").and_then(|rest| rest.trim().split_once(" resp="));
        let Some((http, resp)) = addresses else {
            let _ = child.kill();
            let err = child.wait_with_output().unwrap().stderr;
            let err = String::from_utf8_lossy(&err);
            return Err(format!("first line {line:?}; standard error:\n{err}"));
        };
        let (http, resp) = (http.to_owned(), resp.to_owned());
        let log = Arc::<Mutex<String>>::default();
        let (stderr, writes) = (child.stderr.take().unwrap(), Arc::clone(&log));
        // The log must not fill the pipe.
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = writes.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        Ok(Self { child, _stdout: stdout, log, reader: Some(reader), http, resp })
    }

    /// Kills the process like `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        children::signal(self.child.id(), name);
    }

    /// Waits until the log has a line with all these parts.
    #[track_caller]
    pub(crate) fn says(&self, parts: &[&str]) {
        until(&format!("{parts:?} in the log"), || {
            let log = self.log.lock().unwrap();
            log.lines().any(|line| parts.iter().all(|part| line.contains(part)))
        });
    }

    /// Waits for the end; returns the exit code and the log.
    #[track_caller]
    pub(crate) fn wait(mut self) -> (i32, String) {
        let status = ended(&mut self.child);
        self.reader.take().unwrap().join().unwrap();
        let log = self.log.lock().unwrap().clone();
        (status.code().expect("ended by a signal"), log)
    }

    /// Mints through the command line.
    pub(crate) fn mint(&self, args: &[&str]) -> Ran {
        snowmint(&[&["mint", "--server", &self.http], args].concat()).output().unwrap().into()
    }

    /// Returns the status and the body of a page.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.http).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Returns the number of IDs issued so far, of all sources and protocols.
    pub(crate) fn issued(&self) -> f64 {
        let (_, page) = self.get("/metrics");
        let samples = page.lines().filter(|line| line.starts_with("snowmint_ids_total{"));
        samples.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
