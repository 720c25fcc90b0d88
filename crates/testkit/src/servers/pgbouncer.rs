//! A pooler in front of a PostgreSQL: PgBouncer, which gives each transaction another of the
//! server's sessions.

use std::fs;
use std::process::Command;

use super::server::{Recipe, Server};
use super::{Folder, Postgres, is_root, succeeds};
use crate::{children, programs};

/// A PgBouncer and the server behind it; removed when dropped.
#[derive(Debug)]
pub struct PgBouncer {
    // In this order: the pooler is dropped before the server.
    pooler: Server,
    /// The server behind it.
    pub server: Postgres,
}

impl PgBouncer {
    /// Starts a pooler in front of this server, with more lines of its configuration.
    ///
    /// # Panics
    /// When PgBouncer is not installed, or does not start.
    #[must_use]
    pub fn start(server: Postgres, lines: &[&str]) -> Self {
        let user = is_root().then_some("postgres");
        let folder = Folder::new(user);
        let there = server.url();
        let port = there.rsplit_once(':').and_then(|(_, rest)| rest.split('/').next());
        let (port, lines) = (port.unwrap().to_owned(), lines.join("\n"));
        let command = move |folder: &Folder, listen: u16| {
            let file = folder.join("pgbouncer.ini");
            let text = format!(
                "[databases]\n* = host=127.0.0.1 port={port} user=postgres\n[pgbouncer]\n\
                 listen_addr = 127.0.0.1\nlisten_port = {listen}\nunix_socket_dir =\nauth_type = any\n\
                 pool_mode = transaction\nmax_client_conn = 400\ndefault_pool_size = 8\nserver_round_robin = 1\n{lines}\n"
            );
            fs::write(&file, text).unwrap();
            let mut command = children::command_as(user, programs::installed("pgbouncer"));
            command.arg(file);
            command
        };
        let responds = |port: u16| {
            let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
            let mut probe = Command::new(programs::installed("psql"));
            succeeds(probe.args(["-q", "-c", "SELECT 1", "-d", &url]))
        };
        let recipe = Recipe {
            name: "PgBouncer",
            url: ("postgres://postgres@127.0.0.1:", "/postgres"),
            ends_with: "-INT",
            command: Box::new(command),
            responds,
        };
        Self { pooler: Server::new(recipe, folder), server }
    }

    /// Returns the URL of the server's database through the pooler.
    #[must_use]
    pub fn url(&self) -> String {
        self.pooler.url()
    }
}
