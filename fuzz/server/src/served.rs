//! The server under attack: a real process with tokens on; its memory and log are read from
//! outside.

use std::{io::Write as _, net::SocketAddr, path::Path, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// Secrets of a usual length, known only here.
pub const HONEST: &str = "honest-token-0123456789-abcdefghij";
pub const HOSTILE: &str = "hostile-token-0123456789-abcdefghi";

/// Memory of a server, in KiB.
#[derive(Clone, Copy)]
pub struct Memory {
    /// Allocated memory, without the program's code, which becomes resident as rare paths run.
    pub own_kib: u64,
    /// Largest resident memory so far, code included.
    pub most_kib: u64,
}

pub struct Served {
    pub http: SocketAddr,
    pub resp: SocketAddr,
    child: Child,
    folder: tempfile::TempDir,
}

impl Served {
    /// Starts `binary` on SQLite in a folder of its own, with `store.v1` open to programs.
    pub async fn start(binary: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let tokens = folder.path().join("tokens.toml");
        std::fs::write(&tokens, tokens_file(binary)?)?;
        let log = std::fs::File::create(folder.path().join("log"))?;
        let mut child = Command::new(binary)
            .args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data-dir"])
            .arg(folder.path().join("data"))
            .current_dir(folder.path())
            .env("SNOWMINT_TOKENS__FILE", &tokens)
            .env("SNOWMINT_STORE__OFFERED", "true")
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let line = tokio::time::timeout(Duration::from_secs(60), lines.next_line())
            .await??
            .unwrap_or_default();
        let address = |key: &str| {
            let found = line.split_whitespace().find_map(|word| word.strip_prefix(key));
            found.ok_or_else(|| format!("the server says {line:?}, which has no {key}"))
        };
        let (http, resp) = (address("http=")?.parse()?, address("resp=")?.parse()?);
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { http, resp, child, folder })
    }

    /// Returns the server's memory.
    pub fn memory(&self) -> Option<Memory> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        let field = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Memory { own_kib: field("RssAnon:")?, most_kib: field("VmHWM:")? })
    }

    pub fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| status.to_string())
    }

    /// Returns the lines of the log that report a panic, and the size of the log in bytes.
    pub fn log(&self) -> std::io::Result<(Vec<String>, usize)> {
        let log = std::fs::read(self.folder.path().join("log"))?;
        let text = String::from_utf8_lossy(&log);
        let panics =
            text.lines().filter(|line| line.contains("panicked")).map(str::to_owned).collect();
        Ok((panics, log.len()))
    }
}

fn tokens_file(binary: &Path) -> Result<String, Box<dyn std::error::Error>> {
    Ok(format!(
        "[honest]\nhashes = [\"{}\"]\ngrants = [\"mint,decode default\"]\n\
         [hostile]\nhashes = [\"{}\"]\ngrants = [\"mint,reserve,decode,admin fuzz-*\", \"join,metrics *\"]\n",
        hash(binary, HONEST)?,
        hash(binary, HOSTILE)?,
    ))
}

fn hash(binary: &Path, token: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut child = std::process::Command::new(binary)
        .args(["token", "hash"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().ok_or("no input")?.write_all(token.as_bytes())?;
    let output = child.wait_with_output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
