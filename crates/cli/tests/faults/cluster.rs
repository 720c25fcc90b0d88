//! Servers on one store, each with a way of its own to it, and what is done to them.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Instant;

use snowmint_testkit::proxy::{Proxy, Way};

use super::ground::sleep_ms;
use super::server::{Folder, PATIENCE, Server, WAIT_MAX};

/// Where a server is reached.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub(crate) http: String,
    pub(crate) resp: String,
}

/// Where those are that run.
pub(crate) type Reached = Arc<RwLock<Vec<Reach>>>;

/// One of the servers: its data and its way to the store stay while processes come and go.
struct Place {
    proxy: Proxy,
    url: String,
    data: PathBuf,
    server: Option<Server>,
}

pub(crate) struct Cluster {
    config: PathBuf,
    places: Vec<Place>,
    /// Of those that run.
    reached: Reached,
}

impl Cluster {
    /// Places for so many servers of a store, none of which runs yet.
    pub(crate) fn new(
        folder: &Folder,
        store: &snowmint_testkit::servers::Server,
        servers: usize,
        config: &str,
    ) -> Self {
        let path = folder.join("config.toml");
        std::fs::write(&path, config).unwrap();
        let place = |number| {
            let proxy = Proxy::start(store.port());
            let url = store.url_by(proxy.port());
            let data = folder.join(&format!("server-{number}"));
            Place { proxy, url, data, server: None }
        };
        Self {
            config: path,
            places: (0..servers).map(place).collect(),
            reached: Reached::default(),
        }
    }

    /// For clients, who look there again and again.
    pub(crate) fn reached(&self) -> Reached {
        Arc::clone(&self.reached)
    }

    fn tell(&self) {
        let running = self.places.iter().filter_map(|place| place.server.as_ref());
        let reach =
            |server: &Server| Reach { http: server.http.clone(), resp: server.resp.clone() };
        *self.reached.write().unwrap() = running.map(reach).collect();
    }

    /// Starts whoever does not run. Who refuses to start is tried again the next time.
    pub(crate) fn start(&mut self) -> usize {
        for place in self.places.iter_mut().filter(|place| place.server.is_none()) {
            let (config, data) = (self.config.to_str().unwrap(), place.data.to_str().unwrap());
            let arguments = ["--config", config, "--store", &place.url, "--data-dir", data];
            place.server = Server::try_start(&arguments, &[(WAIT_MAX, "1s")]).ok();
        }
        self.tell();
        self.places.iter().filter(|place| place.server.is_some()).count()
    }

    /// Starts all, with patience.
    pub(crate) fn start_all(&mut self) {
        let until = Instant::now() + PATIENCE;
        while self.start() < self.places.len() {
            assert!(Instant::now() < until, "some never start");
            sleep_ms(100);
        }
        self.places.iter().flat_map(|place| &place.server).for_each(Server::ready);
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(server) = self.places[number].server.take() {
            self.tell();
            server.kill();
        }
    }

    /// Ends it in peace.
    pub(crate) fn stop(&mut self, number: usize) {
        if let Some(server) = self.places[number].server.take() {
            // Whatever it says of a store that does not let it give everything back.
            let code = server.stop();
            assert!(code >= 0, "it was ended by a signal");
            self.tell();
        }
    }

    /// `SIGSTOP`, and `SIGCONT` after so long.
    pub(crate) fn pause(&self, number: usize, ms: u64) {
        if let Some(server) = &self.places[number].server {
            server.signal("-STOP");
            sleep_ms(ms);
            server.signal("-CONT");
        }
    }

    /// Nothing passes between it and the store for so long; what was sent arrives then.
    pub(crate) fn cut_off(&self, number: usize, ms: u64) {
        let proxy = &self.places[number].proxy;
        proxy.hold(Way::ToServer);
        proxy.hold(Way::ToClient);
        sleep_ms(ms);
        proxy.heal();
    }

    /// What those who run have logged.
    pub(crate) fn said(&self) -> String {
        let running = self.places.iter().filter_map(|place| place.server.as_ref());
        running
            .map(|server| format!("\n{} ({}):\n{}", server.http, server.resp, server.said()))
            .collect()
    }
}
