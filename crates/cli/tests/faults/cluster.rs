//! Servers on one store, each with its own network path to the store, and faults on them.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Instant;

use snowmint_testkit::proxy::{Proxy, Way};

use super::ground::sleep_ms;
use super::server::{Folder, Server, TIMEOUT, WAIT_MAX};

/// Addresses of a server.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub(crate) http: String,
    pub(crate) resp: String,
}

/// Addresses of the running servers.
pub(crate) type Reached = Arc<RwLock<Vec<Reach>>>;

/// One of the servers: its data and its network path stay while processes start and end.
struct ServerPlace {
    proxy: Proxy,
    url: String,
    data: PathBuf,
    server: Option<Server>,
}

pub(crate) struct Cluster {
    config: PathBuf,
    server_places: Vec<ServerPlace>,
    /// Addresses of the running servers.
    reached: Reached,
}

impl Cluster {
    /// Returns a cluster of this many servers on a store, none of which runs yet.
    pub(crate) fn new(
        folder: &Folder,
        store: &snowmint_testkit::servers::Server,
        servers: usize,
        config: &str,
    ) -> Self {
        let path = folder.join("config.toml");
        std::fs::write(&path, config).unwrap();
        let server_place = |number| {
            let proxy = Proxy::start(store.port());
            let url = store.url_by(proxy.port());
            let data = folder.join(&format!("server-{number}"));
            ServerPlace { proxy, url, data, server: None }
        };
        Self {
            config: path,
            server_places: (0..servers).map(server_place).collect(),
            reached: Reached::default(),
        }
    }

    /// Returns the addresses for clients, which read them repeatedly.
    pub(crate) fn reached(&self) -> Reached {
        Arc::clone(&self.reached)
    }

    fn publish(&self) {
        let running =
            self.server_places.iter().filter_map(|server_place| server_place.server.as_ref());
        let reach =
            |server: &Server| Reach { http: server.http.clone(), resp: server.resp.clone() };
        *self.reached.write().unwrap() = running.map(reach).collect();
    }

    /// Starts the servers that do not run. A failed start is tried again at the next call.
    pub(crate) fn start(&mut self) -> usize {
        for server_place in
            self.server_places.iter_mut().filter(|server_place| server_place.server.is_none())
        {
            let (config, data) =
                (self.config.to_str().unwrap(), server_place.data.to_str().unwrap());
            let arguments = ["--config", config, "--store", &server_place.url, "--data-dir", data];
            server_place.server = Server::try_start(&arguments, &[(WAIT_MAX, "1s")]).ok();
        }
        self.publish();
        self.server_places.iter().filter(|server_place| server_place.server.is_some()).count()
    }

    /// Starts all servers, with retries.
    pub(crate) fn start_all(&mut self) {
        let until = Instant::now() + TIMEOUT;
        while self.start() < self.server_places.len() {
            assert!(Instant::now() < until, "some never start");
            sleep_ms(100);
        }
        self.server_places
            .iter()
            .flat_map(|server_place| &server_place.server)
            .for_each(Server::ready);
    }

    /// Kills a server like `kill -9`.
    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(server) = self.server_places[number].server.take() {
            self.publish();
            server.kill();
        }
    }

    /// Stops a server cleanly.
    pub(crate) fn stop(&mut self, number: usize) {
        if let Some(server) = self.server_places[number].server.take() {
            // Errors of a store that does not let it release everything are ignored.
            let code = server.stop();
            assert!(code >= 0, "it was ended by a signal");
            self.publish();
        }
    }

    /// Pauses a server: `SIGSTOP`, and `SIGCONT` after this time.
    pub(crate) fn pause(&self, number: usize, ms: u64) {
        if let Some(server) = &self.server_places[number].server {
            server.signal("-STOP");
            sleep_ms(ms);
            server.signal("-CONT");
        }
    }

    /// Holds all data between a server and its store for this time; it arrives afterwards.
    pub(crate) fn cut_off(&self, number: usize, ms: u64) {
        let proxy = &self.server_places[number].proxy;
        proxy.hold(Way::ToServer);
        proxy.hold(Way::ToClient);
        sleep_ms(ms);
        proxy.heal();
    }

    /// Returns the logs of the running servers.
    pub(crate) fn printed(&self) -> String {
        let running =
            self.server_places.iter().filter_map(|server_place| server_place.server.as_ref());
        running
            .map(|server| format!("\n{} ({}):\n{}", server.http, server.resp, server.printed()))
            .collect()
    }
}
