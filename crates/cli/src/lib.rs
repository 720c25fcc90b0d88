//! The `snowmint` command: one file a command, and this one, which chooses among them. It is a
//! library only for its binary: a library compiles while the server's code is still being
//! generated, a binary only after it.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod audit;
mod client;
mod cmd;
mod config;
mod open;
#[cfg(test)]
#[cfg(feature = "import")]
mod reference;
mod security;
mod system;
mod terminal;
mod unique;

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command line, and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    // Redis's driver reads it from here. All other users get theirs passed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    cmd::complete();
    match cmd::Snowmint::read(&arguments) {
        Ok(command) => terminal::exit::code(command.run()),
        Err(error) => terminal::exit::unparsed(error, &arguments),
    }
}
