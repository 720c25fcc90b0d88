//! Tokens and certificates, with the real binary and real clients.

mod audit;
mod certificates;
mod hosts;
mod named;
mod naming;
mod peers;
mod programs;
mod public;
mod remote;
mod resumed;
mod secrets;
mod shares;
mod tls;
mod tokens;
mod trail;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use snowmint_testkit::programs::installed;

use super::server::{Folder, client, snowmint, until};

/// A token and its hash.
pub(crate) struct Made {
    pub(crate) token: String,
    pub(crate) hash: String,
}

/// Makes a token with the command for operators.
pub(crate) fn token() -> Made {
    let output = snowmint().args(["token", "new", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let made: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    Made { token: text("token"), hash: text("hash") }
}

/// Replaces a file atomically.
pub(crate) fn put(folder: &Folder, name: &str, text: &str) -> String {
    let (path, new) = (folder.join(name), folder.join(&format!("{name}.new")));
    fs::write(&new, text).unwrap();
    fs::rename(new, &path).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Returns an entry for the file of tokens.
pub(crate) fn entry(name: &str, hashes: &[&str], grants: &[&str]) -> String {
    format!("[{name}]\nhashes = {hashes:?}\ngrants = {grants:?}\n")
}

/// Returns the status of a response to curl with these arguments; `000` without a response.
fn status(arguments: &[&str]) -> String {
    let fixed = ["-sS", "--max-time", "60", "-o", "/dev/null", "-w", "%{http_code}"];
    client("curl", &[&fixed[..], arguments].concat())
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// Runs this command with a token in its environment.
fn with_token(arguments: &[&str], token: &str, more: &[(&str, &str)]) -> Output {
    let mut command = snowmint();
    command.args(arguments).env("SNOWMINT_TOKEN", token).envs(more.iter().copied());
    command.stdin(Stdio::null()).output().unwrap()
}

/// Runs redis-cli with a user and a password that other users cannot see.
fn redis(port: &str, user: &str, token: &str, words: &[&str]) -> String {
    let mut command = Command::new(installed("redis-cli"));
    command.args(["-h", "127.0.0.1", "-p", port, "--no-auth-warning"]);
    if !user.is_empty() {
        command.args(["--user", user]);
    }
    command.args(words).env("REDISCLI_AUTH", token).stdin(Stdio::null());
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr)
}

/// Returns the output of a command that reads this input.
fn piped(arguments: &[&str], input: &str) -> Output {
    let mut command = snowmint();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Returns the path of a file in the folder as text.
fn path(folder: &Folder, name: &str) -> String {
    let path: PathBuf = folder.join(name);
    path.to_str().unwrap().to_owned()
}
