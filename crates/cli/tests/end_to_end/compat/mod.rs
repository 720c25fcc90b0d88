//! The HTTP interfaces of Leaf, Tinyid and CosId's proxy, called with curl.

mod at_once;
mod golden;
mod machines;

use std::fs;

use super::server::{Folder, Server};

/// Starts a server with this configuration file.
fn serve(folder: &Folder, file: &str) -> Server {
    let path = folder.join("snowmint.toml");
    fs::write(&path, file).unwrap();
    let dir = folder.path().to_str().unwrap();
    let server = Server::start(&["--config", path.to_str().unwrap(), "--data-dir", dir], &[]);
    server.ready();
    server
}
