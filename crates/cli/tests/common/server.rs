//! A real server in a directory of its own.
#![allow(dead_code, reason = "each test uses its own share")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use snowmint_testkit::children;

use super::common::{Ran, snowmint};

/// A running `snowmint serve`; killed when dropped.
pub(crate) struct Server {
    child: Child,
    /// Kept open: a server whose standard output is closed would be another test.
    _stdout: BufReader<ChildStdout>,
    pub(crate) http: String,
    pub(crate) resp: String,
}

/// `serve` on free ports.
pub(crate) fn serve(data_dir: &Path, more: &[&str]) -> Command {
    let dir = data_dir.to_str().unwrap();
    let fixed = ["serve", "--data-dir", dir, "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"];
    snowmint(&[&fixed[..], more].concat())
}

impl Server {
    #[track_caller]
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = children::spawn(command).unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let addresses =
            line.strip_prefix("listening http=").and_then(|rest| rest.trim().split_once(" resp="));
        let Some((http, resp)) = addresses else {
            let mut err = String::new();
            let _ = child.kill();
            child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
            panic!("first line {line:?}; standard error:\n{err}");
        };
        let (http, resp) = (http.to_owned(), resp.to_owned());
        Self { child, _stdout: stdout, http, resp }
    }

    /// As `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits for the end; what it said on standard error, and its exit code.
    pub(crate) fn wait(mut self) -> (i32, String) {
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code().expect("ended by a signal"), err)
    }

    /// Mints through the command line.
    pub(crate) fn mint(&self, args: &[&str]) -> Ran {
        snowmint(&[&["mint", "--server", &self.http], args].concat()).output().unwrap().into()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
