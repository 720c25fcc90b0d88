//! Owners that cannot use their sections, or that peers cannot reach: other servers take over.

use snowmint_testkit::proxy::{Proxy, Way};
use snowmint_testkit::servers::{FakeClock, free_port};

use super::server::{Folder, SNOWMINT, Server, WAIT_MAX, cleaned, curl, until};

const CONFIG: &str = "
[sources.orders]
order = \"global\"
[sources.counted]
kind = \"counter\"
";

/// Starts a server on the folder's shared SQLite store, with this command.
fn start(folder: &Folder, number: usize, command: std::process::Command, more: &[&str]) -> Server {
    let config = folder.join("config.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let (data, store) = (folder.join(&format!("server-{number}")), folder.join("ids.db"));
    let store = format!("sqlite:{}", store.display());
    let mut arguments = vec!["--config", config.to_str().unwrap(), "--store", &store];
    arguments.extend(["--data-dir", data.to_str().unwrap()]);
    arguments.extend(more);
    let server = Server::run(command, &arguments).unwrap_or_else(|output| {
        panic!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))
    });
    server.ready();
    server
}

/// Returns the number in the response of this path, if there is one.
fn mint(server: &Server, path: &str) -> Option<u64> {
    let response: serde_json::Value = serde_json::from_str(&curl(&[&server.url(path)])).ok()?;
    response["ids"][0].as_str()?.parse().ok()
}

/// Returns the number of IDs of the order that a server has minted, for itself and for peers.
fn ordered(server: &Server) -> f64 {
    let page = curl(&[&server.url("/metrics")]);
    let lines = page.lines().filter(|line| {
        line.starts_with("snowmint_ids_total") && line.contains("source=\"orders\"")
    });
    lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs libfaketime: --features real-servers")]
fn global_order_continues_despite_a_wrong_owner_clock() {
    let folder = Folder::new("wrong-clock");
    let clocks = [0, 1, 2].map(|number| FakeClock::new(folder.join(&format!("clock-{number}"))));
    let servers: Vec<Server> = (0..3)
        .map(|number| {
            let mut command = cleaned(clocks[number].command(SNOWMINT));
            command.env(WAIT_MAX, "1s");
            start(&folder, number, command, &[])
        })
        .collect();
    let keys: Vec<String> = (0..40).map(|number| format!("/v1/ids/counted?key={number}")).collect();
    until("each has sections", || {
        keys.iter().for_each(|key| _ = mint(&servers[0], key));
        servers.iter().all(|server| server.sample("snowmint_sections") > 0.0)
    });
    let mut highest = 0;
    for offset in [-3_600, 3_600] {
        // One server mints for all.
        until("all respond", || {
            servers.iter().all(|server| mint(server, "/v1/ids/orders").is_some())
        });
        let before = servers.iter().map(ordered).collect::<Vec<_>>();
        for _ in 0..30 {
            servers
                .iter()
                .for_each(|server| highest = mint(server, "/v1/ids/orders").unwrap_or(highest));
        }
        let more = |(place, server): (usize, &Server)| ordered(server) - before[place];
        let owner =
            servers.iter().enumerate().max_by(|a, b| more(*a).total_cmp(&more(*b))).unwrap().0;
        clocks[owner].set(offset);
        servers[owner].says("sections of this server changed");
        for (place, server) in servers.iter().enumerate() {
            let mut next = None;
            until("another server continues", || {
                next = mint(server, "/v1/ids/orders");
                next.is_some()
            });
            assert!(next.unwrap() > highest, "{place}: {next:?} after {highest}");
            highest = next.unwrap();
        }
        servers[owner].not_ready(&["clock"]);
        // Counters need no clock, so it keeps their sections.
        let printed = servers[owner].printed();
        let mut changes =
            printed.lines().filter(|line| line.contains("sections of this server changed"));
        assert!(changes.next_back().unwrap().contains("serves=Counters"), "{printed}");
        assert!(servers[owner].sample("snowmint_sections") > 0.0, "{printed}");
        until("it counts", || mint(&servers[owner], "/v1/ids/counted?key=a").is_some());
        clocks[owner].set(0);
        servers[owner].ready();
    }
    for server in servers {
        assert_eq!(server.stop(), 0);
    }
}

#[test]
fn server_unreachable_for_peers_gives_up_its_keys() {
    let folder = Folder::new("unreached");
    let servers: Vec<(Server, Proxy)> = (0..3)
        .map(|number| {
            // Clients reach it at its listen address, peers through the proxy.
            let (port, host) = (free_port(), format!("127.0.0.{}", number + 2));
            let mut command = cleaned(std::process::Command::new(SNOWMINT));
            command.env("SNOWMINT_SERVER__ANNOUNCE", &host).env(WAIT_MAX, "1s");
            let http = format!("127.0.0.1:{port}");
            let proxy = Proxy::at(&format!("{host}:{port}"), port);
            (start(&folder, number, command, &["--http", &http]), proxy)
        })
        .collect();
    let keys: Vec<String> = (0..40).map(|number| format!("/v1/ids/counted?key={number}")).collect();
    let sections = |number: usize| servers[number].0.sample("snowmint_sections");
    until("each has sections", || {
        let server = &servers[0].0;
        keys.iter().for_each(|key| _ = mint(server, key));
        (0..3).all(|number| sections(number) > 0.0)
    });
    let (lost, proxy) = &servers[2];
    let mut highest = vec![0; keys.len()];
    let mut count = |server: &Server| {
        for (key, highest) in keys.iter().zip(&mut highest) {
            let mut next = None;
            until("it is counted", || {
                next = mint(server, key);
                next.is_some()
            });
            assert!(next.unwrap() > *highest, "{key}: {next:?} after {highest}");
            *highest = next.unwrap();
        }
    };
    count(&servers[0].0);
    proxy.hold(Way::ToServer);
    proxy.cut();
    // Peers' requests no longer arrive there, but every client's request succeeds.
    count(&servers[0].0);
    count(&servers[1].0);
    lost.says("unreached=true");
    until("it has given them up", || sections(2) == 0.0);
    // It still reaches its peers, so its own clients are served.
    count(lost);
    proxy.heal();
    until("it has them again", || {
        keys.iter().for_each(|key| _ = mint(lost, key));
        sections(2) > 0.0
    });
    count(&servers[1].0);
    for (server, _) in servers {
        assert_eq!(server.stop(), 0);
    }
}
